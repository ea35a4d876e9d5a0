//! The errors that prevent a start.

use crate::origin::Origin;
use std::fmt;
use std::path::PathBuf;

/// One problem in the configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Where the value was set, if known.
    pub origin: Option<Origin>,
    /// The key, such as `loop.max_turns`; empty if the file is not TOML.
    pub key: String,
    /// The problem.
    pub what: String,
    /// How to fix it.
    pub fix: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(origin) = &self.origin {
            write!(f, "{origin}: ")?;
        }
        if !self.key.is_empty() {
            write!(f, "{}: ", self.key)?;
        }
        write!(f, "{}; {}", self.what, self.fix)
    }
}

fn lines(problems: &[Problem]) -> String {
    problems
        .iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join("\n")
}

/// Why the configuration cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    /// A file cannot be read.
    #[error("cannot read the configuration file {}: {source}; make it readable or name another with --config", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// Keys are unknown, of the wrong type, or out of range.
    #[error("{}", lines(.0))]
    Invalid(Vec<Problem>),
}
