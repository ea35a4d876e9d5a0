//! Replaces a repository's configuration, its packed references, or the steps of an operation, after checking the content, by
//! a copy that no other process can write.

use super::places::Checked;
use super::resolve::Named;
use agentd_protected::{
    ConfigChange, check_config_change, check_options, check_packed_refs, check_steps, may_remove_config,
};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, fstat, openat, renameat, unlinkat};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{Read as _, Write as _};

impl Checked {
    /// The largest file to check.
    const fn max_bytes(self) -> u64 {
        match self {
            Self::Config | Self::Options => 1 << 20,
            Self::PackedRefs | Self::Steps => 64 << 20,
        }
    }

    fn check(self, old: &str, new: &str) -> Result<(), ConfigChange> {
        match self {
            Self::Config => check_config_change(old, new),
            Self::PackedRefs => check_packed_refs(old, new),
            Self::Steps => check_steps(old, new),
            Self::Options => check_options(old, new),
        }
    }
}

/// The name of the copy in the git directory. Commands cannot create a file of this name.
const COPY: &str = "config.agentd";

/// Performs the last step of every change by git: the rename of `config.lock` to `config`, of `packed-refs.new` to
/// `packed-refs`.
///
/// The caller may still have the file open, so this checks the text that it reads and writes that to a new file.
pub(super) fn replace(what: Checked, from: &Named, to: &Named) -> Result<(), Errno> {
    let (new, mode) = read(what, &from.dir, &from.name)?;
    let old = match read(what, &to.dir, &to.name) {
        Ok((old, _)) => old,
        Err(Errno::NOENT) => String::new(),
        Err(errno) => return Err(errno),
    };
    what.check(&old, &new).map_err(|_| Errno::ACCESS)?;
    match unlinkat(&to.dir, COPY, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => {}
        Err(errno) => return Err(errno),
    }
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut copy = File::from(openat(&to.dir, COPY, flags, mode)?);
    let written = copy.write_all(new.as_bytes());
    written.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
    renameat(&to.dir, COPY, &to.dir, &to.name)?;
    unlinkat(&from.dir, &from.name, AtFlags::empty())
}

/// Whether a configuration may be removed.
pub(super) fn may_remove(named: &Named) -> Result<(), Errno> {
    let (text, _) = read(Checked::Config, &named.dir, &named.name)?;
    may_remove_config(&text).then_some(()).ok_or(Errno::ACCESS)
}

/// The text and permissions of a regular file. Opening it never blocks.
fn read(what: Checked, dir: &OwnedFd, name: &OsStr) -> Result<(String, Mode), Errno> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = openat(dir.as_fd(), name, flags, Mode::empty())?;
    let stat = fstat(&file)?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err(Errno::ACCESS);
    }
    let mut bytes = Vec::new();
    let max = what.max_bytes();
    let length = File::from(file).take(max + 1).read_to_end(&mut bytes);
    let length = length.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
    if u64::try_from(length).unwrap_or(u64::MAX) > max {
        return Err(Errno::FBIG);
    }
    let text = String::from_utf8(bytes).map_err(|_| Errno::ILSEQ)?;
    Ok((
        text,
        Mode::from_raw_mode(stat.st_mode) & Mode::from_bits_retain(0o777),
    ))
}
