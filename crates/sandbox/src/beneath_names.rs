//! Directory listings for walks: without a stat of each entry, where the file system reports its kind.

use crate::beneath::{Beneath, EntryKind, failure, kind_of, stat_of, wrong_kind};
use crate::error::SandboxError;
use rustix::fs::{AtFlags, Dir, FileType, OFlags, ResolveFlags, statat};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

/// A name in a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named {
    /// The name, without the directory.
    pub name: OsString,
    /// The kind of the entry; links are not followed.
    pub kind: EntryKind,
}

impl Beneath {
    /// The names in a directory in order, at most `max`, and whether there are more. Does not follow links on the way.
    ///
    /// # Errors
    /// When it is missing, or not a directory.
    pub fn names(&self, path: &Path, max: usize) -> Result<(Vec<Named>, bool), SandboxError> {
        let place = self.open_path(path, ResolveFlags::NO_SYMLINKS)?;
        let stat = stat_of(&place, path)?;
        if kind_of(&stat) != EntryKind::Directory {
            return Err(wrong_kind(path, &stat, "a directory"));
        }
        let directory = self.reopen(&place, OFlags::RDONLY | OFlags::DIRECTORY, path)?;
        let failed = |errno| failure("list", path, errno);
        let mut names = Vec::new();
        for found in Dir::read_from(&directory).map_err(failed)? {
            let found = found.map_err(failed)?;
            let name = found.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            if names.len() >= max {
                names.sort_unstable_by(|a: &Named, b: &Named| a.name.cmp(&b.name));
                return Ok((names, true));
            }
            let kind = match found.file_type() {
                FileType::RegularFile => EntryKind::File,
                FileType::Directory => EntryKind::Directory,
                FileType::Symlink => EntryKind::Symlink,
                // Some file systems do not report the kind.
                FileType::Unknown => match statat(&directory, name, AtFlags::SYMLINK_NOFOLLOW) {
                    Ok(stat) => kind_of(&stat),
                    Err(_) => continue,
                },
                _ => EntryKind::Special,
            };
            let name = OsStr::from_bytes(name.to_bytes()).to_owned();
            names.push(Named { name, kind });
        }
        names.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        Ok((names, false))
    }
}
