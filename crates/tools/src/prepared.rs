//! A call that was checked.

use agentd_protocol::EffectClass;
use agentd_sandbox::Beneath;
use serde_json::Value;
use std::path::Path;

/// What is done to a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PathOp {
    /// It is read.
    Read,
    /// It is written.
    Write,
}

/// What a call is about: what the gate judges.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subject {
    /// A file or directory.
    Path {
        /// What is done to it.
        op: PathOp,
        /// Relative to the working directory (`.` is the directory itself), without `.` and `..` inside; absolute where it was given so.
        path: String,
    },
    /// A command line.
    Command {
        /// The text that the shell gets.
        command: String,
    },
    /// An address.
    Url(String),
    /// Nothing outside the session.
    Nothing,
}

/// A call that was checked: its tool exists, its arguments fit.
#[derive(Debug, Clone, PartialEq)]
pub struct Prepared {
    /// The canonical name.
    pub name: &'static str,
    /// The arguments under their canonical names.
    pub input: Value,
    /// One line for people.
    pub title: String,
    /// What it does to the world.
    pub effect: EffectClass,
    /// Whether it may be run again after a crash.
    pub idempotent: bool,
    /// What the gate judges.
    pub subject: Subject,
}

impl Prepared {
    /// The same call with absolute paths inside the working directory made relative; pure.
    #[must_use]
    pub fn within(self, _workdir: &Path) -> Self {
        self
    }

    /// What exactly will happen: the command, or the change as a diff. Reads files: not for an actor's handler.
    #[must_use]
    pub fn detail(&self, _workdir: &Beneath) -> String {
        todo!()
    }
}
