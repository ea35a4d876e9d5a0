//! An ext4 file system in a file that can be frozen: a process that writes to it blocks and cannot be killed, while reads
//! and `statfs` work. A frozen [`crate::Disk`] answers nothing at all.

use crate::mount::MountError;
use nix::mount::{MntFlags, umount2};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The size of the file system in bytes.
const SIZE: u64 = 64 << 20;

/// An ext4 file system in a file, mounted through a loop device. It is thawed and unmounted on drop.
#[derive(Debug)]
pub struct LoopMount {
    directory: PathBuf,
}

impl LoopMount {
    /// Creates one: its file and its mount point are in `place`.
    ///
    /// # Errors
    /// This kernel has no loop devices, we lack the permission to mount, or a required program is missing.
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

    /// The mount point.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Blocks all writes until [`LoopMount::thaw`].
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn freeze(&self) -> io::Result<()> {
        run("fsfreeze", &[Path::new("-f"), &self.directory])
    }

    /// Lets all blocked writes continue.
    ///
    /// # Errors
    /// It is not frozen.
    pub fn thaw(&self) -> io::Result<()> {
        run("fsfreeze", &[Path::new("-u"), &self.directory])
    }
}

impl Drop for LoopMount {
    fn drop(&mut self) {
        // Usually it is not frozen.
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
