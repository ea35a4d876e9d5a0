//! File access beneath one directory, by its descriptor: no path is checked first and opened later.

use crate::beneath_path;
use crate::error::SandboxError;
use rustix::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd};
use rustix::fs::{Dir, FileType, Mode, OFlags, ResolveFlags, Stat, fstat, open, openat2, readlink};
use rustix::io::Errno;
use std::fs::File;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// A directory whose files may be read and written, and nothing outside it, whatever links and renames do. All methods
/// block: call them only on threads that may block.
#[derive(Debug)]
pub struct Beneath {
    pub(crate) root: OwnedFd,
    path: PathBuf,
}

/// The kind of a directory entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link.
    Symlink,
    /// A pipe, a socket, a device.
    Special,
}

/// A directory entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its name, without the directory.
    pub name: String,
    /// Its kind.
    pub kind: EntryKind,
    /// Its size in bytes.
    pub bytes: u64,
}

/// The identity and state of a file; every write gives another version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Version {
    device: u64,
    inode: u64,
    bytes: u64,
    modified: (i64, u64),
    changed: (i64, u64),
}

impl Version {
    /// The version as one number, stable across runs of a program. It shows without reading whether a file changed.
    #[must_use]
    pub fn stamp(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        let (modified, changed) = (self.modified, self.changed);
        (self.device, self.inode, self.bytes, modified, changed).hash(&mut hasher);
        hasher.finish()
    }
}

/// A regular file opened for reading.
#[derive(Debug)]
pub struct OpenFile {
    /// The file.
    pub file: File,
    /// Its real path, relative to the root; differs from the requested path if links were followed.
    pub real: PathBuf,
    /// Its size in bytes.
    pub bytes: u64,
    /// Its version.
    pub version: Version,
    /// The nine permission bits.
    pub mode: u32,
}

impl Beneath {
    /// Opens the directory. Sessions store the real path of theirs, so a link on the way was put there since, and it is not
    /// followed (I7).
    ///
    /// # Errors
    /// When it is missing, is not a directory, or a link leads to another one.
    pub fn open(workdir: &Path) -> Result<Self, SandboxError> {
        let opened = Self::open_anywhere(workdir)?;
        if opened.path != workdir {
            return Err(SandboxError::Replaced {
                path: workdir.to_owned(),
                real: opened.path,
            });
        }
        Ok(opened)
    }

    /// Opens the directory and follows links; [`Beneath::path`] returns the real path.
    ///
    /// # Errors
    /// When it is missing, or not a directory.
    pub fn open_anywhere(workdir: &Path) -> Result<Self, SandboxError> {
        let failed = |errno: Errno| SandboxError::Workdir {
            path: workdir.to_owned(),
            source: errno.into(),
        };
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = open(workdir, flags, Mode::empty()).map_err(failed)?;
        let path = real_path(root.as_fd()).map_err(failed)?;
        Ok(Self { root, path })
    }

    /// The real path of the directory.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Cleans a path that a model wrote and makes it relative to the directory.
    ///
    /// # Errors
    /// When it leads outside, or is not a valid path.
    pub fn relative(&self, path: &str) -> Result<PathBuf, SandboxError> {
        beneath_path::relative(&self.path, path)
    }

    /// Opens a regular file for reading. It follows links inside the directory; `real` holds the target.
    ///
    /// # Errors
    /// When it is missing, outside, or not a regular file.
    pub fn open_file(&self, path: &Path) -> Result<OpenFile, SandboxError> {
        let place = self.open_path(path, ResolveFlags::empty())?;
        let stat = stat_of(&place, path)?;
        if kind_of(&stat) != EntryKind::File {
            return Err(wrong_kind(path, &stat, "a regular file"));
        }
        // Reopened through the descriptor, so it is the file that was just checked.
        let file = self.reopen(&place, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY, path)?;
        Ok(OpenFile {
            file: file.into(),
            real: self.real(&place, path)?,
            bytes: size_of(&stat),
            version: version_of(&stat),
            mode: stat.st_mode & 0o777,
        })
    }

