//! The fork server: the process that wardens are forked from, so that the program is loaded and linked once and not once
//! per session. A warden starts in a fraction of the time, and shares all pages that it does not change.
//!
//! It has one thread and holds no session data: it receives only a warden's start parameters, and the warden receives
//! everything else over its own socket. Its wardens die with it (a warden without an owner would leave commands without
//! one), so when the daemon is gone it stays until the last warden has cleaned up (I5).

use crate::cgroup::enter;
use crate::deadline::Watched;
use crate::error::SandboxError;
use crate::launch;
use crate::mounts::View;
use crate::namespaces;
use crate::passing::{receive, send};
use crate::processes::{next_dead, signal};
use fork::{Fork, fork};
use nix::sys::signalfd::SignalFd;
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

/// The deadline for the rest of a message; after that the daemon counts as gone.
const REST_WITHIN: Duration = Duration::from_secs(5);
/// The second argument that makes the program the fork server.
pub(crate) const FORK_SERVER_ARG: &str = "fork-server";

/// The start parameters of a warden; its socket travels along, and the timer of the deadline if there is one.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Birth {
    /// The session's working directory.
    pub(crate) workdir: PathBuf,
    /// The door of its cgroup.
    pub(crate) door: Option<PathBuf>,
    /// The file system that it sees, in its own namespaces.
    pub(crate) view: Option<View>,
}

/// The outcome.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Born {
    /// It runs; the descriptor of the process travels along.
    Alive,
    /// The kernel cannot create a process.
    Not { message: String },
}

/// The role of this process from here on.
pub(crate) enum Part {
    /// A warden that was just forked: its socket is its standard input.
    Warden,
    /// Finished: the daemon is gone, and so are all wardens; or this process held the namespaces of a warden that ended.
    Over,
}

/// Runs the fork server, if the arguments ask for it.
pub(crate) fn asked() -> Option<Result<Part, SandboxError>> {
    let second = std::env::args_os().nth(2)?;
    (second == FORK_SERVER_ARG).then(|| ForkServer::start()?.serve())
}

struct ForkServer {
    socket: File,
    signals: SignalFd,
    wardens: BTreeSet<i32>,
    deadline: Option<Watched>,
}

impl ForkServer {
    fn start() -> Result<Self, SandboxError> {
        let failed = |error: io::Error| SandboxError::Message(error.to_string());
        launch::close_inherited();
        let _ = setsid();
        let _ = set_name(c"agentd-forksrv");
        let signals = launch::take_signals().map_err(failed)?;
        let socket = rustix::io::fcntl_dupfd_cloexec(io::stdin(), 3).map_err(|errno| failed(errno.into()))?;
        // For the rest of a message that has begun, and for an answer that the daemon does not read.
        for way in [Timeout::Recv, Timeout::Send] {
            set_socket_timeout(&socket, way, Some(REST_WITHIN)).map_err(|errno| failed(errno.into()))?;
        }
        Ok(Self {
            socket: File::from(socket),
            signals,
            wardens: BTreeSet::new(),
            deadline: None,
        })
    }

    fn serve(mut self) -> Result<Part, SandboxError> {
        loop {
            let asked = self.wait();
            self.reap();
            if self.deadline.as_ref().is_some_and(Watched::has_come) {
                self.wake_wardens();
            }
            if !asked {
                continue;
            }
            let Ok((birth, mut descriptors)) = receive::<Birth>(&self.socket) else {
                break;
            };
            if let (None, Some(timer)) = (&self.deadline, descriptors.get(1)) {
                // Without it, only a warden that someone stopped misses its deadline.
                self.deadline = timer.try_clone().and_then(Watched::new).ok();
            }
            descriptors.truncate(1);
            let fork_server = getpid();
            if self.bear() {
                drop(self);
                return begin(&birth, descriptors, fork_server);
            }
        }
        self.see_out();
        Ok(Part::Over)
    }

    /// Waits for a message from the daemon, the exit of a warden or the deadline; returns whether it is the daemon.
    fn wait(&self) -> bool {
        let mut fds = vec![
            PollFd::new(&self.socket, PollFlags::IN),
            PollFd::new(&self.signals, PollFlags::IN),
        ];
        let deadline = self.deadline.iter();
        fds.extend(deadline.map(|deadline| PollFd::from_borrowed_fd(deadline.descriptor(), PollFlags::IN)));
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

    /// Forks; returns whether this is the new process.
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
        // It was not reaped yet, so the pid is still its own.
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

    /// Ignores a failure: if the daemon is gone, the next read of its socket shows that.
    fn say(&self, born: &Born, process: Option<&OwnedFd>) {
        let descriptors: Vec<_> = process.into_iter().map(OwnedFd::as_fd).collect();
        let _ = send(&self.socket, born, &descriptors);
    }

    /// Lets wardens run that a tool may have stopped (SIGSTOP): they have to kill what they started.
    fn wake_wardens(&self) {
        for pid in &self.wardens {
            signal(*pid, Signal::CONT);
        }
    }

    /// Waits for the last warden, each of which has its own deadline to end.
    fn see_out(self) {
        self.wake_wardens();
        while !matches!(wait(WaitOptions::empty()), Err(errno) if errno != Errno::INTR) {}
    }
}

/// The first steps of a warden.
fn begin(birth: &Birth, descriptors: Vec<OwnedFd>, fork_server: Pid) -> Result<Part, SandboxError> {
    let failed = |errno: Errno| SandboxError::Message(errno.to_string());
    set_parent_process_death_signal(Some(Signal::KILL)).map_err(failed)?;
    if getppid() != Some(fork_server) {
        return Err(SandboxError::WardenGone);
    }
    let _ = set_name(c"agentd-warden");
    if let Some(door) = &birth.door {
        // If the kernel denies entry, the watch still checks resource usage.
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
