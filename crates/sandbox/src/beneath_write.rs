//! Writes whole files beneath a directory, atomically.

use crate::beneath::{Beneath, EntryKind, Version, failure, kind_of, show, stat_of, version_of, wrong_kind};
use crate::error::SandboxError;
use crate::permit::Judged;
use rustix::fd::OwnedFd;
use rustix::fs::{
    AtFlags, Mode, OFlags, RenameFlags, ResolveFlags, fchmod, fsync, mkdirat, openat, renameat_with, statat,
    unlinkat,
};
use rustix::io::Errno;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::ffi::OsString;
use std::fs::File;
use std::hash::{BuildHasher as _, RandomState};
use std::io::Write as _;
use std::path::{Component, Path};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Device and inode of a directory, and a name in it.
type Target = (u64, u64, OsString);

/// The files between their last check and their replacement. The lock is never held during work on a file, since that may
/// hang.
static IN_REPLACEMENT: Mutex<BTreeSet<Target>> = Mutex::new(BTreeSet::new());

fn in_replacement() -> MutexGuard<'static, BTreeSet<Target>> {
    IN_REPLACEMENT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The right to replace a file: when two sessions change one file at the same time, one of them fails.
struct Claim(Target);

impl Claim {
    fn of(directory: &OwnedFd, name: &OsStr, path: &Path) -> Result<Self, SandboxError> {
        let stat = stat_of(directory, path)?;
        let target = (stat.st_dev, stat.st_ino, name.to_owned());
        if in_replacement().insert(target.clone()) {
            Ok(Self(target))
        } else {
            Err(SandboxError::Changed { path: show(path) })
        }
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        in_replacement().remove(&self.0);
    }
}

impl Beneath {
    /// Creates a file with this content, along with missing parent directories. Durable on return.
    ///
    /// # Errors
    /// When the path exists already, or a link is on the way.
    pub fn create_new(&self, Judged(path): Judged<'_>, content: &[u8]) -> Result<(), SandboxError> {
        self.create(path, content, None)
    }

    /// Creates a file as [`Beneath::create_new`] does, with the permission bits of another file.
    ///
    /// # Errors
    /// As [`Beneath::create_new`].
    pub fn create_with_mode(
        &self,
        Judged(path): Judged<'_>,
        content: &[u8],
        mode: u32,
    ) -> Result<(), SandboxError> {
        self.create(path, content, Some(Mode::from_raw_mode(mode & 0o777)))
    }

    fn create(&self, path: &Path, content: &[u8], mode: Option<Mode>) -> Result<(), SandboxError> {
        let name = file_name(path)?;
        let directory = self.make_parents(path)?;
        let temporary = Temporary::write(&directory, content, mode, path)?;
        temporary.rename(name, RenameFlags::NOREPLACE, path)
    }

    /// Removes a file. Durable on return.
    ///
    /// # Errors
    /// [`SandboxError::Changed`] when it is no longer the `expected` version; another error when it is not a regular file,
    /// has other names (hard links), or a link is on the way.
    pub fn remove(&self, Judged(path): Judged<'_>, expected: &Version) -> Result<(), SandboxError> {
        let name = file_name(path)?;
        let directory = self.open_directory(parent(path), path)?;
        let failed = |errno| failure("remove", path, errno);
        let _claim = Claim::of(&directory, name, path)?;
        Self::check(&directory, name, path, expected)?;
        unlinkat(&directory, name, AtFlags::empty()).map_err(failed)?;
        fsync(&directory).map_err(failed)
    }

    /// Removes an empty directory.
    ///
    /// # Errors
    /// When it is not empty, not a directory, or a link is on the way.
    pub fn remove_directory(&self, Judged(path): Judged<'_>) -> Result<(), SandboxError> {
        let name = file_name(path)?;
        let directory = self.open_directory(parent(path), path)?;
        unlinkat(&directory, name, AtFlags::REMOVEDIR).map_err(|errno| failure("remove", path, errno))
    }

    /// Replaces a file's content and keeps its mode. Durable on return.
    ///
    /// # Errors
    /// [`SandboxError::Changed`] when it is no longer the `expected` version; another error when it is not a regular file,
    /// has other names (hard links), or a link is on the way.
    pub fn replace(
        &self,
        Judged(path): Judged<'_>,
        content: &[u8],
        expected: &Version,
    ) -> Result<(), SandboxError> {
        let name = file_name(path)?;
        let directory = self.open_directory(parent(path), path)?;
        let mode = Self::check(&directory, name, path, expected)?;
        let temporary = Temporary::write(&directory, content, Some(mode), path)?;
        let _claim = Claim::of(&directory, name, path)?;
        Self::check(&directory, name, path, expected)?;
        temporary.rename(name, RenameFlags::empty(), path)
    }

