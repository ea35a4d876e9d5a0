//! Classifies paths: which places commands may write, and which names in them are protected.

use crate::git_refusals::GitRefusal;
use agentd_protected::{Class, ProtectedPaths, Reason};
use std::path::{Path, PathBuf};

/// A path that a rule forbids to write.
pub(super) const DENIED: Spot = Spot::Guarded {
    class: Class::Protected(Reason::Denied),
    excepted: false,
};

/// What is checked before it replaces a file of a repository.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Checked {
    /// Its configuration.
    Config,
    /// Its packed references.
    PackedRefs,
    /// The steps that are left of an operation.
    Steps,
    /// The options of a series of picks.
    Options,
}

/// The class of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Spot {
    /// Commands write nothing here.
    Outside,
    /// A device, which is not the session's. Landlock decides which devices may be written.
    Device,
    /// A private place of the session: every name is free.
    Loose,
    /// In the working directory.
    Guarded {
        class: Class,
        /// At or below an exception: names that are protected elsewhere are free.
        excepted: bool,
    },
    /// In a repository that commands leave as it is.
    Kept,
    /// The top of a place.
    Top,
    /// It never had a name, or has none any more: pipes, sockets, files in memory.
    Nameless,
}

impl Spot {
    /// Whether it is a git directory or in one.
    pub(super) const fn is_in_git(self) -> bool {
        match self {
            Self::Guarded { class, .. } => match class {
                Class::GitData
                | Class::GitSetup
                | Class::GitDirectory
                | Class::GitConfig
                | Class::GitPackedRefs
                | Class::GitOperation
                | Class::GitSteps
                | Class::GitOptions
                | Class::GitOfMaker => true,
                Class::Free | Class::Protected(_) => false,
            },
            Self::Outside | Self::Device | Self::Loose | Self::Kept | Self::Top | Self::Nameless => false,
        }
    }

    /// The check of a file that is replaced as a whole, if it is such a file.
    pub(super) const fn checked(self) -> Option<Checked> {
        let Self::Guarded { class, .. } = self else {
            return None;
        };
        match class {
            Class::GitConfig => Some(Checked::Config),
            Class::GitPackedRefs => Some(Checked::PackedRefs),
            Class::GitSteps => Some(Checked::Steps),
            Class::GitOptions => Some(Checked::Options),
            _ => None,
        }
    }

    /// Why git may not write here, if it is a place that git writes to.
    pub(super) const fn refusal(self) -> Option<GitRefusal> {
        match self {
            Self::Kept => Some(GitRefusal::Kept),
            Self::Guarded { class, .. } => match class {
                Class::GitConfig => Some(GitRefusal::Setting),
                Class::GitSteps | Class::GitOptions => Some(GitRefusal::Steps),
                Class::Protected(Reason::GitMetadata) => Some(GitRefusal::Metadata),
                _ => None,
            },
            _ => None,
        }
    }

    /// The same spot in a repository that the session made (its maker may write all that git writes), or in one that was
    /// there.
    pub(super) fn in_repository(self, made: bool, keeps: bool) -> Self {
        let Self::Guarded { class, excepted } = self else {
            return self;
        };
        let class = match class {
            Class::GitOfMaker if made => Class::GitSetup,
            _ if keeps && !made && !excepted && self.is_in_git() => return Self::Kept,
            Class::GitOfMaker => Class::Protected(Reason::GitMetadata),
            class => class,
        };
        Self::Guarded { class, excepted }
    }
}

/// The places of a session.
#[derive(Debug)]
pub(super) struct Places {
    guarded: PathBuf,
    loose: Vec<PathBuf>,
    protected: ProtectedPaths,
    /// The git directory that the working directory is a worktree of.
    repository: Option<PathBuf>,
    /// The parts of it that commands may write.
    written: Vec<PathBuf>,
}

