//! The index files: one per working directory, with a maximum number.

use crate::database::remove;
use crate::error::IndexError;
use sha2::{Digest as _, Sha256};
use std::fmt::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// The index file of a working directory.
#[must_use]
pub fn file_of(dir: &Path, workdir: &Path) -> PathBuf {
    let mut name = String::new();
    for byte in Sha256::digest(workdir.as_os_str().as_bytes()).iter().take(16) {
        let _ = write!(name, "{byte:02x}");
    }
    dir.join(name).with_extension("db")
}

/// Creates the directory of the indexes, accessible only to this user.
pub(crate) fn prepare(dir: &Path) -> Result<(), IndexError> {
    let mut builder = std::fs::DirBuilder::new();
    let made = builder.recursive(true).mode(0o700).create(dir);
    made.map_err(|why| IndexError::File {
        path: dir.to_owned(),
        why,
    })
}

/// Marks an index as used, and removes the least recently used ones.
pub(crate) fn used(dir: &Path, file: &Path, keep: usize, now: SystemTime) -> Result<(), IndexError> {
    if let Ok(opened) = std::fs::File::options().write(true).open(file) {
        // If this fails, only the order of removal suffers.
        let _ = opened.set_modified(now);
    }
    let failed = |why| IndexError::File {
        path: dir.to_owned(),
        why,
    };
    let mut kept: Vec<(SystemTime, PathBuf)> = std::fs::read_dir(dir)
        .map_err(failed)?
        .filter_map(|entry| {
            let path = entry.ok()?.path();
            let is_index = path.extension().is_some_and(|end| end == "db") && path != file;
            is_index.then(|| Some((path.metadata().ok()?.modified().ok()?, path)))?
        })
        .collect();
    kept.sort();
    let many = (kept.len() + 1).saturating_sub(keep);
    for (_, path) in kept.into_iter().take(many) {
        remove(&path)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn the_least_recently_used_index_is_removed_first() {
        let dir = tempfile::tempdir().unwrap();
        let file = |n: u64| dir.path().join(format!("{n}.db"));
        let at = |n: u64| SystemTime::UNIX_EPOCH + Duration::from_secs(n);
        for n in 1..=4 {
            std::fs::write(file(n), "x").unwrap();
            std::fs::write(dir.path().join(format!("{n}.db-wal")), "x").unwrap();
            used(dir.path(), &file(n), 3, at(n)).unwrap();
        }
        let left: Vec<bool> = (1..=4).map(|n| file(n).exists()).collect();
        assert_eq!(left, [false, true, true, true]);
        assert!(!dir.path().join("1.db-wal").exists());
        used(dir.path(), &file(2), 1, at(9)).unwrap();
        assert!(file(2).exists() && !file(3).exists() && !file(4).exists());
    }

    #[test]
    fn each_directory_has_its_own_file() {
        let of = |workdir: &str| file_of(Path::new("/d"), Path::new(workdir));
        assert_ne!(of("/a"), of("/b"));
        assert_eq!(of("/a"), of("/a"));
    }
}
