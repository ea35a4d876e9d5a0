//! The directory to confine: the working directory's real path, and what must not be beneath it.

use crate::error::SandboxError;
use rustix::fs::{Mode, OFlags, open};
use std::fs;
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// The real path, without links.
pub(crate) fn real(path: &Path) -> io::Result<PathBuf> {
    let place = open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
    fs::read_link(format!("/proc/self/fd/{}", place.as_raw_fd()))
}

/// The identity of a directory, whatever its name.
pub(crate) fn identity(dir: &Path) -> Option<(u64, u64)> {
    fs::metadata(dir).ok().map(|found| (found.dev(), found.ino()))
}

/// Refuses a working directory that contains what controls the sandbox: commands may write everything beneath it.
pub(crate) fn keep_apart(workdir: &Path, precious: &Path, what: &str) -> Result<(), SandboxError> {
    let unknown = |error: io::Error| SandboxError::no_walls(format!("{}: {error}", workdir.display()));
    let (dir, beneath) = (real(workdir).map_err(unknown)?, real(precious).map_err(unknown)?);
    if beneath.starts_with(&dir) {
        return Err(SandboxError::no_walls(format!(
            "{what} {} is below the working directory {}, where commands can write: use another working directory",
            beneath.display(),
            dir.display()
        )));
    }
    Ok(())
}