impl Places {
    /// `guarded` is the working directory, `loose` are the other places; real paths.
    pub(super) const fn new(guarded: PathBuf, loose: Vec<PathBuf>, protected: ProtectedPaths) -> Self {
        Self {
            guarded,
            loose,
            protected,
            repository: None,
            written: Vec::new(),
        }
    }

    /// Also classifies the git directory that the working directory is a worktree of, and of which commands write only in some
    /// directories; real paths. Landlock decides that, too.
    pub(super) fn with_repository(self, repository: Option<PathBuf>, written: Vec<PathBuf>) -> Self {
        Self {
            repository,
            written,
            ..self
        }
    }

    /// Classifies a real path.
    pub(super) fn locate(&self, path: &Path) -> Spot {
        if path == self.guarded || self.loose.iter().any(|loose| path == loose) {
            return Spot::Top;
        }
        let loose = self.loose.iter().filter(|loose| path.starts_with(loose));
        // Places can be nested; the innermost counts.
        let loose = loose.map(|loose| loose.components().count()).max();
        let repository = self.repository.as_ref();
        let inside =
            repository.and_then(|git| Some((git.components().count(), path.strip_prefix(git).ok()?)));
        if let Some((depth, inside)) = inside
            && Some(depth) > loose
        {
            return Spot::Guarded {
                class: self.protected.classify(&Path::new(".git").join(inside)),
                excepted: false,
            };
        }
        match path.strip_prefix(&self.guarded) {
            Ok(relative) if Some(self.guarded.components().count()) > loose => Spot::Guarded {
                class: self.protected.classify(relative),
                excepted: self.protected.is_excepted(relative),
            },
            Ok(_) | Err(_) if loose.is_some() => Spot::Loose,
            Ok(_) | Err(_) => Spot::Outside,
        }
    }

    /// Classifies a path whose first names lead to a bare repository: the usual git paths are protected in it, too.
    pub(super) fn locate_in_repository(&self, repository: &Path, path: &Path) -> Spot {
        match (
            path.strip_prefix(repository),
            repository.strip_prefix(&self.guarded),
        ) {
            (Ok(inside), Ok(relative)) => self.locate(&self.guarded.join(relative).join(".git").join(inside)),
            _ => self.locate(path),
        }
    }

    /// Whether commands leave the repository as it is that a path of a git directory is in, unless they made it.
    pub(super) fn keeps(&self, path: &Path) -> bool {
        if self.repository_of(path).is_some() {
            return !self.written.iter().any(|written| path.starts_with(written));
        }
        self.protected.keeps_git() && path.starts_with(&self.guarded)
    }

    /// Whether this is the lock of the references of a repository elsewhere, which commands may not write. Git takes it to
    /// remove notes of a worktree, such as `CHERRY_PICK_HEAD`, too.
    pub(super) fn is_lock_of_references(&self, path: &Path) -> bool {
        let repository = self.repository.as_ref().filter(|_| !self.written.is_empty());
        repository.is_some_and(|git| path.strip_prefix(git) == Ok(Path::new("packed-refs.lock")))
    }

    /// The repository of which the working directory is a worktree, if a path is in it.
    pub(super) fn repository_of(&self, path: &Path) -> Option<&Path> {
        self.repository.as_deref().filter(|git| path.starts_with(git))
    }

    /// Whether rules forbid to write any path.
    pub(super) const fn has_denied(&self) -> bool {
        self.protected.has_denied()
    }

    /// Whether a rule forbids to write a real path.
    pub(super) fn denies(&self, path: &Path) -> bool {
        let inside = path.strip_prefix(&self.guarded);
        inside.is_ok_and(|relative| self.protected.denies(relative))
    }

    /// Whether a link at a real path would take the place of what leads to such a path.
    pub(super) fn leads_to_denied(&self, path: &Path) -> bool {
        let inside = path.strip_prefix(&self.guarded);
        inside.is_ok_and(|relative| self.protected.leads_to_denied(relative))
    }

    /// The working directory.
    pub(super) fn guarded(&self) -> &Path {
        &self.guarded
    }
}