    /// Reads a regular file of at most `max` bytes.
    ///
    /// # Errors
    /// As [`Beneath::open_file`], and when the file is larger.
    pub fn read(&self, path: &Path, max: u64) -> Result<(Vec<u8>, OpenFile), SandboxError> {
        let mut opened = self.open_file(path)?;
        let mut bytes = Vec::new();
        let limited = opened
            .file
            .by_ref()
            .take(max.saturating_add(1))
            .read_to_end(&mut bytes);
        limited.map_err(|source| SandboxError::Io {
            action: "read",
            path: show(path),
            source,
        })?;
        let length = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        if length > max {
            return Err(SandboxError::TooBig {
                path: show(path),
                bytes: opened.bytes.max(length),
                max,
            });
        }
        Ok((bytes, opened))
    }

    /// Describes what is at a path, without following links, neither at the end nor on the way.
    ///
    /// # Errors
    /// When the path does not exist, or a link is on the way.
    pub fn entry(&self, path: &Path) -> Result<Entry, SandboxError> {
        let name = path
            .file_name()
            .unwrap_or(path.as_os_str())
            .to_string_lossy()
            .into_owned();
        let place = match self.open_path(path, ResolveFlags::NO_SYMLINKS) {
            Err(SandboxError::Symlink { .. }) => self.open_last_link(path)?,
            other => other?,
        };
        let stat = stat_of(&place, path)?;
        Ok(Entry {
            name,
            kind: kind_of(&stat),
            bytes: size_of(&stat),
        })
    }

    /// The entries of a directory by name, at most `max`, and whether there are more. Does not follow links on the way.
    ///
    /// # Errors
    /// When it is missing, or not a directory.
    pub fn list(&self, path: &Path, max: usize) -> Result<(Vec<Entry>, bool), SandboxError> {
        let place = self.open_path(path, ResolveFlags::NO_SYMLINKS)?;
        let stat = stat_of(&place, path)?;
        if kind_of(&stat) != EntryKind::Directory {
            return Err(wrong_kind(path, &stat, "a directory"));
        }
        let directory = self.reopen(&place, OFlags::RDONLY | OFlags::DIRECTORY, path)?;
        let failed = |errno| failure("list", path, errno);
        let mut entries = Vec::new();
        let mut more = false;
        for found in Dir::read_from(&directory).map_err(failed)? {
            let found = found.map_err(failed)?;
            let name = found.file_name().to_bytes();
            if name == b"." || name == b".." {
                continue;
            }
            if entries.len() >= max {
                more = true;
                break;
            }
            let Ok(stat) = rustix::fs::statat(
                &directory,
                found.file_name(),
                rustix::fs::AtFlags::SYMLINK_NOFOLLOW,
            ) else {
                // It disappeared in the meantime.
                continue;
            };
            let name = String::from_utf8_lossy(name).into_owned();
            entries.push(Entry {
                name,
                kind: kind_of(&stat),
                bytes: size_of(&stat),
            });
        }
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        Ok((entries, more))
    }

    pub(crate) fn open_path(&self, path: &Path, extra: ResolveFlags) -> Result<OwnedFd, SandboxError> {
        self.resolve(path, OFlags::PATH | OFlags::CLOEXEC, extra)
    }

    fn open_last_link(&self, path: &Path) -> Result<OwnedFd, SandboxError> {
        let parent = path
            .parent()
            .filter(|parent| !parent.as_os_str().is_empty())
            .unwrap_or(Path::new("."));
        let directory = self.open_path(parent, ResolveFlags::NO_SYMLINKS)?;
        let name = path.file_name().unwrap_or_default();
        rustix::fs::openat(
            directory,
            name,
            OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC,
            Mode::empty(),
        )
        .map_err(|errno| failure("open", path, errno))
    }

