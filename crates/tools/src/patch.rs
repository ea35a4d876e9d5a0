//! Patches in the `*** Begin Patch` envelope: their syntax and their effect. Pure.

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

/// The largest patch.
pub(crate) const MAX_BYTES: usize = 1 << 20;
/// The most files per patch.
pub(crate) const MAX_FILES: usize = 64;
/// The most hunks per patch.
pub(crate) const MAX_HUNKS: usize = 512;

/// A parsed patch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Patch {
    /// Its parts, at least one.
    pub(crate) sections: Vec<Section>,
}

/// The change of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Section {
    /// Creates a file with this content.
    Add { path: PathBuf, content: String },
    /// Deletes a file.
    Delete { path: PathBuf },
    /// Changes the content of a file, and perhaps its path.
    Update {
        path: PathBuf,
        to: Option<PathBuf>,
        hunks: Vec<Hunk>,
    },
}

/// A place in a file and its change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Hunk {
    /// Its line number in the patch.
    pub(crate) at: usize,
    /// Lines of the file that occur somewhere before it, in this order.
    pub(crate) contexts: Vec<String>,
    /// Its lines, in order.
    pub(crate) lines: Vec<Line>,
    /// Whether it is anchored at the end of the file.
    pub(crate) at_end: bool,
}

/// A line of a hunk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Line {
    /// An unchanged line.
    Keep(String),
    /// A removed line.
    Remove(String),
    /// An added line.
    Add(String),
}

impl Line {
    /// The text, if it is in the file before the change.
    pub(crate) fn old(&self) -> Option<&str> {
        match self {
            Self::Keep(text) | Self::Remove(text) => Some(text),
            Self::Add(_) => None,
        }
    }
}

/// A text that is not a valid patch, or that is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Malformed {
    /// A syntax error, with the line of the patch, from 1.
    Line { at: usize, why: String },
    /// A path leads out of the working directory.
    Outside { path: String },
    /// The patch exceeds a limit.
    TooMuch {
        what: &'static str,
        found: usize,
        max: usize,
    },
}

impl Patch {
    /// All paths that it touches, each once, in order of first appearance.
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
