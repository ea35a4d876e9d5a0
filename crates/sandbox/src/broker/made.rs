//! The repositories that a session made: their git directories are the session's own.

use super::resolve::{Named, bare};
use rustix::fd::OwnedFd;
use rustix::fs::{CWD, Mode, OFlags, fstat, openat};
use std::path::Path;

/// The maximum number of repositories to know. Later ones count as those of others.
const MOST: usize = 256;

/// Their git directories. They are held open: an identity cannot pass to another directory as long as one knows it.
#[derive(Debug, Default)]
pub(super) struct Made(Vec<(OwnedFd, Identity)>);

type Identity = (u64, u64);

impl Made {
    /// Notes a directory that a command made, if it is a git directory.
    pub(super) fn note(&mut self, named: &Named) {
        let name = bare(&named.name);
        if self.0.len() >= MOST || !name.eq_ignore_ascii_case(".git") {
            return;
        }
        // If it cannot be opened, it counts as another's.
        self.0.extend(open(&named.dir, Path::new(name)));
    }

    /// Whether the session made the git directory at a real path.
    pub(super) fn has(&self, git_dir: &Path) -> bool {
        !self.0.is_empty()
            && open(CWD, git_dir).is_some_and(|(_, found)| self.0.iter().any(|(_, known)| *known == found))
    }
}

fn open(dir: impl rustix::fd::AsFd, path: &Path) -> Option<(OwnedFd, Identity)> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let opened = openat(dir, path, flags, Mode::empty()).ok()?;
    let stat = fstat(&opened).ok()?;
    Some((opened, (stat.st_dev, stat.st_ino)))
}
