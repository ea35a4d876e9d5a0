//! Where a path lies: which places commands may write, and which names in them are protected.

use agentd_protected::{Class, ProtectedPaths};
use std::path::{Path, PathBuf};

/// What is known of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Spot {
    /// Where commands write nothing.
    Outside,
    /// A device: nobody's in particular. Landlock knows which of them may be written.
    Device,
    /// A place of the session's own that nobody else looks into: every name is free.
    Loose,
    /// In the working directory.
    Guarded {
        class: Class,
        /// At or below an exception: names are free that are protected elsewhere.
        excepted: bool,
    },
    /// The top of a place.
    Top,
    /// It has no name any more, or never had one: pipes, sockets, files in memory.
    Nameless,
}

impl Spot {
    /// In a git directory, or one itself.
    pub(super) const fn is_in_git(self) -> bool {
        match self {
            Self::Guarded { class, .. } => match class {
                Class::GitData | Class::GitSetup | Class::GitDirectory | Class::GitConfig => true,
                Class::Free | Class::Protected(_) => false,
            },
            Self::Outside | Self::Device | Self::Loose | Self::Top | Self::Nameless => false,
        }
    }

    /// The configuration of a repository.
    pub(super) const fn is_git_config(self) -> bool {
        matches!(
            self,
            Self::Guarded {
                class: Class::GitConfig,
                ..
            }
        )
    }
}

/// The places of a session.
#[derive(Debug)]
pub(super) struct Places {
    guarded: PathBuf,
    loose: Vec<PathBuf>,
    protected: ProtectedPaths,
}

impl Places {
    /// `guarded` is the working directory, `loose` are the others; real paths.
    pub(super) const fn new(guarded: PathBuf, loose: Vec<PathBuf>, protected: ProtectedPaths) -> Self {
        Self {
            guarded,
            loose,
            protected,
        }
    }

    /// Where a real path lies.
    pub(super) fn locate(&self, path: &Path) -> Spot {
        if path == self.guarded || self.loose.iter().any(|loose| path == loose) {
            return Spot::Top;
        }
        let loose = self.loose.iter().filter(|loose| path.starts_with(loose));
        // A place may lie in another one; the innermost counts.
        let loose = loose.map(|loose| loose.components().count()).max();
        match path.strip_prefix(&self.guarded) {
            Ok(relative) if Some(self.guarded.components().count()) > loose => Spot::Guarded {
                class: self.protected.classify(relative),
                excepted: self.protected.is_excepted(relative),
            },
            Ok(_) | Err(_) if loose.is_some() => Spot::Loose,
            Ok(_) | Err(_) => Spot::Outside,
        }
    }

    /// Where a path lies whose first names lead to a bare repository: what decides there is protected as in any other.
    pub(super) fn locate_in_repository(&self, repository: &Path, path: &Path) -> Spot {
        match (
            path.strip_prefix(repository),
            repository.strip_prefix(&self.guarded),
        ) {
            (Ok(inside), Ok(relative)) => self.locate(&self.guarded.join(relative).join(".git").join(inside)),
            _ => self.locate(path),
        }
    }

    /// The working directory.
    pub(super) fn guarded(&self) -> &Path {
        &self.guarded
    }
}
