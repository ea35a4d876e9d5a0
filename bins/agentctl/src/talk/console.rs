//! The terminal of a person who types. It gives keys one by one while this has it, and lines again afterwards.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::getpgrp;
use rustix::termios::{
    LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcgetpgrp, tcsetattr,
};
use std::io::{self, Stdin};
use tokio::task::{JoinHandle, spawn_blocking};

/// Bytes that are read together.
const PIECE: usize = 4_096;
/// More than this is not read at once; the rest comes with the next call.
const MOST: usize = 16 * PIECE;

/// stdin, once it is wanted.
#[derive(Debug, Default)]
pub(crate) struct Console {
    terminal: Option<Terminal>,
    /// Ends when a key is there; it reads nothing, so what is typed stays where it is until somebody looks.
    key: Option<JoinHandle<()>>,
    ended: bool,
}

/// What was typed before the terminal was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Before {
    /// It counts.
    Keep,
    /// It was for something else.
    Drop,
}

/// A terminal that gives keys; as it was before when this is dropped.
#[derive(Debug)]
struct Terminal {
    stdin: Stdin,
    before: Termios,
    keys: Termios,
}

impl Console {
    /// Whether something can still come.
    pub(crate) const fn open(&self) -> bool {
        !self.ended
    }

    /// Whether this has the terminal, and is the job that the shell lets use it.
    pub(crate) fn holds(&self) -> bool {
        self.terminal.is_some() && in_foreground()
    }

    /// Takes the terminal. A job in the background would be stopped for it, so it waits until it is in the foreground.
    pub(crate) fn take(&mut self, before: Before) {
        if self.terminal.is_some() || self.ended || !in_foreground() {
            return;
        }
        match Terminal::take(before) {
            Ok(terminal) => self.terminal = Some(terminal),
            // Nobody can type there.
            Err(_) => self.ended = true,
        }
    }

    /// The process was stopped and goes on: the shell has set the terminal as it likes it.
    pub(crate) fn again(&self) {
        if let Some(terminal) = self.terminal.as_ref().filter(|_| in_foreground()) {
            let _ = tcsetattr(&terminal.stdin, OptionalActions::Now, &terminal.keys);
        }
    }

    /// What is typed next; nothing at the end. Cancel-safe.
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

    /// What has been typed by now.
    pub(crate) fn waiting(&self) -> Vec<u8> {
        let terminal = self.terminal.as_ref().filter(|_| !self.ended && in_foreground());
        // An end is seen again by who waits for it.
        terminal.map_or_else(Vec::new, |terminal| read(&terminal.stdin).unwrap_or_default())
    }
}

impl Terminal {
    fn take(what: Before) -> io::Result<Self> {
        let stdin = io::stdin();
        let before = tcgetattr(&stdin)?;
        let mut keys = before.clone();
        // Ctrl-C and Ctrl-Z stay signals.
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
        // What was typed and not read was for this program, not for the shell.
        if in_foreground() {
            let _ = tcsetattr(&self.stdin, OptionalActions::Flush, &self.before);
        }
    }
}

/// Whether the shell lets this job use the terminal. Where that cannot be asked, nobody forbids it.
fn in_foreground() -> bool {
    tcgetpgrp(io::stdin()).map_or(true, |foreground| foreground == getpgrp())
}

/// Waits for a key, or for the end.
fn until_a_key() {
    let stdin = io::stdin();
    let _ = poll(&mut [PollFd::new(&stdin, PollFlags::IN)], None);
}

/// What is there, without waiting; an error at the end.
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
