//! The path broker: a thread of the warden that performs the calls by which commands change names, modes and times.
//!
//! Seccomp cannot see paths, and Landlock cannot exempt a name in a tree. So a filter passes these calls on, and the broker
//! performs them itself: it reads the path once, opens the directory, asks for its real path, and acts on what it opened.
//! It never lets a call continue, since the path could be another one by then. It handles a session's calls one at a time.
//! Landlock confines this thread, too, so that a mistake here cannot write outside (I7: without the broker the calls fail).

mod address;
mod bare;
mod call;
mod config;
mod denied;
mod held;
mod judge;
mod made;
mod metadata;
mod names;
mod opening;
mod pipes;
mod places;
mod program;
mod resolve;
mod sockets;
mod target;

use crate::confinement::Confinement;
use crate::git_refusals::GitRefused;
use crate::landlocked;
use agentd_protected::ProtectedPaths;
use agentd_protocol::SandboxLevel;
use agentd_seccomp_notify::{Listener, Notification};
use call::Call;
use judge::{Act, judge};
use made::Made;
use nix::sched::CloneFlags;
use nix::sys::signal::{SigSet, Signal};
use opening::Opened;
use pipes::Pipes;
use places::{Places, Spot};
use resolve::Object;
use rustix::fd::AsFd as _;
use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;
use sockets::Sockets;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use target::Target;

/// Passes calls of the calling thread, and of everything that it starts, to the listener.
pub(crate) fn listen(level: SandboxLevel) -> io::Result<Listener> {
    // Elsewhere there are no Unix sockets.
    Listener::install(&program::program(level == SandboxLevel::Isolated))
}

/// The broker of a session.
#[derive(Debug)]
pub(crate) struct Broker {
    places: Places,
    pipes: Pipes,
    made: Made,
    sockets: Sockets,
    refused: GitRefused,
}

impl Broker {
    /// Confines the calling thread, and everything that it starts, to the places where commands may write.
    pub(crate) fn prepare(
        walls: &Confinement,
        workdir: &Path,
        network: bool,
        protected: ProtectedPaths,
    ) -> Result<Self, String> {
        let real = |path: &Path| resolve::real(path).map_err(|errno| format!("{}: {errno}", path.display()));
        let mut loose = vec![real(walls.temp_inside())?];
        if walls.level == SandboxLevel::Isolated {
            loose.push(PathBuf::from("/dev/shm"));
        }
        let guarded = real(workdir)?;
        let places = Places::new(guarded, loose, protected);
        let repository = walls.annex.repository.as_deref().map(real).transpose()?;
        // What is missing cannot be written either.
        let written = walls.annex.write.iter().filter_map(|path| real(path).ok());
        let places = places.with_repository(repository, written.collect());
        landlocked::restrict_broker(walls, workdir, network)?;
        Ok(Self {
            places,
            pipes: Pipes::default(),
            made: Made::default(),
            sockets: Sockets::default(),
            refused: GitRefused::default(),
        })
    }

    /// Notes there what git was refused.
    pub(crate) fn noting(self, refused: GitRefused) -> Self {
        Self { refused, ..self }
    }

    /// Answers calls as long as there can be any. The thread that makes them must already be running.
    pub(crate) fn begin(&self) -> Result<(), String> {
        // From here on, this thread has its own working directory and umask: callers have theirs.
        nix::sched::unshare(CloneFlags::CLONE_FS).map_err(|errno| format!("the broker: {errno}"))?;
        rustix::process::umask(Mode::empty());
        // Otherwise a file that grows too large would end the warden.
        let mut growth = SigSet::empty();
        growth.add(Signal::SIGXFSZ);
        growth
            .thread_block()
            .map_err(|errno| format!("the broker: {errno}"))
    }

    /// Answers calls. After it ends, they fail.
    pub(crate) fn serve(&mut self, listener: Listener) {
        let listener = Arc::new(listener);
        loop {
            match listener.receive() {
                Ok(notification) => self.answer(&listener, &notification),
                Err(error) => match error.raw_os_error() {
                    // The caller is gone.
                    Some(libc::ENOENT | libc::EINTR) => {}
                    _ => return,
                },
            }
        }
    }

