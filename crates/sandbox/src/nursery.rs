//! The process that wardens are forked from, so that the program is loaded and linked once and not once per session: a
//! warden begins in a fraction of the time, and shares what it does not change.
//!
//! It has one thread and holds nothing of any session: it learns where a warden begins, and the warden hears everything
//! else over a socket of its own. A warden dies with it (a warden that is nobody's would leave commands that are nobody's),
//! so when the daemon is gone it stays until the last warden has cleaned up (I5).

use crate::error::SandboxError;
use crate::launch;
use crate::leaf::enter;
use crate::mounts::View;
use crate::namespaces;
use crate::passing::{receive, send};
use crate::processes::{next_dead, signal};
use fork::{Fork, fork};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::{AsFd as _, OwnedFd};
use rustix::io::Errno;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitOptions, chdir, getpid, getppid, pidfd_open,
    set_parent_process_death_signal, setsid, wait,
};
use rustix::stdio::dup2_stdin;
use rustix::thread::set_name;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// How long the daemon may take for the rest of a message; after that it is given up as one that is gone.
const REST_WITHIN: Duration = Duration::from_secs(5);
/// The second argument of the program that makes it the nursery.
pub(crate) const NURSERY_ARG: &str = "nursery";

/// Where a warden begins; its socket comes along.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Birth {
    /// The session's working directory.
    pub(crate) workdir: PathBuf,
    /// The door of its group of processes.
    pub(crate) door: Option<PathBuf>,
    /// The file system that it sees, in namespaces of its own.
    pub(crate) view: Option<View>,
}

/// What became of it.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Born {
    /// It lives; the descriptor of the process comes along.
    Alive,
    /// The kernel gives no process.
    Not { message: String },
}

/// What this process is from here on.
pub(crate) enum Part {
    /// A warden that was just forked: its socket is its standard input.
    Warden,
    /// Nothing more: the daemon is gone, and so are all wardens; or this process held the namespaces of a warden that
    /// ended.
    Over,
}

/// Serves as the nursery, if the arguments say so.
pub(crate) fn asked() -> Option<Result<Part, SandboxError>> {
    let second = std::env::args_os().nth(2)?;
    (second == NURSERY_ARG).then(|| Nursery::start()?.serve())
}

struct Nursery {
    socket: File,
    signals: SignalFd,
    wardens: BTreeSet<i32>,
}

impl Nursery {
    fn start() -> Result<Self, SandboxError> {
        let failed = |error: io::Error| SandboxError::Message(error.to_string());
        launch::close_inherited();
        let _ = setsid();
        let _ = set_name(c"agentd-nursery");
        let mask = launch::taken_signals();
        mask.thread_block().map_err(|errno| failed(errno.into()))?;
        let signals = SignalFd::with_flags(&mask, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC)
            .map_err(|errno| failed(errno.into()))?;
        let socket = rustix::io::fcntl_dupfd_cloexec(io::stdin(), 3).map_err(|errno| failed(errno.into()))?;
        // For the rest of a message that has begun, and for an answer that nobody takes.
        for way in [Timeout::Recv, Timeout::Send] {
            set_socket_timeout(&socket, way, Some(REST_WITHIN)).map_err(|errno| failed(errno.into()))?;
        }
        Ok(Self {
            socket: File::from(socket),
            signals,
            wardens: BTreeSet::new(),
        })
    }

    fn serve(mut self) -> Result<Part, SandboxError> {
        loop {
            let asked = self.wait();
            self.reap();
            if !asked {
                continue;
            }
            let Ok((birth, descriptors)) = receive::<Birth>(&self.socket) else {
                break;
            };
            let nursery = getpid();
            if self.bear() {
                drop(self);
                return begin(&birth, descriptors, nursery);
            }
        }
        self.see_out();
        Ok(Part::Over)
    }

    /// Waits for a word of the daemon or the end of a warden; whether it is the daemon.
    fn wait(&self) -> bool {
        let mut fds = [
            PollFd::new(&self.socket, PollFlags::IN),
            PollFd::new(&self.signals, PollFlags::IN),
        ];
        let woken = poll(&mut fds, None).is_ok();
        let asked = woken && fds.first().is_some_and(|fd| !fd.revents().is_empty());
        while matches!(self.signals.read_signal(), Ok(Some(_))) {}
        asked
    }

    fn reap(&mut self) {
        while let Some((pid, _)) = next_dead() {
            self.wardens.remove(&pid);
        }
    }

    /// Forks; whether this is the new process.
    fn bear(&mut self) -> bool {
        let pid = match fork() {
            Ok(Fork::Child) => return true,
            Ok(Fork::Parent(pid)) => pid,
            Err(error) => {
                self.say(
                    &Born::Not {
                        message: error.to_string(),
                    },
                    None,
                );
                return false;
            }
        };
        self.wardens.insert(pid);
        // It was not waited for yet, so the number is still its own.
        let process = Pid::from_raw(pid).ok_or(Errno::SRCH);
        match process.and_then(|pid| pidfd_open(pid, PidfdFlags::empty())) {
            Ok(process) => self.say(&Born::Alive, Some(&process)),
            Err(errno) => {
                signal(pid, Signal::KILL);
                self.say(
                    &Born::Not {
                        message: errno.to_string(),
                    },
                    None,
                );
            }
        }
        false
    }

    /// A daemon that is gone does not hear it; the next look at its socket tells so.
    fn say(&self, born: &Born, process: Option<&OwnedFd>) {
        let descriptors: Vec<_> = process.into_iter().map(OwnedFd::as_fd).collect();
        let _ = send(&self.socket, born, &descriptors);
    }

    /// Waits for the last warden, each of which has a deadline of its own for its end. A tool may have stopped it.
    fn see_out(self) {
        for pid in self.wardens {
            signal(pid, Signal::CONT);
        }
        while !matches!(wait(WaitOptions::empty()), Err(errno) if errno != Errno::INTR) {}
    }
}

/// The first steps of a warden.
fn begin(birth: &Birth, descriptors: Vec<OwnedFd>, nursery: Pid) -> Result<Part, SandboxError> {
    let failed = |errno: Errno| SandboxError::Message(errno.to_string());
    set_parent_process_death_signal(Some(Signal::KILL)).map_err(failed)?;
    if getppid() != Some(nursery) {
        return Err(SandboxError::WardenGone);
    }
    let _ = set_name(c"agentd-warden");
    if let Some(door) = &birth.door {
        // Where the kernel does not let it in, the watch still looks at what is used.
        let _ = enter(door);
    }
    let socket = descriptors.into_iter().next().ok_or(SandboxError::WardenGone)?;
    let socket = match &birth.view {
        Some(view) => match namespaces::enter(view, socket)? {
            Some(socket) => socket,
            None => return Ok(Part::Over),
        },
        None => socket,
    };
    dup2_stdin(socket).map_err(failed)?;
    chdir(&birth.workdir).map_err(failed)?;
    Ok(Part::Warden)
}
