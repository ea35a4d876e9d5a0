//! A file for output that is too long for memory.

use std::hash::{BuildHasher as _, RandomState};
use std::io;
use std::path::{Path, PathBuf};
use tokio::fs::File;
use tokio::io::AsyncWriteExt as _;

/// A file with the whole output (up to a cap); deleted on drop.
#[derive(Debug)]
pub struct SpillFile {
    path: PathBuf,
    bytes: u64,
}

impl SpillFile {
    /// The path of the file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The size in bytes.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl Drop for SpillFile {
    fn drop(&mut self) {
        // It may be gone already, which is fine.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Writes a spill file.
#[derive(Debug)]
pub(crate) struct Spilling {
    out: File,
    file: SpillFile,
    cap: u64,
}

impl Spilling {
    /// Creates a new file in `dir`.
    pub(crate) async fn start(dir: &Path, cap: u64) -> io::Result<Self> {
        tokio::fs::create_dir_all(dir).await?;
        let path = dir.join(format!("{:016x}.out", RandomState::new().hash_one(dir)));
        let out = File::options()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)
            .await?;
        Ok(Self {
            out,
            file: SpillFile { path, bytes: 0 },
            cap,
        })
    }

    /// Appends output; drops what exceeds the cap.
    pub(crate) async fn write(&mut self, chunk: &[u8]) -> io::Result<()> {
        let room = usize::try_from(self.cap.saturating_sub(self.file.bytes)).unwrap_or(usize::MAX);
        let chunk = chunk.get(..room.min(chunk.len())).unwrap_or_default();
        self.out.write_all(chunk).await?;
        self.file.bytes += u64::try_from(chunk.len()).unwrap_or(u64::MAX);
        Ok(())
    }

    /// Returns the completed file.
    pub(crate) async fn finish(mut self) -> io::Result<SpillFile> {
        self.out.flush().await?;
        Ok(self.file)
    }
}
