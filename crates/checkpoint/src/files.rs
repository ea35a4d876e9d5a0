//! Opens files beneath a directory. No part of a path may be a symbolic link, so nothing outside is reached, whatever
//! the commands of a session do meanwhile.

use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat, fstat, open, openat, readlinkat, statat};
use rustix::io::Errno;
use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use crate::stats::Seen;
use crate::trees::{Kind, path_of};

/// The flags to open a directory for walking on.
const DIRECTORY: OFlags = OFlags::PATH
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// Opens the directory itself. Its own path may have links: it comes from the session's settings.
pub(crate) fn open_root(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(open(path, flags, Mode::empty())?)
}

/// Splits a path into its directory and its name.
pub(crate) fn split(path: &[u8]) -> (&[u8], &[u8]) {
    match path.iter().rposition(|byte| *byte == b'/') {
        Some(at) => (
            path.get(..at).unwrap_or_default(),
            path.get(at + 1..).unwrap_or_default(),
        ),
        None => (b"", path),
    }
}

/// Opens a directory beneath the root.
pub(crate) fn open_dir(root: BorrowedFd<'_>, path: &[u8]) -> io::Result<OwnedFd> {
    let mut dir = openat(root, ".", DIRECTORY, Mode::empty())?;
    for name in path.split(|byte| *byte == b'/').filter(|name| !name.is_empty()) {
        dir = openat(&dir, component(name)?, DIRECTORY, Mode::empty())?;
    }
    Ok(dir)
}

/// Refuses a name that leads elsewhere.
pub(crate) fn component(name: &[u8]) -> io::Result<&Path> {
    let bad = name.is_empty() || name == b"." || name == b".." || name.eq_ignore_ascii_case(b".git");
    if bad || name.contains(&b'/') {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "a name that is never recorded",
        ));
    }
    Ok(path_of(name))
}

/// What was read of a file.
#[derive(Debug)]
pub(crate) enum Read {
    /// Its content.
    Content { seen: Seen, kind: Kind, bytes: Vec<u8> },
    /// It is gone, or is no file any more.
    Gone,
    /// It is too large.
    TooLarge,
}

/// Reads a file or the target of a symbolic link in an open directory.
pub(crate) fn read(dir: impl AsFd, name: &[u8], most: u64) -> io::Result<Read> {
    let dir = dir.as_fd();
    let name = component(name)?;
    let stat = match statat(dir, name, AtFlags::SYMLINK_NOFOLLOW) {
        Err(Errno::NOENT | Errno::NOTDIR) => return Ok(Read::Gone),
        other => other?,
    };
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::Symlink => {
            let target = readlinkat(dir, name, Vec::new())?;
            Ok(Read::Content {
                seen: Seen::of(&stat),
                kind: Kind::Link,
                bytes: target.into_bytes(),
            })
        }
        FileType::RegularFile => read_regular(dir, name, most),
        _ => Ok(Read::Gone),
    }
}

fn read_regular(dir: BorrowedFd<'_>, name: &Path, most: u64) -> io::Result<Read> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    let file = match openat(dir, name, flags, Mode::empty()) {
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Ok(Read::Gone),
        other => other?,
    };
    let stat = fstat(&file)?;
    let Some(kind) = kind_of(&stat) else {
        return Ok(Read::Gone);
    };
    let seen = Seen::of(&stat);
    if seen.size > most {
        return Ok(Read::TooLarge);
    }
    let mut bytes = Vec::with_capacity(usize::try_from(seen.size).unwrap_or(0));
    File::from(file)
        .take(most.saturating_add(1))
        .read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        return Ok(Read::TooLarge);
    }
    Ok(Read::Content { seen, kind, bytes })
}

/// What a recorded file is; none: it is not recorded.
pub(crate) fn kind_of(stat: &Stat) -> Option<Kind> {
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile if stat.st_mode & 0o100 != 0 => Some(Kind::Executable),
        FileType::RegularFile => Some(Kind::File),
        FileType::Symlink => Some(Kind::Link),
        _ => None,
    }
}
