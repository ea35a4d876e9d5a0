//! The daemon's connection to the fork server.

use crate::deadline;
use crate::error::SandboxError;
use crate::fork_server::{Birth, Born, FORK_SERVER_ARG};
use crate::mark;
use crate::passing::{receive, send};
use crate::processes::read;
use crate::resident::WARDEN_ARG;
use rustix::fd::{AsFd as _, OwnedFd};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// The fork server's deadline for an answer.
const WORD_WITHIN: Duration = Duration::from_secs(10);

/// The connection, opened when first needed, and reopened when the fork server is gone.
#[derive(Debug, Default)]
pub(crate) struct Line {
    open: Option<Open>,
    /// Fork servers that did not answer in time; they exit after their wardens.
    left: Vec<Child>,
    /// Children that were started without the fork server, by pid, with start times: pids are reused.
    beside: BTreeMap<i32, u64>,
}

#[derive(Debug)]
struct Open {
    exe: PathBuf,
    socket: UnixStream,
    child: Child,
}

/// Why there is no warden.
enum Trouble {
    /// The fork server is dead: it will not answer the pending request any more.
    Dead,
    /// It does not answer, and may still carry out the request later.
    Stuck,
    /// It cannot be started, or the kernel cannot create a process.
    Said(io::Error),
}

impl Line {
    /// Forks a warden with the socket `socket`. Returns the descriptor of its process. Blocks.
    ///
    /// # Errors
    /// When no fork server runs and none can be started, when it hangs, or when the kernel cannot create a process.
    pub(crate) fn ask(&mut self, exe: &Path, birth: &Birth, socket: &OwnedFd) -> io::Result<OwnedFd> {
        let answer = match self.once(exe, birth, socket) {
            Err(Trouble::Dead) => self.once(exe, birth, socket),
            answer => answer,
        };
        answer.map_err(|trouble| match trouble {
            Trouble::Dead => io::Error::other("the fork server for wardens ends at once"),
            Trouble::Stuck => io::Error::other("the fork server for wardens does not answer"),
            Trouble::Said(error) => error,
        })
    }

    fn once(&mut self, exe: &Path, birth: &Birth, socket: &OwnedFd) -> Result<OwnedFd, Trouble> {
        self.left.retain_mut(|child| matches!(child.try_wait(), Ok(None)));
        if self.open.as_ref().is_some_and(|open| open.exe != exe) {
            self.hang_up();
        }
        let open = match &self.open {
            Some(open) => open,
            None => self.open.insert(Open::start(exe).map_err(Trouble::Said)?),
        };
        let descriptors: Vec<_> = std::iter::once(socket.as_fd())
            .chain(deadline::for_a_warden())
            .collect();
        let sent = send(&open.socket, birth, &descriptors);
        match sent.and_then(|()| receive::<Born>(&open.socket)) {
            Ok((Born::Alive, descriptors)) => descriptors.into_iter().next().ok_or(Trouble::Stuck),
            Ok((Born::Not { message }, _)) => Err(Trouble::Said(io::Error::other(message))),
            Err(error) => {
                self.hang_up();
                Err(match error {
                    SandboxError::WardenGone => Trouble::Dead,
                    _ => Trouble::Stuck,
                })
            }
        }
    }

    /// Records a child that was started without the fork server.
    pub(crate) fn note(&mut self, child: Option<u32>) {
        let process = child.and_then(|pid| read(i32::try_from(pid).ok()?));
        self.beside
            .extend(process.map(|process| (process.pid, process.started)));
    }

    /// The children that were started here and not reaped yet.
    pub(crate) fn own_children(&mut self) -> BTreeSet<i32> {
        // A fork server that was reaped does not count: another process may have its pid.
        if let Some(open) = &mut self.open
            && !matches!(open.child.try_wait(), Ok(None))
        {
            self.open = None;
        }
        self.left.retain_mut(|child| matches!(child.try_wait(), Ok(None)));
        self.beside
            .retain(|pid, started| read(*pid).is_some_and(|process| process.started == *started));
        let fork_servers = self.open.iter().map(|open| &open.child).chain(&self.left);
        let fork_servers = fork_servers.filter_map(|child| i32::try_from(child.id()).ok());
        fork_servers.chain(self.beside.keys().copied()).collect()
    }

    /// Abandons the fork server: it exits when it has noticed that, and after its wardens.
    fn hang_up(&mut self) {
        self.left.extend(self.open.take().map(|open| open.child));
    }
}

impl Open {
    #[expect(
        clippy::disallowed_methods,
        reason = "this is where the fork_server is started"
    )]
    fn start(exe: &Path) -> io::Result<Self> {
        let (socket, theirs) = UnixStream::pair()?;
        socket.set_read_timeout(Some(WORD_WITHIN))?;
        socket.set_write_timeout(Some(WORD_WITHIN))?;
        let child = Command::new(exe)
            .arg0("agentd-warden")
            .args([WARDEN_ARG, FORK_SERVER_ARG])
            .env_clear()
            .env(mark::NAME, mark::of_the_fork_server())
            .current_dir("/")
            .stdin(OwnedFd::from(theirs))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        Ok(Self {
            exe: exe.to_owned(),
            socket,
            child,
        })
    }
}
