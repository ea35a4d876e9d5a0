//! One daemon per store: an advisory lock that the kernel releases when the process ends, however it ends.

use crate::StoreError;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read as _, Seek as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt};
use std::path::Path;

/// More bytes than a process id and a path need.
const LONGEST_NOTE: u64 = 8_192;

/// The lock, held until dropped. The file stays: if it were removed, two daemons could lock two files of the same name.
#[derive(Debug)]
pub struct StoreLock {
    file: File,
}

impl StoreLock {
    /// Takes the lock, and writes our process id and address into the file for people to read.
    ///
    /// # Errors
    /// [`StoreError::InUse`] if another process holds the lock. Otherwise, the file cannot be used.
    pub fn take(path: &Path, address: &str) -> Result<Self, StoreError> {
        let io = |error| StoreError::io(path, error);
        let mut options = OpenOptions::new();
        options
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600);
        let mut file = options.open(path).map_err(io)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let (pid, address) = holder(&mut file);
                return Err(StoreError::InUse {
                    path: path.to_owned(),
                    pid,
                    address,
                });
            }
            Err(TryLockError::Error(error)) => return Err(io(error)),
        }
        file.set_len(0).and_then(|()| file.rewind()).map_err(io)?;
        writeln!(file, "{}\n{address}", std::process::id()).map_err(io)?;
        Ok(Self { file })
    }

    /// Whether the lock file was deleted, most likely with the store. Anything written now would be lost, and another
    /// daemon could lock a new file of the same name.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        self.file.metadata().is_ok_and(|file| file.nlink() == 0)
    }
}

impl Drop for StoreLock {
    /// A process that we are about to start has a copy of the file until its exec, so closing ours is not enough.
    fn drop(&mut self) {
        let _ = self.file.unlock();
    }
}

/// The process id and address in the file; older versions of agentd wrote no address.
fn holder(file: &mut File) -> (Option<u32>, Option<String>) {
    let mut text = String::new();
    let read = file.take(LONGEST_NOTE).read_to_string(&mut text);
    let mut lines = text.lines().map(str::trim);
    let pid = read.ok().and_then(|_| lines.next()?.parse().ok());
    let address = lines.next().filter(|address| !address.is_empty());
    (pid, address.map(str::to_owned))
}

#[cfg(test)]
mod tests {
    use super::StoreLock;
    use crate::StoreError;

    #[test]
    fn a_lock_is_free_once_dropped_although_a_child_process_has_a_copy_of_its_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("agentd.lock");
        let lock = StoreLock::take(&path, "").unwrap();
        let copy = lock.file.try_clone().unwrap();
        assert!(matches!(
            StoreLock::take(&path, ""),
            Err(StoreError::InUse { .. })
        ));
        drop(lock);
        StoreLock::take(&path, "").unwrap();
        drop(copy);
    }
}
