//! Gives a command its controlling terminal: between the fork and the command, the program itself runs for a moment, starts
//! a session, acquires the terminal, and executes the command.

use crate::resident::WARDEN_ARG;
use rustix::process::{ioctl_tiocsctty, setsid};
use std::ffi::OsString;
use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitCode};

/// The second argument of a warden that acquires a terminal and executes a command.
const TERMINAL_ARG: &str = "terminal";
/// The program's path for its children, inside every sandbox.
pub(crate) const OWN_PROGRAM: &str = "/proc/self/exe";
/// The exit code that shells use when a program cannot be run.
const CANNOT_RUN: u8 = 126;

/// The arguments that start a command at the terminal on its standard input.
pub(crate) fn words(argv: &[String]) -> Vec<String> {
    let ours = [OWN_PROGRAM, WARDEN_ARG, TERMINAL_ARG].map(str::to_owned);
    ours.into_iter().chain(argv.iter().cloned()).collect()
}

/// Executes the command in the arguments. Returns `None` if they name none, and an exit code on failure.
pub(crate) fn asked() -> Option<ExitCode> {
    let mut words = std::env::args_os().skip(2);
    if words.next()? != TERMINAL_ARG {
        return None;
    }
    let error = become_command(words);
    // Only the terminal can show the error.
    let _ = writeln!(std::io::stderr(), "cannot start the command: {error}");
    Some(ExitCode::from(CANNOT_RUN))
}

#[expect(
    clippy::disallowed_methods,
    reason = "this is where the commands of sessions are started"
)]
fn become_command(mut words: impl Iterator<Item = OsString>) -> std::io::Error {
    let Some(program) = words.next() else {
        return std::io::Error::from(std::io::ErrorKind::InvalidInput);
    };
    // Runs nothing without its own terminal.
    if let Err(errno) = setsid().and_then(|_| ioctl_tiocsctty(std::io::stdin())) {
        return errno.into();
    }
    Command::new(program).args(words).exec()
}
