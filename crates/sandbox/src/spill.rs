//! A file that takes what is too long for memory.

use std::hash::{BuildHasher as _, RandomState};
use std::io;
use std::path::{Path, PathBuf};
use tokio::fs::File;
use tokio::io::AsyncWriteExt as _;

/// A file with the whole of an output (up to a cap); removed when dropped.
#[derive(Debug)]
pub struct SpillFile {
    path: PathBuf,
    bytes: u64,
}

impl SpillFile {
    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// How many bytes it has.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl Drop for SpillFile {
    fn drop(&mut self) {
        // It may be gone already; then all is well.
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
    /// A new file of its own in `dir`.
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

    /// Adds output; what is over the cap is left out.
    pub(crate) async fn write(&mut self, chunk: &[u8]) -> io::Result<()> {
        let room = usize::try_from(self.cap.saturating_sub(self.file.bytes)).unwrap_or(usize::MAX);
        let chunk = chunk.get(..room.min(chunk.len())).unwrap_or_default();
        self.out.write_all(chunk).await?;
        self.file.bytes += u64::try_from(chunk.len()).unwrap_or(u64::MAX);
        Ok(())
    }

    /// The file, complete.
    pub(crate) async fn finish(mut self) -> io::Result<SpillFile> {
        self.out.flush().await?;
        Ok(self.file)
    }
}
