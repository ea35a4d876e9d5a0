//! The terminal of a person who types. It gives single keys while this program holds it, and lines afterwards.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::getpgrp;
use rustix::termios::{
    LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcgetpgrp, tcsetattr,
};
use std::io::{self, Stdin};
use tokio::task::{JoinHandle, spawn_blocking};

/// Bytes per read.
const PIECE: usize = 4_096;
/// The most bytes returned by one call; the next call returns the rest.
const MOST: usize = 16 * PIECE;

/// stdin, once it is needed.
#[derive(Debug, Default)]
pub(crate) struct Console {
    terminal: Option<Terminal>,
    /// Completes when input is available. It does not read, so typed input stays in the terminal until it is wanted.
    key: Option<JoinHandle<()>>,
    ended: bool,
}

/// What to do with input that was typed before this program took the terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Before {
    /// Use it.
    Keep,
    /// Discard it: it was meant for something else.
    Drop,
}

/// A terminal in key mode. Dropping this restores the previous mode.
#[derive(Debug)]
struct Terminal {
    stdin: Stdin,
    before: Termios,
    keys: Termios,
}

impl Console {
    /// Whether more input can come.
    pub(crate) const fn open(&self) -> bool {
        !self.ended
    }

    /// Whether this program holds the terminal and is the foreground job.
    pub(crate) fn holds(&self) -> bool {
        self.terminal.is_some() && in_foreground()
    }

    /// Takes the terminal. A background job would be stopped by the attempt, so it waits for the foreground.
    pub(crate) fn take(&mut self, before: Before) {
        if self.terminal.is_some() || self.ended || !in_foreground() {
            return;
        }
        match Terminal::take(before) {
            Ok(terminal) => self.terminal = Some(terminal),
            // stdin is not a usable terminal.
            Err(_) => self.ended = true,
        }
    }

    /// The process continues after a stop: sets the mode again, because the shell has changed it.
    pub(crate) fn again(&self) {
        if let Some(terminal) = self.terminal.as_ref().filter(|_| in_foreground()) {
            let _ = tcsetattr(&terminal.stdin, OptionalActions::Now, &terminal.keys);
        }
    }

    /// The next typed bytes; empty at the end of input. Cancel-safe.
    pub(crate) async fn keys(&mut self) -> Vec<u8> {
        let Some(terminal) = &self.terminal else {
            return std::future::pending().await;
        };
        loop {
            #[expect(clippy::disallowed_methods, reason = "the terminal is read here")]
            let key = self.key.get_or_insert_with(|| spawn_blocking(until_a_key));
            let _ = key.await;
            self.key = None;
            if !in_foreground() {
                return std::future::pending().await;
            }
            match read(&terminal.stdin) {
                Ok(typed) if typed.is_empty() => {}
                Ok(typed) => return typed,
                Err(_) => {
                    self.ended = true;
                    return Vec::new();
                }
            }
        }
    }

    /// The bytes typed so far, without waiting.
    pub(crate) fn waiting(&self) -> Vec<u8> {
        let terminal = self.terminal.as_ref().filter(|_| !self.ended && in_foreground());
        // `keys` reports the end of input.
        terminal.map_or_else(Vec::new, |terminal| read(&terminal.stdin).unwrap_or_default())
    }
}

impl Terminal {
    fn take(what: Before) -> io::Result<Self> {
        let stdin = io::stdin();
        let before = tcgetattr(&stdin)?;
        let mut keys = before.clone();
        // Ctrl-C and Ctrl-Z still raise signals.
        keys.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO);
        keys.special_codes[SpecialCodeIndex::VMIN] = 0;
        keys.special_codes[SpecialCodeIndex::VTIME] = 0;
        let when = match what {
            Before::Keep => OptionalActions::Now,
            Before::Drop => OptionalActions::Flush,
        };
        tcsetattr(&stdin, when, &keys)?;
        Ok(Self { stdin, before, keys })
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // Unread input was meant for this program, not for the shell, so it is flushed.
        if in_foreground() {
            let _ = tcsetattr(&self.stdin, OptionalActions::Flush, &self.before);
        }
    }
}

/// Whether this is the foreground job of the terminal; true if that is unknown.
fn in_foreground() -> bool {
    tcgetpgrp(io::stdin()).map_or(true, |foreground| foreground == getpgrp())
}

/// Waits for input or its end.
fn until_a_key() {
    let stdin = io::stdin();
    let _ = poll(&mut [PollFd::new(&stdin, PollFlags::IN)], None);
}

/// The input that is available, without waiting; an error at the end of input.
fn read(stdin: &Stdin) -> io::Result<Vec<u8>> {
    let mut typed = Vec::new();
    while typed.len() < MOST {
        let mut fds = [PollFd::new(stdin, PollFlags::IN)];
        if poll(&mut fds, Some(&Timespec::default()))? == 0 {
            break;
        }
        let mut piece = [0; PIECE];
        let count = rustix::io::read(stdin, &mut piece)?;
        if count == 0 && typed.is_empty() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        typed.extend_from_slice(piece.get(..count).unwrap_or_default());
        if count < PIECE {
            break;
        }
    }
    Ok(typed)
}
