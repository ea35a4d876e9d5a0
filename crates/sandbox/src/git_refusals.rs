//! Why git was refused something, for the result of the command that ran it: git itself says only "Permission denied".

use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

/// Why a command may not write in a git directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum GitRefusal {
    /// Commands only read the repository, or this part of it.
    Kept = 1,
    /// A setting decides what git runs, or where a person pushes.
    Setting = 2,
    /// A file decides what git runs or shows.
    Metadata = 4,
    /// A step of a rebase runs a program, or the list of the steps was to be written in place.
    Steps = 8,
}

/// What git was refused while a command ran. If several ran at once, it may have been another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct GitRefusals(u8);

impl GitRefusals {
    /// Whether this is one of the reasons.
    #[must_use]
    pub const fn has(self, reason: GitRefusal) -> bool {
        self.0 & reason as u8 != 0
    }

    /// Whether nothing was refused.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0 == 0
    }
}

impl FromIterator<GitRefusal> for GitRefusals {
    fn from_iter<T: IntoIterator<Item = GitRefusal>>(reasons: T) -> Self {
        Self(reasons.into_iter().fold(0, |all, reason| all | reason as u8))
    }
}

/// The reasons since the end of the last command: the broker notes them, the warden takes them.
#[derive(Debug, Clone, Default)]
pub(crate) struct GitRefused(Arc<AtomicU8>);

impl GitRefused {
    pub(crate) fn note(&self, reason: Option<GitRefusal>) {
        if let Some(reason) = reason {
            self.0.fetch_or(reason as u8, Ordering::Relaxed);
        }
    }

    pub(crate) fn take(&self) -> GitRefusals {
        GitRefusals(self.0.swap(0, Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_taken_once() {
        let refused = GitRefused::default();
        refused.note(None);
        assert!(refused.take().is_empty());
        let noted = refused.clone();
        noted.note(Some(GitRefusal::Kept));
        refused.note(Some(GitRefusal::Steps));
        let taken = refused.take();
        assert_eq!(taken, [GitRefusal::Kept, GitRefusal::Steps].into_iter().collect());
        assert!(taken.has(GitRefusal::Kept) && !taken.has(GitRefusal::Setting));
        assert!(refused.take().is_empty());
    }
}
