//! One running command, as the daemon sees it.

use crate::bounds::Exceeded;
use crate::error::SandboxError;
use crate::frame::{self, Request};
use crate::git_refusals::GitRefusals;
use crate::messages::Outgoing;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::io::AsyncReadExt as _;
use tokio::net::unix::pipe;
use tokio::sync::{mpsc, oneshot};

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exit {
    /// Its exit code, if it exited on its own.
    pub code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// The exceeded bound, which killed this command or what an earlier one had left behind.
    pub exceeded: Option<Exceeded>,
    /// What git was refused while it ran.
    pub refused: GitRefusals,
}

/// The result of [`Running::hear`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Heard {
    /// The number of bytes of output; 0 at the end of the output.
    Output(usize),
    /// The command ended. Unread output may be left.
    Exited(Exit),
}

/// A running command. Dropping it before its end kills it with all its descendants: TERM, and KILL after 500 ms.
#[derive(Debug)]
pub struct Running {
    id: u64,
    pid: u32,
    pub(crate) output: pipe::Receiver,
    pub(crate) exited: oneshot::Receiver<Exit>,
    /// Its output is a terminal, which closes soon after its leader exits.
    pub(crate) at_terminal: bool,
    /// Its output has ended.
    silent: bool,
    /// The repositories whose objects it cannot read.
    pub(crate) denied_history: Arc<[PathBuf]>,
    /// A reserved place in the queue for the kill message, so that the kill cannot fail for lack of room.
    kill: Option<mpsc::OwnedPermit<Outgoing>>,
}

impl Running {
    pub(crate) fn new(
        id: u64,
        output: pipe::Receiver,
        exited: oneshot::Receiver<Exit>,
        kill: mpsc::OwnedPermit<Outgoing>,
        denied_history: Arc<[PathBuf]>,
    ) -> Self {
        Self {
            id,
            pid: 0,
            output,
            exited,
            at_terminal: false,
            silent: false,
            denied_history,
            kill: Some(kill),
        }
    }

    pub(crate) const fn started(&mut self, pid: u32) {
        self.pid = pid;
    }

    /// The command's process id.
    #[must_use]
    pub const fn pid(&self) -> u32 {
        self.pid
    }

    /// Ends the command and its descendants: TERM, and KILL after 500 ms, or KILL at once. Only the first call has an
    /// effect.
    pub fn kill(&mut self, now: bool) {
        if let Some(place) = self.kill.take()
            && let Ok(bytes) = frame::encode(&Request::Kill { id: self.id, now })
        {
            place.send(Outgoing::plain(bytes));
        }
    }

    /// Waits for output, which it writes into `buffer`, or for the command's end. Cancel-safe. Call it until it reports the
    /// command's end, and not after that.
    ///
    /// # Errors
    /// [`SandboxError::WardenGone`] when the warden ended first.
    pub async fn hear(&mut self, buffer: &mut [u8]) -> Result<Heard, SandboxError> {
        if !self.silent {
            tokio::select! {
                read = self.output.read(buffer) => {
                    let count = read.unwrap_or_default();
                    self.silent = count == 0;
                    return Ok(Heard::Output(count));
                }
                exit = &mut self.exited => {
                    self.forget();
                    return exit.map(Heard::Exited).map_err(|_| SandboxError::WardenGone);
                }
            }
        }
        self.exit().await.map(Heard::Exited)
    }

    /// Reads output from before the command's end that is still unread: the number of bytes; 0 when that is all. Reads the
    /// pipe directly: the runtime may not know yet what was written just before the end.
    pub fn unheard(&self, buffer: &mut [u8]) -> usize {
        loop {
            match rustix::io::read(&self.output, &mut *buffer) {
                Ok(count) => return count,
                Err(rustix::io::Errno::INTR) => {}
                Err(_) => return 0,
            }
        }
    }

    /// Nothing is left to kill.
    pub(crate) fn forget(&mut self) {
        self.kill = None;
    }

    /// Waits for the command's end and ignores its output.
    ///
    /// # Errors
    /// [`SandboxError::WardenGone`] when the warden ended first.
    pub async fn exit(&mut self) -> Result<Exit, SandboxError> {
        let exit = (&mut self.exited).await.map_err(|_| SandboxError::WardenGone);
        self.forget();
        exit
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.kill(false);
    }
}
