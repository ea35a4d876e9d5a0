//! Content-addressed files for blobs that are too large for a database row.

use agentd_store::StoreError;
use agentd_store::backend::{is_name, private_dir, sync_names};
use bytes::Bytes;
use std::fs::OpenOptions;
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// A directory of blobs, one file per blob, named by content.
#[derive(Debug)]
pub(crate) struct BlobFiles {
    dir: PathBuf,
    written: AtomicU64,
}

impl BlobFiles {
    pub(crate) const fn new(dir: PathBuf) -> Self {
        Self {
            dir,
            written: AtomicU64::new(0),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name.get(..2).unwrap_or_default()).join(name)
    }

    /// Writes a file atomically: when this returns, the file is complete and synced, or does not exist.
    pub(crate) fn put(&self, name: &str, bytes: &[u8]) -> Result<(), StoreError> {
        let path = self.path(name);
        if path.exists() {
            return Ok(());
        }
        let Some(dir) = path.parent() else { return Ok(()) };
        private_dir(dir)?;
        let number = self.written.fetch_add(1, Ordering::Relaxed);
        let draft = self
            .dir
            .join(format!("{name}.{}.{number}.draft", std::process::id()));
        let done = write_synced(&draft, bytes).and_then(|()| std::fs::rename(&draft, &path));
        if let Err(error) = done {
            let _ = std::fs::remove_file(&draft);
            return Err(StoreError::io(path, error));
        }
        // Opening the store creates the directory of all blobs.
        [dir, self.dir.as_path()].into_iter().try_for_each(sync_names)
    }

    /// The content of the blob, if the file exists.
    pub(crate) fn get(&self, name: &str) -> Result<Option<Bytes>, StoreError> {
        let path = self.path(name);
        match std::fs::read(&path) {
            Ok(bytes) => Ok(Some(bytes.into())),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(StoreError::io(path, error)),
        }
    }

    /// The names of all files.
    pub(crate) fn names(&self) -> Result<Vec<String>, StoreError> {
        let mut names = Vec::new();
        for entry in list(&self.dir)? {
            if entry.file_name().len() == 2 {
                let files = list(&entry.path())?.into_iter();
                names.extend(files.filter_map(|file| file.file_name().into_string().ok()));
            }
        }
        names.retain(|name| is_name(name));
        Ok(names)
    }

    /// Hard-links a file into another blob directory, or copies it if that fails. `false`: the file does not exist.
    pub(crate) fn link(&self, name: &str, to: &Path) -> Result<bool, StoreError> {
        let from = self.path(name);
        let copy = Self::new(to.to_owned()).path(name);
        if copy.exists() {
            return Ok(true);
        }
        if let Some(dir) = copy.parent() {
            private_dir(dir)?;
        }
        let made = std::fs::hard_link(&from, &copy).or_else(|_| std::fs::copy(&from, &copy).map(drop));
        match made {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(StoreError::io(copy, error)),
            Ok(()) => Ok(true),
        }
    }

    /// Removes a file. A missing file is not an error.
    pub(crate) fn remove(&self, name: &str) -> Result<(), StoreError> {
        let path = self.path(name);
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(StoreError::io(path, error)),
            _ => Ok(()),
        }
    }
}

fn list(dir: &Path) -> Result<Vec<std::fs::DirEntry>, StoreError> {
    let entries = std::fs::read_dir(dir).and_then(Iterator::collect);
    entries.map_err(|error| StoreError::io(dir, error))
}

fn write_synced(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}
