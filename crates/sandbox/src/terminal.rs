//! Commands at a terminal of their own: a pseudo terminal instead of pipes.

use crate::error::SandboxError;
use crate::running::Running;
use crate::warden::{CommandSpec, Stdio, Warden};
use rustix::fd::{AsFd as _, OwnedFd};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::pty::{OpenptFlags, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use std::io;
use std::time::Duration;
use tokio::io::AsyncWriteExt as _;
use tokio::net::unix::pipe;
use tokio::time::timeout;

/// How many characters a terminal shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TerminalSize {
    /// In a line.
    pub columns: u16,
    /// Lines.
    pub rows: u16,
}

/// What is typed into the terminal of a command.
#[derive(Debug)]
pub struct Keyboard(pipe::Sender);

impl Keyboard {
    /// Types this. A command that does not read lets its terminal fill up; then it fails after `within`, and some of it
    /// may have been typed.
    ///
    /// # Errors
    /// When the terminal takes no more, or nobody is at it any more.
    pub async fn type_in(&mut self, bytes: &[u8], within: Duration) -> io::Result<()> {
        timeout(within, self.0.write_all(bytes))
            .await
            .map_err(|_| io::Error::from(io::ErrorKind::TimedOut))?
    }
}

/// A running command at a terminal.
#[derive(Debug)]
pub struct AtTerminal {
    /// What it reads comes from here.
    pub keyboard: Keyboard,
    /// The command; what is heard of it is all that goes to its terminal. Dropping it kills the command.
    pub running: Running,
}

impl Warden {
    /// Starts a command that leads a session of its own, at a terminal that nothing else shares. Dropping
    /// [`AtTerminal::running`] kills it.
    ///
    /// # Errors
    /// As for [`Warden::run`].
    pub async fn run_at_terminal(
        &self,
        command: CommandSpec,
        size: TerminalSize,
    ) -> Result<AtTerminal, SandboxError> {
        let (ours, theirs) = pair(size).map_err(failed)?;
        let screen = ours.try_clone().map_err(failed)?;
        let keyboard = Keyboard(pipe::Sender::from_owned_fd_unchecked(ours).map_err(failed)?);
        let screen = pipe::Receiver::from_owned_fd_unchecked(screen).map_err(failed)?;
        let descriptors = vec![
            theirs.try_clone().map_err(failed)?,
            theirs.try_clone().map_err(failed)?,
            theirs,
        ];
        let mut running = self.start(command, screen, descriptors, Stdio::Terminal).await?;
        running.at_terminal = true;
        Ok(AtTerminal { keyboard, running })
    }
}

/// Both ends of a new terminal: ours, which does not block, and the command's. Neither becomes ours to be controlled by.
fn pair(size: TerminalSize) -> io::Result<(OwnedFd, OwnedFd)> {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let ours = openpt(flags)?;
    unlockpt(&ours)?;
    // By its number and not by its path, which is another one where the command has its own /dev.
    let theirs = ioctl_tiocgptpeer(&ours, flags)?;
    let size = Winsize {
        ws_row: size.rows,
        ws_col: size.columns,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    tcsetwinsize(&ours, size)?;
    fcntl_setfl(ours.as_fd(), fcntl_getfl(&ours)? | OFlags::NONBLOCK)?;
    Ok((ours, theirs))
}

fn failed(source: io::Error) -> SandboxError {
    SandboxError::Io {
        action: "open",
        path: "a terminal".to_owned(),
        source,
    }
}
