//! The daemon's line to the nursery.

use crate::error::SandboxError;
use crate::nursery::{Birth, Born, NURSERY_ARG};
use crate::passing::{receive, send};
use crate::resident::WARDEN_ARG;
use rustix::fd::{AsFd as _, OwnedFd};
use std::io;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// How long the nursery may take for a word.
const WORD_WITHIN: Duration = Duration::from_secs(10);
/// A process without any environment could be one that is just becoming another program
/// ([`crate::processes::kill_marked`]), so this one has some.
const ROLE: (&str, &str) = ("AGENTD_ROLE", "nursery");

/// The line, opened when it is first needed, and again when the nursery is gone.
#[derive(Debug, Default)]
pub(crate) struct Line {
    open: Option<Open>,
    /// Nurseries that did not answer in time; they end when their wardens have.
    left: Vec<Child>,
}

#[derive(Debug)]
struct Open {
    exe: PathBuf,
    socket: UnixStream,
    child: Child,
}

/// Why there is no warden.
enum Trouble {
    /// The nursery is dead: what it was asked for will not come any more.
    Dead,
    /// It does not answer, and may do later what it was asked for.
    Stuck,
    /// It cannot be started, or the kernel gives no process.
    Said(io::Error),
}

impl Line {
    /// Has a warden forked whose socket is `socket`. The descriptor of its process. Blocks.
    ///
    /// # Errors
    /// When there is no nursery and none can be started, it is stuck, or the kernel gives no process.
    pub(crate) fn ask(&mut self, exe: &Path, birth: &Birth, socket: &OwnedFd) -> io::Result<OwnedFd> {
        let answer = match self.once(exe, birth, socket) {
            Err(Trouble::Dead) => self.once(exe, birth, socket),
            answer => answer,
        };
        answer.map_err(|trouble| match trouble {
            Trouble::Dead => io::Error::other("the process that wardens are forked from ends at once"),
            Trouble::Stuck => io::Error::other("the process that wardens are forked from does not answer"),
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
        let sent = send(&open.socket, birth, &[socket.as_fd()]);
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

    /// Leaves the nursery to itself: it ends when it has seen that, and its wardens have ended.
    fn hang_up(&mut self) {
        self.left.extend(self.open.take().map(|open| open.child));
    }
}

impl Open {
    #[expect(clippy::disallowed_methods, reason = "this is where the nursery is started")]
    fn start(exe: &Path) -> io::Result<Self> {
        let (socket, theirs) = UnixStream::pair()?;
        socket.set_read_timeout(Some(WORD_WITHIN))?;
        socket.set_write_timeout(Some(WORD_WITHIN))?;
        let child = Command::new(exe)
            .arg0("agentd-warden")
            .args([WARDEN_ARG, NURSERY_ARG])
            .env_clear()
            .envs([ROLE])
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
