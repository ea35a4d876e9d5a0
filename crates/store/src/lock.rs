//! One daemon, one store: an advisory lock that the kernel gives back when the process ends, however it ends.

use crate::StoreError;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read as _, Seek as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt};
use std::path::Path;

/// More than a process id and a path.
const LONGEST_NOTE: u64 = 8_192;

/// Held as long as it lives. The file itself stays; removing it would let two daemons lock two files of one name.
#[derive(Debug)]
pub struct StoreLock {
    file: File,
}

impl StoreLock {
    /// Takes the lock and writes our process id and address into the file, for people.
    ///
    /// # Errors
    /// [`StoreError::InUse`] when somebody else holds it; the file cannot be used.
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

    /// Its file was deleted, and most likely the store with it: what is written now nobody would find again, and another
    /// daemon could lock a new file of the same name.
    pub(crate) fn is_gone(&self) -> bool {
        self.file.metadata().is_ok_and(|file| file.nlink() == 0)
    }
}

/// Who wrote into the file; an older agentd wrote no address.
fn holder(file: &mut File) -> (Option<u32>, Option<String>) {
    let mut text = String::new();
    let read = file.take(LONGEST_NOTE).read_to_string(&mut text);
    let mut lines = text.lines().map(str::trim);
    let pid = read.ok().and_then(|_| lines.next()?.parse().ok());
    let address = lines.next().filter(|address| !address.is_empty());
    (pid, address.map(str::to_owned))
}
