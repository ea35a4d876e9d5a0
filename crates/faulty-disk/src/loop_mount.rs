//! An ext4 file system in a file, which can be frozen: a process that writes to it waits and cannot be killed, while reads
//! and `statfs` work. A [`crate::Disk`] that is frozen answers nothing at all.

use crate::mount::MountError;
use nix::mount::{MntFlags, umount2};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Bytes of the file system.
const SIZE: u64 = 64 << 20;

/// An ext4 in a file, mounted on a directory through a loop device. It thaws and is unmounted when dropped.
#[derive(Debug)]
pub struct LoopMount {
    directory: PathBuf,
}

impl LoopMount {
    /// Makes one: the file and the directory to mount on are in `place`.
    ///
    /// # Errors
    /// This kernel has no loop devices, we may not mount, or a program for it is missing.
    pub fn new(place: &Path) -> Result<Self, MountError> {
        Self::make(place).map_err(MountError)
    }

    fn make(place: &Path) -> io::Result<Self> {
        let (image, directory) = (place.join("image"), place.join("mounted"));
        File::create(&image)?.set_len(SIZE)?;
        fs::create_dir_all(&directory)?;
        run("mkfs.ext4", &[Path::new("-q"), &image])?;
        run("mount", &[Path::new("-o"), Path::new("loop"), &image, &directory])?;
        Ok(Self { directory })
    }

    /// Where it is mounted.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Nothing can be written from now on, until [`LoopMount::thaw`].
    ///
    /// # Errors
    /// The kernel refuses it.
    pub fn freeze(&self) -> io::Result<()> {
        run("fsfreeze", &[Path::new("-f"), &self.directory])
    }

    /// All writes that wait are made.
    ///
    /// # Errors
    /// It is not frozen.
    pub fn thaw(&self) -> io::Result<()> {
        run("fsfreeze", &[Path::new("-u"), &self.directory])
    }
}

impl Drop for LoopMount {
    fn drop(&mut self) {
        // Mostly it is not frozen.
        let _ = self.thaw();
        let _ = umount2(&self.directory, MntFlags::MNT_DETACH);
    }
}

#[expect(clippy::disallowed_methods, reason = "the system's programs do it")]
fn run(program: &str, args: &[&Path]) -> io::Result<()> {
    let output = Command::new(program)
        .args(args)
        .output()
        .map_err(|error| io::Error::new(error.kind(), format!("{program}: {error}")))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(io::Error::other(format!("{program}: {}", said.trim())))
}