    fn resolve(&self, path: &Path, flags: OFlags, extra: ResolveFlags) -> Result<OwnedFd, SandboxError> {
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS | extra;
        // The kernel returns AGAIN when something was renamed during the walk.
        for _ in 0..64 {
            match openat2(&self.root, path, flags, Mode::empty(), resolve) {
                Err(Errno::AGAIN | Errno::INTR) => {}
                Err(Errno::XDEV) => {
                    return Err(SandboxError::Outside {
                        path: show(path),
                        root: self.path.clone(),
                    });
                }
                other => return other.map_err(|errno| failure("open", path, errno)),
            }
        }
        Err(failure("open", path, Errno::AGAIN))
    }

    pub(crate) fn reopen(
        &self,
        place: &OwnedFd,
        flags: OFlags,
        path: &Path,
    ) -> Result<OwnedFd, SandboxError> {
        open(
            format!("/proc/self/fd/{}", place.as_raw_fd()),
            flags | OFlags::CLOEXEC,
            Mode::empty(),
        )
        .map_err(|errno| failure("open", path, errno))
    }

    fn real(&self, place: &OwnedFd, path: &Path) -> Result<PathBuf, SandboxError> {
        let failed = |errno| failure("examine", path, errno);
        let real = real_path(place.as_fd()).map_err(failed)?;
        let root = real_path(self.root.as_fd()).map_err(failed)?;
        let inside = real.strip_prefix(&root).map_err(|_| failed(Errno::STALE))?;
        Ok(if inside.as_os_str().is_empty() {
            PathBuf::from(".")
        } else {
            inside.to_owned()
        })
    }
}

fn real_path(fd: BorrowedFd<'_>) -> Result<PathBuf, Errno> {
    let link = readlink(format!("/proc/self/fd/{}", fd.as_raw_fd()), Vec::new())?;
    Ok(PathBuf::from(std::ffi::OsStr::from_bytes(link.as_bytes())))
}

pub(crate) fn stat_of(fd: &OwnedFd, path: &Path) -> Result<Stat, SandboxError> {
    fstat(fd).map_err(|errno| failure("examine", path, errno))
}

pub(crate) fn kind_of(stat: &Stat) -> EntryKind {
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => EntryKind::File,
        FileType::Directory => EntryKind::Directory,
        FileType::Symlink => EntryKind::Symlink,
        FileType::Fifo
        | FileType::Socket
        | FileType::CharacterDevice
        | FileType::BlockDevice
        | FileType::Unknown => EntryKind::Special,
    }
}

pub(crate) fn version_of(stat: &Stat) -> Version {
    Version {
        device: stat.st_dev,
        inode: stat.st_ino,
        bytes: size_of(stat),
        modified: (stat.st_mtime, stat.st_mtime_nsec),
        changed: (stat.st_ctime, stat.st_ctime_nsec),
    }
}

fn size_of(stat: &Stat) -> u64 {
    u64::try_from(stat.st_size).unwrap_or_default()
}

pub(crate) fn wrong_kind(path: &Path, stat: &Stat, wanted: &'static str) -> SandboxError {
    let found = match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => "a regular file",
        FileType::Directory => "a directory",
        FileType::Symlink => "a symbolic link",
        FileType::Fifo => "a named pipe",
        FileType::Socket => "a socket",
        FileType::CharacterDevice | FileType::BlockDevice => "a device",
        FileType::Unknown => "of an unknown type",
    };
    SandboxError::WrongKind {
        path: show(path),
        found,
        wanted,
    }
}

pub(crate) fn failure(action: &'static str, path: &Path, errno: Errno) -> SandboxError {
    let path = show(path);
    match errno {
        Errno::NOENT => SandboxError::NotFound { path },
        Errno::EXIST => SandboxError::Exists { path },
        Errno::LOOP => SandboxError::Symlink { path },
        Errno::NOTDIR => SandboxError::WrongKind {
            path,
            found: "below a path that is not a directory",
            wanted: "there",
        },
        other => SandboxError::Io {
            action,
            path,
            source: other.into(),
        },
    }
}

pub(crate) fn show(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}
