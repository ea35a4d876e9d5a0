//! The repositories that a session made: their git directories are the session's own.

use super::held::Held;
use super::resolve::{Named, bare};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{CWD, Mode, OFlags, fstat, openat};
use std::path::Path;

/// The maximum number of repositories to know.
const MOST: usize = 256;

/// Their git directories.
#[derive(Debug)]
pub(super) struct Made(Held);

impl Default for Made {
    fn default() -> Self {
        Self(Held::new(MOST))
    }
}

impl Made {
    /// Notes a directory that a command made, if it is a git directory.
    pub(super) fn note(&mut self, named: &Named) {
        let name = bare(&named.name);
        if name.eq_ignore_ascii_case(".git")
            && let Some(opened) = open(&named.dir, Path::new(name))
        {
            // If it cannot be examined, it counts as another's.
            let _ = self.0.keep(opened);
        }
    }

    /// Whether the session made the git directory at a real path.
    pub(super) fn has(&self, git_dir: &Path) -> bool {
        !self.0.is_empty()
            && open(CWD, git_dir)
                .and_then(|opened| fstat(opened).ok())
                .is_some_and(|found| self.0.has(&found))
    }
}

fn open(dir: impl AsFd, path: &Path) -> Option<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(dir, path, flags, Mode::empty()).ok()
}
