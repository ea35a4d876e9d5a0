//! Copies files and directories: by reflink where the file system can, otherwise byte by byte. It follows no link, so a
//! directory that somebody changes meanwhile cannot lead it elsewhere.

use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{
    AtFlags, Dir, FileType, Mode, OFlags, Timespec, Timestamps, fchmod, fstat, futimens, ioctl_ficlone,
    mkdirat, openat, readlinkat, statat, symlinkat,
};
use rustix::io::Errno;
use std::ffi::{CString, OsStr};
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path};
use std::time::Instant;

/// The deepest directory. Each level holds two descriptors.
const MAX_DEPTH: usize = 200;

/// The bounds of a copy, and what it has done.
#[derive(Debug)]
pub(crate) struct Copy {
    /// The most bytes.
    pub(crate) max_bytes: u64,
    /// The most files, directories and links.
    pub(crate) max_entries: u64,
    /// When it must end.
    pub(crate) until: Instant,
    /// What it copied.
    pub(crate) bytes: u64,
    pub(crate) entries: u64,
    /// Sockets, pipes and devices that it left out.
    pub(crate) left_out: u64,
    /// The file system refused a reflink.
    no_reflink: bool,
}

/// Why a copy ended early.
#[derive(Debug)]
pub(crate) enum Stopped {
    /// A limit was reached; in words.
    Limit(String),
    /// A file operation failed.
    Failed(io::Error),
}

impl From<Errno> for Stopped {
    fn from(errno: Errno) -> Self {
        Self::Failed(errno.into())
    }
}

impl From<io::Error> for Stopped {
    fn from(error: io::Error) -> Self {
        Self::Failed(error)
    }
}

const DIRECTORY: OFlags = OFlags::DIRECTORY.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

impl Copy {
    pub(crate) const fn new(max_bytes: u64, max_entries: u64, until: Instant) -> Self {
        Self {
            max_bytes,
            max_entries,
            until,
            bytes: 0,
            entries: 0,
            left_out: 0,
            no_reflink: false,
        }
    }

    /// Copies the contents of a directory into an existing one.
    pub(crate) fn contents(&mut self, from: &Path, to: &Path) -> Result<(), Stopped> {
        let open = |path: &Path| rustix::fs::open(path, DIRECTORY, Mode::empty());
        let (from, to) = (open(from)?, open(to)?);
        self.directory(&from, &to, 0)
    }

    /// Copies one relative path below a directory to the same path below another. Returns false if it does not exist, or
    /// exists already.
    pub(crate) fn path(&mut self, top: &Path, to: &Path, relative: &Path) -> Result<bool, Stopped> {
        let open = |path: &Path| rustix::fs::open(path, DIRECTORY, Mode::empty());
        let (mut from, mut to) = (open(top)?, open(to)?);
        let names: Vec<&OsStr> = relative
            .components()
            .filter_map(|part| match part {
                Component::Normal(name) => Some(name),
                _ => None,
            })
            .collect();
        let Some((last, parents)) = names.split_last() else {
            return Ok(false);
        };
        for name in parents {
            from = match openat(&from, *name, DIRECTORY, Mode::empty()) {
                Ok(dir) => dir,
                Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Ok(false),
                Err(errno) => return Err(errno.into()),
            };
            match mkdirat(&to, *name, Mode::from_raw_mode(0o755)) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(errno) => return Err(errno.into()),
            }
            to = openat(&to, *name, DIRECTORY, Mode::empty())?;
        }
        if matches!(statat(&from, *last, AtFlags::SYMLINK_NOFOLLOW), Err(Errno::NOENT))
            || statat(&to, *last, AtFlags::SYMLINK_NOFOLLOW).is_ok()
        {
            return Ok(false);
        }
        let name = CString::new(last.as_bytes()).map_err(|_| Errno::INVAL)?;
        self.entry(&from, &to, &name, 0)?;
        Ok(true)
    }

    fn directory(&mut self, from: &OwnedFd, to: &OwnedFd, depth: usize) -> Result<(), Stopped> {
        if depth > MAX_DEPTH {
            return Err(Stopped::Limit(format!(
                "a directory is more than {MAX_DEPTH} levels deep"
            )));
        }
        for entry in Dir::read_from(from)? {
            let entry = entry?;
            let name = entry.file_name();
            if !matches!(name.to_bytes(), b"." | b"..") {
                self.entry(from, to, name, depth)?;
            }
        }
        Ok(())
    }

    fn entry(
        &mut self,
        from: &OwnedFd,
        to: &OwnedFd,
        name: &std::ffi::CStr,
        depth: usize,
    ) -> Result<(), Stopped> {
        self.entries += 1;
        if self.entries > self.max_entries {
            return Err(Stopped::Limit(format!("more than {} files", self.max_entries)));
        }
        if Instant::now() >= self.until {
            return Err(Stopped::Limit(
                "the copy takes longer than its time limit".to_owned(),
            ));
        }
        let found = match statat(from, name, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => return Ok(()),
            found => found?,
        };
        match FileType::from_raw_mode(found.st_mode) {
            FileType::Directory => {
                let inner = openat(from, name, DIRECTORY, Mode::empty())?;
                mkdirat(to, name, Mode::from_raw_mode(0o700))?;
                let made = openat(to, name, DIRECTORY, Mode::empty())?;
                self.directory(&inner, &made, depth + 1)?;
                fchmod(&made, mode_of(found.st_mode))?;
            }
            FileType::RegularFile => self.file(from, to, name)?,
            FileType::Symlink => {
                let target = readlinkat(from, name, Vec::new())?;
                symlinkat(&*target, to, name)?;
            }
            _ => self.left_out += 1,
        }
        Ok(())
    }

    fn file(&mut self, from: &OwnedFd, to: &OwnedFd, name: &std::ffi::CStr) -> Result<(), Stopped> {
        let read = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let source = openat(from, name, read, Mode::empty())?;
        let found = fstat(&source)?;
        if FileType::from_raw_mode(found.st_mode) != FileType::RegularFile {
            self.left_out += 1;
            return Ok(());
        }
        let size = u64::try_from(found.st_size).unwrap_or(0);
        self.bytes = self.bytes.saturating_add(size);
        if self.bytes > self.max_bytes {
            return Err(Stopped::Limit(format!("more than {} bytes", self.max_bytes)));
        }
        let write = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let target = openat(to, name, write, Mode::from_raw_mode(0o600))?;
        self.fill(&source, &target, size)?;
        fchmod(&target, mode_of(found.st_mode))?;
        let time = |seconds, nanos| -> Timespec {
            Timespec {
                tv_sec: seconds,
                tv_nsec: i64::try_from(nanos).unwrap_or(0),
            }
        };
        let times = Timestamps {
            last_access: time(found.st_atime, found.st_atime_nsec),
            last_modification: time(found.st_mtime, found.st_mtime_nsec),
        };
        futimens(&target, &times)?;
        Ok(())
    }

    fn fill(&mut self, source: &OwnedFd, target: &OwnedFd, size: u64) -> Result<(), Stopped> {
        if !self.no_reflink && size > 0 {
            match ioctl_ficlone(target.as_fd(), source.as_fd()) {
                Ok(()) => return Ok(()),
                Err(_) => self.no_reflink = true,
            }
        }
        let (source, mut target) = (File::from(source.try_clone()?), File::from(target.try_clone()?));
        // A file that grows meanwhile is copied as it was.
        io::copy(&mut io::Read::take(source, size), &mut target)?;
        Ok(())
    }
}