    /// Whether a file could be replaced: regular, not a link, only one name. Ignores its version and mode.
    ///
    /// # Errors
    /// The reason why it could not.
    pub fn check_writable(&self, path: &Path) -> Result<(), SandboxError> {
        let place = self.open_path(path, ResolveFlags::NO_SYMLINKS)?;
        refuse_unless_plain(&stat_of(&place, path)?, path)
    }

    fn check(
        directory: &OwnedFd,
        name: &OsStr,
        path: &Path,
        expected: &Version,
    ) -> Result<Mode, SandboxError> {
        let stat = statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)
            .map_err(|errno| failure("examine", path, errno))?;
        refuse_unless_plain(&stat, path)?;
        if version_of(&stat) != *expected {
            return Err(SandboxError::Changed { path: show(path) });
        }
        // Drops set-user-id and similar bits: the content is new.
        Ok(Mode::from_raw_mode(stat.st_mode & 0o777))
    }

    fn open_directory(&self, directory: &Path, path: &Path) -> Result<OwnedFd, SandboxError> {
        let place = self.open_path(directory, ResolveFlags::NO_SYMLINKS)?;
        let stat = stat_of(&place, directory)?;
        if kind_of(&stat) != EntryKind::Directory {
            return Err(wrong_kind(directory, &stat, "a directory"));
        }
        // A directory must be open for reading to be synced.
        openat(
            &place,
            ".",
            OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC,
            Mode::empty(),
        )
        .map_err(|errno| failure("open the directory of", path, errno))
    }

    fn make_parents(&self, path: &Path) -> Result<OwnedFd, SandboxError> {
        match self.open_directory(parent(path), path) {
            Err(SandboxError::NotFound { .. }) => {}
            other => return other,
        }
        let mut directory = self.open_directory(Path::new("."), path)?;
        for component in parent(path).components() {
            let Component::Normal(name) = component else {
                continue;
            };
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let failed = |errno| failure("create the directory of", path, errno);
            match mkdirat(&directory, name, Mode::from_raw_mode(0o777)) {
                Ok(()) => fsync(&directory).map_err(failed)?,
                Err(Errno::EXIST) => {}
                Err(errno) => return Err(failed(errno)),
            }
            directory = openat(&directory, name, flags, Mode::empty()).map_err(failed)?;
        }
        Ok(directory)
    }
}

fn refuse_unless_plain(stat: &rustix::fs::Stat, path: &Path) -> Result<(), SandboxError> {
    match kind_of(stat) {
        EntryKind::Symlink => Err(SandboxError::Symlink { path: show(path) }),
        EntryKind::File if stat.st_nlink > 1 => Err(SandboxError::Linked {
            path: show(path),
            // The field's type differs between machines.
            links: stat.st_nlink.to_string(),
        }),
        EntryKind::File => Ok(()),
        EntryKind::Directory | EntryKind::Special => Err(wrong_kind(path, stat, "a regular file")),
    }
}

/// A temporary file next to its target; removed unless it is renamed to that.
struct Temporary<'a> {
    directory: &'a OwnedFd,
    name: String,
    renamed: bool,
}

impl<'a> Temporary<'a> {
    fn write(
        directory: &'a OwnedFd,
        content: &[u8],
        mode: Option<Mode>,
        path: &Path,
    ) -> Result<Self, SandboxError> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let name = format!(".agentd-{:016x}.tmp", RandomState::new().hash_one(path));
        let failed = |errno| failure("write", path, errno);
        let fd = openat(directory, &name, flags, Mode::from_raw_mode(0o666)).map_err(failed)?;
        let temporary = Self {
            directory,
            name,
            renamed: false,
        };
        if let Some(mode) = mode {
            fchmod(&fd, mode).map_err(failed)?;
        }
        let mut file = File::from(fd);
        let written = file.write_all(content).and_then(|()| file.sync_all());
        written.map_err(|source| SandboxError::Io {
            action: "write",
            path: show(path),
            source,
        })?;
        Ok(temporary)
    }

    fn rename(mut self, name: &OsStr, flags: RenameFlags, path: &Path) -> Result<(), SandboxError> {
        let failed = |errno| failure("write", path, errno);
        renameat_with(self.directory, &self.name, self.directory, name, flags).map_err(failed)?;
        self.renamed = true;
        fsync(self.directory).map_err(failed)
    }
}

impl Drop for Temporary<'_> {
    fn drop(&mut self) {
        if !self.renamed {
            let _ = unlinkat(self.directory, &self.name, AtFlags::empty());
        }
    }
}

fn parent(path: &Path) -> &Path {
    path.parent()
        .filter(|parent| !parent.as_os_str().is_empty())
        .unwrap_or(Path::new("."))
}

fn file_name(path: &Path) -> Result<&OsStr, SandboxError> {
    let bad = || SandboxError::BadPath {
        path: show(path),
        why: "it does not name a file",
    };
    match path.components().next_back() {
        Some(Component::Normal(name)) => Ok(name),
        _ => Err(bad()),
    }
}

#[cfg(test)]
#[path = "beneath_tests.rs"]
mod tests;
