//! One running command, as the daemon sees it.

use crate::bounds::Exceeded;
use crate::error::SandboxError;
use crate::frame::{self, Request};
use crate::talk::Outgoing;
use tokio::io::AsyncReadExt as _;
use tokio::net::unix::pipe;
use tokio::sync::{mpsc, oneshot};

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exit {
    /// Its exit code, when it ended by itself.
    pub code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// What there was too much of: this killed it, or what an earlier command had left behind.
    pub exceeded: Option<Exceeded>,
}

/// What [`Running::hear`] heard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Heard {
    /// So many bytes of output; 0 when there will be no more.
    Output(usize),
    /// The command ended. Output may be left.
    Exited(Exit),
}

/// A running command. Dropped before its end, it is killed with everything below it: TERM, 500 ms later KILL.
#[derive(Debug)]
pub struct Running {
    id: u64,
    pid: u32,
    pub(crate) output: pipe::Receiver,
    pub(crate) exited: oneshot::Receiver<Exit>,
    /// Its output is a terminal, which ends soon after its leader.
    pub(crate) at_terminal: bool,
    /// Its output has ended.
    silent: bool,
    /// The place in the queue for the kill, taken at the start so that the kill cannot fail for lack of room.
    kill: Option<mpsc::OwnedPermit<Outgoing>>,
}

impl Running {
    pub(crate) const fn new(
        id: u64,
        output: pipe::Receiver,
        exited: oneshot::Receiver<Exit>,
        kill: mpsc::OwnedPermit<Outgoing>,
    ) -> Self {
        Self {
            id,
            pid: 0,
            output,
            exited,
            at_terminal: false,
            silent: false,
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

    /// Tells the command and everything below it to end: TERM and 500 ms later KILL, or KILL at once. The first word
    /// counts; more are not needed.
    pub fn kill(&mut self, now: bool) {
        if let Some(place) = self.kill.take()
            && let Ok(bytes) = frame::encode(&Request::Kill { id: self.id, now })
        {
            place.send(Outgoing::plain(bytes));
        }
    }

    /// Waits for output, which is put into `buffer`, or for the command's end. Safe to be cancelled. To be called until
    /// it says that the command ended, and not after that.
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

    /// What it wrote before it ended and nobody heard: how many bytes; 0 when that is all. The kernel is asked: the
    /// runtime may not know yet what was written just before the end.
    pub fn unheard(&self, buffer: &mut [u8]) -> usize {
        loop {
            match rustix::io::read(&self.output, &mut *buffer) {
                Ok(count) => return count,
                Err(rustix::io::Errno::INTR) => {}
                Err(_) => return 0,
            }
        }
    }

    /// There is nothing to kill any more.
    pub(crate) fn forget(&mut self) {
        self.kill = None;
    }

    /// Waits for the command's end, whatever becomes of its output.
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
