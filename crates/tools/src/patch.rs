//! Patches in the `*** Begin Patch` envelope: what they say, and what comes of them. Pure.

mod locate;
mod parse;
mod plan;
mod text;

#[cfg(test)]
mod tests;

pub(crate) use locate::Misfit;
pub(crate) use parse::parse;
pub(crate) use plan::{Known, Mark, Plan, Refused, plan};

use std::path::PathBuf;

/// The longest patch.
pub(crate) const MAX_BYTES: usize = 1 << 20;
/// The most files of a patch.
pub(crate) const MAX_FILES: usize = 64;
/// The most hunks of a patch.
pub(crate) const MAX_HUNKS: usize = 512;

/// What a patch says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Patch {
    /// Its parts, at least one.
    pub(crate) sections: Vec<Section>,
}

/// What is done to one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Section {
    /// A file with this content.
    Add { path: PathBuf, content: String },
    /// A file less.
    Delete { path: PathBuf },
    /// Another content, and perhaps another path.
    Update {
        path: PathBuf,
        to: Option<PathBuf>,
        hunks: Vec<Hunk>,
    },
}

/// A place in a file, and what becomes of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Hunk {
    /// Where it begins in the patch.
    pub(crate) at: usize,
    /// Lines of the file that come somewhere before it, in this order.
    pub(crate) contexts: Vec<String>,
    /// The lines, from first to last.
    pub(crate) lines: Vec<Line>,
    /// Whether the place is the end of the file.
    pub(crate) at_end: bool,
}

/// A line of a hunk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Line {
    /// It is there and stays.
    Keep(String),
    /// It is there and goes.
    Remove(String),
    /// It comes.
    Add(String),
}

impl Line {
    /// The text, when it is in the file before the change.
    pub(crate) fn old(&self) -> Option<&str> {
        match self {
            Self::Keep(text) | Self::Remove(text) => Some(text),
            Self::Add(_) => None,
        }
    }
}

/// A text that is no patch, or one that is not taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Malformed {
    /// What is wrong, with the line of the patch, from 1.
    Line { at: usize, why: String },
    /// It leads out of the working directory.
    Outside { path: String },
    /// It has too much of something.
    TooMuch {
        what: &'static str,
        found: usize,
        max: usize,
    },
}

impl Patch {
    /// All paths that it touches, each once, in the order of their coming.
    pub(crate) fn paths(&self) -> Vec<PathBuf> {
        let mut paths = Vec::new();
        for section in &self.sections {
            let (path, to) = match section {
                Section::Add { path, .. } | Section::Delete { path } => (path, None),
                Section::Update { path, to, .. } => (path, to.as_ref()),
            };
            for path in [Some(path), to].into_iter().flatten() {
                if !paths.contains(path) {
                    paths.push(path.clone());
                }
            }
        }
        paths
    }
}