    fn answer(&mut self, listener: &Arc<Listener>, notification: &Notification) {
        let id = notification.id;
        let target = Target {
            pid: notification.pid,
            id,
            listener,
        };
        let done = match Call::of(notification) {
            Some(Call::Open { at, flags, mode }) => match self.open(target, at, flags, mode) {
                Ok(Opened::File(file)) => {
                    let close_on_exec = flags.contains(OFlags::CLOEXEC);
                    match listener.answer_with(id, file.as_fd(), close_on_exec) {
                        Ok(()) => return,
                        Err(error) => Err(Errno::from_io_error(&error).unwrap_or(Errno::MFILE)),
                    }
                }
                Ok(Opened::Pipe(pipe)) => match self.pipes.open(listener, id, pipe, flags) {
                    Ok(()) => return,
                    Err(errno) => Err(errno),
                },
                Err(errno) => Err(errno),
            },
            Some(Call::Connect { socket, address }) => {
                let Some(done) = self.connect(listener, target, (socket, address)) else {
                    return;
                };
                done
            }
            Some(call) => self.carry_out(target, call),
            // A file system answers requests that it does not know like this.
            None if notification.call == libc::SYS_ioctl => Err(Errno::NOTTY),
            None => Err(Errno::NOSYS),
        };
        listener.answer(id, done.map(|()| 0).map_err(Errno::raw_os_error));
    }

    fn carry_out(&mut self, target: Target<'_>, call: Call) -> Result<(), Errno> {
        match call {
            Call::Open { .. } | Call::Connect { .. } => Err(Errno::NOSYS),
            Call::Bind { socket, address } => self.bind(target, (socket, address)),
            Call::MakeDirectory { at, mode } => self.make_directory(target, at, mode),
            Call::MakeNode { at, mode, device } => self.make_node(target, at, mode, device),
            Call::MakeSymlink { target: leads_to, at } => self.make_symlink(target, leads_to, at),
            Call::Link { from, to, flags } => self.link(target, from, to, flags),
            Call::Rename { from, to, flags } => self.rename(target, from, to, flags),
            Call::Remove { at, flags } => self.remove(target, at, flags),
            Call::Truncate { at, length } => self.truncate(target, at, length),
            Call::Mode { of, mode } => self.mode(target, of, mode),
            Call::Owner { of, user, group } => self.owner(target, of, (user, group)),
            Call::Times { of, times, clock } => self.times(target, of, (times, clock)),
            Call::SetAttribute {
                of,
                name,
                value,
                create,
            } => self.set_attribute(target, of, (name, value, create)),
            Call::RemoveAttribute { of, name } => self.remove_attribute(target, of, name),
            Call::Flags { descriptor, flags } => self.flags(target, descriptor, flags),
        }
    }

    /// Classifies a real path.
    fn spot(&self, path: &Path) -> Spot {
        if self.places.denies(path) {
            return places::DENIED;
        }
        let around = bare::around(self.places.guarded(), path);
        let spot = match &around {
            Some(repository) => self.places.locate_in_repository(repository, path),
            None => self.places.locate(path),
        };
        if !spot.is_in_git() {
            return spot;
        }
        let elsewhere = self.places.repository_of(path);
        let git_dir = git_directory(path).or(around.as_deref()).or(elsewhere);
        // A git directory itself is made where none is, and removed when it is empty.
        let inside = git_dir.filter(|git_dir| *git_dir != path);
        let made = git_dir.is_some_and(|git_dir| self.made.has(git_dir));
        spot.in_repository(made, inside.is_some() && self.places.keeps(path))
    }

    /// Classifies an open file. A file without a path is the session's if no other process can find it by a name: pipes, sockets,
    /// memory and removed files. All anonymous inodes (timers, event queues) are one, which belongs to the machine.
    fn spot_of(&self, object: &Object) -> Spot {
        const NAMELESS: [&str; 2] = ["pipe:", "socket:"];
        let path = object.path.to_string_lossy();
        if object.kind() == FileType::CharacterDevice {
            Spot::Device
        } else if NAMELESS.iter().any(|start| path.starts_with(start)) || object.is_removed() {
            Spot::Nameless
        } else {
            self.spot(&object.path)
        }
    }

    fn may(&self, act: Act, object: &Object) -> Result<(), Errno> {
        let spot = self.spot_of(object);
        judge(act, spot).inspect_err(|_| self.refused.note(spot.refusal()))
    }
}

/// The innermost git directory that a path is in, or is.
fn git_directory(path: &Path) -> Option<&Path> {
    let is_git = |dir: &&Path| {
        dir.file_name()
            .is_some_and(|name| name.eq_ignore_ascii_case(".git"))
    };
    path.ancestors().find(is_git)
}
