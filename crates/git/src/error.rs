//! Why git did not do what it was asked to.

use std::io;
use std::time::Duration;

/// Why git did not do what it was asked to.
#[derive(Debug, thiserror::Error)]
pub enum GitError {
    /// This machine has no git.
    #[error("git is not installed")]
    Missing,
    /// It failed.
    #[error("git {command}: {message}")]
    Failed {
        /// The git command.
        command: String,
        /// What it said.
        message: String,
    },
    /// It did not end in time.
    #[error("git {command} did not end within {} s", within.as_secs())]
    Slow {
        /// The git command.
        command: String,
        /// The time limit.
        within: Duration,
    },
    /// It could not be started or watched.
    #[error("git {command}: {error}")]
    Io {
        /// The git command.
        command: String,
        /// The reason.
        error: io::Error,
    },
}

impl GitError {
    pub(crate) fn not_started(command: String, error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NotFound => Self::Missing,
            _ => Self::Io { command, error },
        }
    }
}

/// The most characters of a message that are kept.
const MAX_CHARS: usize = 2_000;

/// The first lines of what git wrote to standard error, without its prefixes; its exit code if it wrote nothing.
#[must_use]
pub fn words(errors: &[u8], code: Option<i32>) -> String {
    let text = String::from_utf8_lossy(errors);
    let lines: Vec<&str> = text
        .lines()
        .map(|line| {
            line.trim_start_matches("fatal: ")
                .trim_start_matches("error: ")
                .trim()
        })
        .filter(|line| !line.is_empty())
        .take(3)
        .collect();
    if lines.is_empty() {
        return code.map_or_else(
            || "ended by a signal".to_owned(),
            |code| format!("exit status {code}"),
        );
    }
    let shown = lines.join("; ");
    shown
        .chars()
        .filter(|c| !c.is_control())
        .take(MAX_CHARS)
        .collect()
}
