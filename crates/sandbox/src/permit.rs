//! The write permit of one call: a [`Beneath`](crate::Beneath) changes only paths that a permit covers.

use crate::beneath::show;
use crate::error::SandboxError;
use agentd_protected::ProtectedPaths;
use std::path::{Path, PathBuf};

/// The files that one call may change: those that the permission gate judged, without protected ones unless they were
/// approved. A tool cannot write a path that it does not declare.
#[derive(Debug, Clone)]
pub struct WritePermit {
    declared: Vec<PathBuf>,
    /// Absent: a person approved the protected paths among them, or a rule spells them out.
    protected: Option<ProtectedPaths>,
}

/// A path that may be changed. Only a [`WritePermit`] creates one.
#[derive(Debug, Clone, Copy)]
pub struct Judged<'a>(pub(crate) &'a Path);

impl WritePermit {
    /// Permits these paths, except for protected ones.
    #[must_use]
    pub fn new(declared: Vec<PathBuf>, protected: ProtectedPaths) -> Self {
        Self {
            declared,
            protected: Some(protected),
        }
    }

    /// Permits these paths, protected or not: for approved calls, and for a person who restores files.
    #[must_use]
    pub const fn approved(declared: Vec<PathBuf>) -> Self {
        Self {
            declared,
            protected: None,
        }
    }

    /// Whether the permit covers a path: a declared one, or a directory above it.
    ///
    /// # Errors
    /// The call was not judged for it, or it is protected and not approved.
    pub fn judged<'a>(&self, path: &'a Path) -> Result<Judged<'a>, SandboxError> {
        if !self.declared.iter().any(|declared| declared.starts_with(path)) {
            return Err(SandboxError::Unjudged { path: show(path) });
        }
        match self
            .protected
            .as_ref()
            .and_then(|protected| protected.guard(path))
        {
            Some(guard) => Err(SandboxError::Protected {
                path: show(path),
                why: guard.reason.words(),
            }),
            None => Ok(Judged(path)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn i7_only_judged_paths_are_written_and_protected_ones_only_with_approval() {
        let declared = || vec![PathBuf::from("a/b"), PathBuf::from("d/.envrc")];
        let (plain, approved) = (
            WritePermit::new(declared(), ProtectedPaths::default()),
            WritePermit::approved(declared()),
        );
        for permit in [&plain, &approved] {
            for path in ["a/b", "a", "d"] {
                assert!(permit.judged(Path::new(path)).is_ok(), "{path}");
            }
            for path in ["a/b/c", "a/bc", "x", "/a", "../a", ".git/config"] {
                let refused = permit.judged(Path::new(path));
                assert!(
                    matches!(refused, Err(SandboxError::Unjudged { .. })),
                    "{path}: {refused:?}"
                );
            }
        }
        let refused = plain.judged(Path::new("d/.envrc")).unwrap_err().to_string();
        assert!(refused.contains("is protected"), "{refused}");
        assert!(approved.judged(Path::new("d/.envrc")).is_ok());
    }
}