/// The permissions without set-user-id and the like.
const fn mode_of(mode: u32) -> Mode {
    Mode::from_bits_truncate(mode & 0o777)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    use std::time::Duration;

    fn copy(max_bytes: u64, max_entries: u64) -> Copy {
        Copy::new(max_bytes, max_entries, Instant::now() + Duration::from_secs(60))
    }

    #[test]
    fn contents_modes_and_links_are_copied_and_nothing_is_followed() {
        let dir = tempfile::tempdir().unwrap();
        let (from, to) = (dir.path().join("from"), dir.path().join("to"));
        fs::create_dir_all(from.join("a/b")).unwrap();
        fs::create_dir(&to).unwrap();
        fs::write(from.join("a/b/run"), "#!/bin/sh").unwrap();
        fs::set_permissions(from.join("a/b/run"), fs::Permissions::from_mode(0o755)).unwrap();
        fs::write(dir.path().join("secret"), "secret").unwrap();
        symlink("../secret", from.join("link")).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(from.join("socket")).unwrap();
        let mut done = copy(1_000, 10);
        done.contents(&from, &to).unwrap();
        assert_eq!((done.entries, done.bytes, done.left_out), (5, 9, 1));
        assert_eq!(fs::read_to_string(to.join("a/b/run")).unwrap(), "#!/bin/sh");
        assert_eq!(
            fs::metadata(to.join("a/b/run")).unwrap().permissions().mode() & 0o777,
            0o755
        );
        assert_eq!(fs::read_link(to.join("link")).unwrap(), Path::new("../secret"));
        let (old, new) = (from.join("a/b/run"), to.join("a/b/run"));
        let modified = |path: &Path| fs::metadata(path).unwrap().modified().unwrap();
        assert_eq!(modified(&old), modified(&new));
    }

    #[test]
    fn a_limit_stops_a_copy_at_its_edge() {
        let dir = tempfile::tempdir().unwrap();
        let from = dir.path().join("from");
        fs::create_dir(&from).unwrap();
        fs::write(from.join("one"), "12345").unwrap();
        fs::write(from.join("two"), "12345").unwrap();
        let tried = |bytes, entries| {
            let to = tempfile::tempdir().unwrap();
            copy(bytes, entries).contents(&from, to.path())
        };
        assert!(tried(10, 2).is_ok());
        assert!(matches!(tried(9, 2), Err(Stopped::Limit(_))));
        assert!(matches!(tried(10, 1), Err(Stopped::Limit(_))));
    }

    #[test]
    fn single_paths_are_copied_if_they_exist_on_one_side_only() {
        let dir = tempfile::tempdir().unwrap();
        let (from, to) = (dir.path().join("from"), dir.path().join("to"));
        fs::create_dir_all(from.join("a/modules/x")).unwrap();
        fs::create_dir(&to).unwrap();
        fs::write(from.join("a/modules/x/y"), "1").unwrap();
        symlink("/etc", from.join("b")).unwrap();
        let mut done = copy(100, 100);
        assert!(done.path(&from, &to, Path::new("a/modules")).unwrap());
        assert_eq!(fs::read_to_string(to.join("a/modules/x/y")).unwrap(), "1");
        assert!(!done.path(&from, &to, Path::new("a/modules")).unwrap());
        assert!(!done.path(&from, &to, Path::new("missing")).unwrap());
        // A link on the way is not followed.
        assert!(!done.path(&from, &to, Path::new("b/passwd")).unwrap());
    }
}
