//! How a command gets the terminal that it is started at: between the fork and the command the program itself runs for a
//! moment, leads a session, takes the terminal, and becomes the command.

use crate::resident::WARDEN_ARG;
use rustix::process::{ioctl_tiocsctty, setsid};
use std::ffi::OsString;
use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitCode};

/// The second argument of a warden that takes a terminal and becomes a command.
const TERMINAL_ARG: &str = "terminal";
/// The program as its children find it, inside of every wall.
pub(crate) const OWN_PROGRAM: &str = "/proc/self/exe";
/// As shells have it, when a program cannot be run.
const CANNOT_RUN: u8 = 126;

/// The words that start a command at the terminal that is its standard input.
pub(crate) fn words(argv: &[String]) -> Vec<String> {
    let ours = [OWN_PROGRAM, WARDEN_ARG, TERMINAL_ARG].map(str::to_owned);
    ours.into_iter().chain(argv.iter().cloned()).collect()
}

/// Becomes the command of the arguments. Nothing when they name none; an exit code when it could not be done.
pub(crate) fn asked() -> Option<ExitCode> {
    let mut words = std::env::args_os().skip(2);
    if words.next()? != TERMINAL_ARG {
        return None;
    }
    let error = become_command(words);
    // The terminal is the only one who hears it.
    let _ = writeln!(std::io::stderr(), "the command was not started: {error}");
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
    // Without a terminal of its own nothing is run at it.
    if let Err(errno) = setsid().and_then(|_| ioctl_tiocsctty(std::io::stdin())) {
        return errno.into();
    }
    Command::new(program).args(words).exec()
}
