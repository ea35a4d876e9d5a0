//! Exceptions: names that are free although they, or names below them, start with a dot.

use serde::{Deserialize, Serialize};
use std::fmt;

/// The exceptions of the built-in configuration: ignore lists, caches, build output and temporary files. No program reads
/// these to run something, unless it was started for that purpose.
pub const DEFAULT_EXCEPTIONS: &[&str] = &[
    ".gitkeep",
    ".keep",
    ".*ignore",
    "target",
    "node_modules",
    "dist",
    "build",
    "__pycache__",
    ".venv",
    ".cache",
    ".*_cache",
    ".tox",
    ".nox",
    ".next",
    ".nuxt",
    ".turbo",
    ".svelte-kit",
    ".gradle",
    ".dart_tool",
    ".nyc_output",
    ".coverage*",
    ".hypothesis",
    ".ipynb_checkpoints",
    ".eslintcache",
    ".tmp*",
    ".*.tmp",
    ".*.sw?",
    ".#*",
    ".nfs*",
    ".fuse_hidden*",
    ".DS_Store",
];

/// The maximum number of exceptions.
pub(crate) const MAX_EXCEPTIONS: usize = 256;
/// The longest name that file systems accept.
const MAX_NAME: usize = 255;

/// An invalid exception.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BadException {
    /// It names several entries, or none.
    NotAName(String),
    /// It would free git directories.
    Git(String),
    /// There are too many exceptions.
    TooMany(usize),
}

impl BadException {
    /// The problem.
    #[must_use]
    pub fn what(&self) -> String {
        match self {
            Self::NotAName(text) => format!("{text:?} is not a file name"),
            Self::Git(text) => format!("{text:?} matches \".git\", which is always protected"),
            Self::TooMany(count) => format!("too many names: {count}"),
        }
    }

    /// How to fix it.
    #[must_use]
    pub const fn fix(&self) -> &'static str {
        match self {
            Self::NotAName(_) => "write one name without slashes, such as \".cache\" or \"target\"",
            Self::Git(_) => "write a name or a pattern that does not match it",
            Self::TooMany(_) => "write at most 256",
        }
    }
}

impl fmt::Display for BadException {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.what(), self.fix())
    }
}

impl std::error::Error for BadException {}

/// One name; `*` stands for any characters, `?` for one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Exception(String);

impl Exception {
    pub(crate) fn parse(text: &str) -> Result<Self, BadException> {
        let exception = Self(text.to_owned());
        if text.is_empty() || text.len() > MAX_NAME || text.contains('/') || [".", ".."].contains(&text) {
            return Err(BadException::NotAName(text.to_owned()));
        }
        if exception.matches(".git") || text.chars().all(|c| "*?".contains(c)) {
            return Err(BadException::Git(text.to_owned()));
        }
        Ok(exception)
    }

    /// One of [`DEFAULT_EXCEPTIONS`], which a test checks with [`Self::parse`].
    pub(crate) fn trusted(text: &str) -> Self {
        Self(text.to_owned())
    }

    pub(crate) fn matches(&self, name: &str) -> bool {
        let (pattern, name): (Vec<char>, Vec<char>) = (self.0.chars().collect(), name.chars().collect());
        wildcard(&pattern, &name)
    }
}

/// Matches with a single backtracking point, so the product of the lengths bounds its time.
fn wildcard(pattern: &[char], name: &[char]) -> bool {
    let (mut at, mut seen) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while let Some(c) = name.get(seen) {
        match pattern.get(at) {
            Some('*') => {
                star = Some((at + 1, seen));
                at += 1;
            }
            Some(p) if p == c || *p == '?' => (at, seen) = (at + 1, seen + 1),
            Some(_) | None => {
                let Some((after, from)) = star else { return false };
                star = Some((after, from + 1));
                (at, seen) = (after, from + 1);
            }
        }
    }
    pattern
        .get(at..)
        .is_some_and(|rest| rest.iter().all(|p| *p == '*'))
}
