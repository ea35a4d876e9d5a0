//! Checks that the files of the database are still the ones that SQLite has open. If someone deletes or replaces them,
//! SQLite keeps writing to files that nobody can find again, and reports success.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// SQLite itself truncates its log to this length (`PRAGMA journal_size_limit`), in bytes.
pub(crate) const LOG_LIMIT: u64 = 16 * 1024 * 1024;

/// The database and its log.
#[derive(Debug)]
pub(crate) struct DatabaseFiles {
    database: Seen,
    log: Seen,
}

/// A file as of the last check.
#[derive(Debug)]
struct Seen {
    path: PathBuf,
    /// Device and inode; absent until the file exists.
    identity: Option<(u64, u64)>,
    length: u64,
}

impl DatabaseFiles {
    pub(crate) fn of(database: &Path) -> Self {
        let mut log = database.as_os_str().to_owned();
        log.push("-wal");
        let seen = |path| Seen {
            path,
            identity: None,
            length: 0,
        };
        Self {
            database: seen(database.to_owned()),
            log: seen(log.into()),
        }
    }

    /// Checks both files, at the cost of two system calls. `bytes` returns the minimum length of the database after its
    /// last transaction, below which SQLite never truncates it. Called only if the file became shorter.
    ///
    /// # Errors
    /// The damage found, as the reason to stop the store.
    pub(crate) fn check(&mut self, bytes: impl FnOnce() -> u64) -> Result<(), String> {
        self.database.check(bytes)?;
        self.log.check(|| LOG_LIMIT)
    }
}

impl Seen {
    fn check(&mut self, kept: impl FnOnce() -> u64) -> Result<(), String> {
        let path = self.path.display();
        let found = match (fs::symlink_metadata(&self.path), self.identity) {
            (Ok(found), _) => found,
            // The first transaction creates it.
            (Err(error), None) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            (Err(error), Some(_)) if error.kind() == io::ErrorKind::NotFound => {
                return Err(format!("{path} was deleted while the store was open"));
            }
            (Err(error), _) => return Err(format!("{path}: {error}")),
        };
        let identity = (found.dev(), found.ino());
        if *self.identity.get_or_insert(identity) != identity {
            return Err(format!("{path} was replaced while the store was open"));
        }
        let (before, now) = (self.length, found.len());
        if now < before && now < kept() {
            return Err(format!(
                "{path} was truncated from {before} to {now} bytes while the store was open"
            ));
        }
        self.length = now;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn world() -> (tempfile::TempDir, PathBuf, PathBuf, DatabaseFiles) {
        let dir = tempfile::tempdir().unwrap();
        let (database, log) = (dir.path().join("a.db"), dir.path().join("a.db-wal"));
        fs::write(&database, "data").unwrap();
        let mut files = DatabaseFiles::of(&database);
        files.check(|| 18).unwrap();
        fs::write(&log, "more").unwrap();
        files.check(|| 18).unwrap();
        (dir, database, log, files)
    }

    #[test]
    fn i1_a_file_that_is_deleted_replaced_or_cut_is_noticed() {
        for of_log in [false, true] {
            let (_dir, database, log, mut files) = world();
            let path = if of_log { log } else { database };
            fs::write(&path, "longer than before").unwrap();
            files.check(|| 18).unwrap();
            fs::write(&path, "cut").unwrap();
            assert!(
                files
                    .check(|| 18)
                    .unwrap_err()
                    .contains("was truncated from 18 to 3 bytes")
            );
            fs::remove_file(&path).unwrap();
            assert!(files.check(|| 18).unwrap_err().contains("was deleted"));
            // The test keeps the first file, so that the second one cannot reuse its inode number.
            let (_dir, database, log, mut files) = world();
            let path = if of_log { log } else { database };
            fs::rename(&path, path.with_extension("old")).unwrap();
            fs::write(&path, "another one").unwrap();
            assert!(files.check(|| 18).unwrap_err().contains("was replaced"));
        }
    }

    #[test]
    fn sqlite_may_cut_the_database_to_what_its_pages_need() {
        let (_dir, database, _, mut files) = world();
        fs::write(&database, "longer than before").unwrap();
        files.check(|| 18).unwrap();
        fs::write(&database, "shorter").unwrap();
        files.check(|| 7).unwrap();
        fs::write(&database, "short").unwrap();
        assert!(
            files
                .check(|| 6)
                .unwrap_err()
                .contains("was truncated from 7 to 5 bytes")
        );
    }

    #[test]
    fn sqlite_may_cut_its_log_to_its_limit() {
        let (_dir, _, log, mut files) = world();
        let set_length = |length: u64| fs::File::create(&log).unwrap().set_len(length).unwrap();
        set_length(LOG_LIMIT + 1);
        files.check(|| 18).unwrap();
        set_length(LOG_LIMIT);
        files.check(|| 18).unwrap();
        set_length(LOG_LIMIT - 1);
        assert!(files.check(|| 18).is_err());
    }
}
