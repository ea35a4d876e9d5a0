//! Paths that a rule forbids to write are found by their whole path, so a directory must not carry one away or into place,
//! and a link must not take the place of a directory that leads to one.

use super::Broker;
use super::judge::Kind;
use super::resolve::{Named, bare};
use rustix::fd::OwnedFd;
use rustix::fs::{Dir, FileType, Mode, OFlags, openat};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// The maximum number of entries to look at. `mv` copies a larger directory.
const MOST: usize = 10_000;

impl Broker {
    /// Whether something may move as far as denied paths are concerned. Otherwise `mv` copies, and each name is judged.
    pub(super) fn may_carry(&self, kind: Kind, from: &Named, to: &Named) -> Result<(), Errno> {
        if !self.places.has_denied() || kind != Kind::Directory {
            return self.may_lead(kind, &to.path);
        }
        let carries = |inside: &Path| {
            self.places.denies(&from.path.join(inside)) || self.places.denies(&to.path.join(inside))
        };
        let misleads = |inside: &Path| self.places.leads_to_denied(&to.path.join(inside));
        let mut left = MOST;
        let mut waiting = vec![PathBuf::new()];
        while let Some(at) = waiting.pop() {
            for entry in entries(from, &at)? {
                let entry = entry?;
                let name = entry.file_name().to_bytes();
                if name == b"." || name == b".." {
                    continue;
                }
                left = left.checked_sub(1).ok_or(Errno::XDEV)?;
                let inside = at.join(OsStr::from_bytes(name));
                if carries(&inside) {
                    return Err(Errno::XDEV);
                }
                match entry.file_type() {
                    FileType::Directory => waiting.push(inside),
                    FileType::Symlink if misleads(&inside) => return Err(Errno::XDEV),
                    // The file system does not say.
                    FileType::Unknown => return Err(Errno::XDEV),
                    _ => {}
                }
            }
        }
        Ok(())
    }

    /// Whether a link may have this name.
    pub(super) fn may_lead(&self, kind: Kind, to: &Path) -> Result<(), Errno> {
        let misleads = kind == Kind::Symlink && self.places.leads_to_denied(to);
        if misleads { Err(Errno::ACCESS) } else { Ok(()) }
    }
}

fn entries(top: &Named, at: &Path) -> Result<Dir, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let opened: OwnedFd = openat(
        &top.dir,
        Path::new(bare(&top.name)).join(at),
        flags,
        Mode::empty(),
    )?;
    Dir::new(opened)
}
