//! Commands with their own terminal: a pseudo terminal instead of pipes.

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

/// A terminal's size in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TerminalSize {
    /// Characters per line.
    pub columns: u16,
    /// Lines.
    pub rows: u16,
}

/// The input of a command's terminal.
#[derive(Debug)]
pub struct Keyboard(pipe::Sender);

impl Keyboard {
    /// Types this. If the command does not read, its terminal fills up; the call then fails after `within`, and part of the
    /// input may have been typed.
    ///
    /// # Errors
    /// When the terminal accepts no more input, or no process uses it any more.
    pub async fn type_in(&mut self, bytes: &[u8], within: Duration) -> io::Result<()> {
        timeout(within, self.0.write_all(bytes))
            .await
            .map_err(|_| io::Error::from(io::ErrorKind::TimedOut))?
    }
}

/// A running command at a terminal.
#[derive(Debug)]
pub struct AtTerminal {
    /// Its input.
    pub keyboard: Keyboard,
    /// The command; its output is everything written to its terminal. Dropping it kills the command.
    pub running: Running,
}

impl Warden {
    /// Starts a command that leads its own session, at a terminal that no other command shares. Dropping
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

/// Both ends of a new terminal: ours, which does not block, and the command's. Neither becomes our controlling terminal.
fn pair(size: TerminalSize) -> io::Result<(OwnedFd, OwnedFd)> {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let ours = openpt(flags)?;
    unlockpt(&ours)?;
    // Opened by its number and not by its path, which differs where the command has its own /dev.
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
