//! Files that a session made, by their identity.

use rustix::fd::OwnedFd;
use rustix::fs::{Stat, fstat};
use rustix::io::Errno;

/// They are held open: an identity cannot pass to another file as long as one knows it.
#[derive(Debug)]
pub(super) struct Held {
    most: usize,
    files: Vec<(OwnedFd, Identity)>,
}

type Identity = (u64, u64);

impl Held {
    /// Holds at most this many. Later ones count as those of others.
    pub(super) const fn new(most: usize) -> Self {
        let files = Vec::new();
        Self { most, files }
    }

    /// Notes a file, which may be open with `O_PATH`. Those that were removed make room.
    pub(super) fn keep(&mut self, file: OwnedFd) -> Result<(), Errno> {
        if self.files.len() >= self.most {
            let has_name =
                |(file, _): &(OwnedFd, Identity)| fstat(file).is_ok_and(|found| found.st_nlink > 0);
            self.files.retain(has_name);
        }
        if self.files.len() < self.most {
            let identity = identity(&fstat(&file)?);
            self.files.push((file, identity));
        }
        Ok(())
    }

    pub(super) fn has(&self, found: &Stat) -> bool {
        self.files.iter().any(|(_, known)| *known == identity(found))
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.files.is_empty()
    }
}

const fn identity(found: &Stat) -> Identity {
    (found.st_dev, found.st_ino)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{File, remove_file};

    #[test]
    fn files_are_known_up_to_the_bound_and_removed_ones_make_room() {
        let dir = tempfile::tempdir().unwrap();
        let file = |name: &str| OwnedFd::from(File::create(dir.path().join(name)).unwrap());
        let stat = |name: &str| rustix::fs::stat(dir.path().join(name)).unwrap();
        let mut held = Held::new(2);
        assert!(held.is_empty());
        for name in ["a", "b", "c"] {
            held.keep(file(name)).unwrap();
        }
        assert!(held.has(&stat("a")) && held.has(&stat("b")) && !held.has(&stat("c")));
        remove_file(dir.path().join("a")).unwrap();
        held.keep(file("d")).unwrap();
        assert!(held.has(&stat("b")) && held.has(&stat("d")) && !held.has(&stat("c")));
    }
}
