//! Puts recorded files back: all of them, or none.

use crate::archive::{Archive, Locked};
use crate::contents::Contents;
use crate::error::{Error, at};
use crate::files;
use crate::stats::{Seen, Stats};
use crate::trees::{Change, Item, Kind, Tree, TreeChange, compose, path_of};
use crate::walk::OWN;
use agentd_fault_points as fault;
use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, fchmod, mkdirat, openat, renameat, statat, symlinkat, unlinkat,
};
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::PathBuf;

/// Changes to revert.
#[derive(Debug, Clone)]
pub struct Back<'a> {
    /// Identifies this piece of work: an interrupted one is continued under the same key.
    pub key: &'a str,
    /// The changes, in their order.
    pub changes: &'a [TreeChange],
    /// Also revert files that were changed since.
    pub force: bool,
}

/// What was put back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Restored {
    /// The files before.
    pub before: Tree,
    /// The files now.
    pub after: Tree,
    /// The files that differ between these.
    pub files: Vec<PathBuf>,
}

/// One file to put back.
#[derive(Debug)]
pub(crate) struct Step {
    pub(crate) path: Vec<u8>,
    /// The file now; absent: it does not exist.
    pub(crate) now: Option<(Item, Seen)>,
    pub(crate) wanted: Option<Item>,
}

impl Archive {
    /// What reverting these changes would do now: the files, and those among them that were changed since.
    ///
    /// # Errors
    /// The directory cannot be recorded, or a tree is not known.
    pub fn planned(&self, changes: &[TreeChange]) -> Result<(Vec<PathBuf>, Vec<PathBuf>), Error> {
        let locked = self.lock()?;
        self.take_locked(&locked)?;
        let (steps, conflicts) = plan(&self.composed(changes)?, &self.stats());
        let files = steps.iter().map(|step| path_of(&step.path).to_owned());
        Ok((files.collect(), conflicts))
    }

    /// The files at these paths, as they were recorded last.
    #[must_use]
    pub fn current<'a>(&self, paths: impl Iterator<Item = &'a Vec<u8>>) -> BTreeMap<Vec<u8>, Item> {
        let stats = self.stats();
        let found = paths.filter_map(|path| Some((path.clone(), stats.find(path)?.item())));
        found.collect()
    }

    /// Several changes as one.
    ///
    /// # Errors
    /// A tree is not known, or `git` failed.
    pub fn composed(&self, changes: &[TreeChange]) -> Result<BTreeMap<Vec<u8>, Change>, Error> {
        let parts: Result<Vec<_>, Error> = changes.iter().map(|change| self.changes(change)).collect();
        Ok(compose(parts?))
    }

    /// Reverts changes. Files that are already as wanted are skipped, so it can be repeated after a crash.
    ///
    /// # Errors
    /// A file was changed since and `force` is not set, or cannot be written: then nothing was changed, except after
    /// [`Error::Halfway`] and [`Error::Unrecorded`].
    pub fn restore(&self, back: &Back<'_>) -> Result<Restored, Error> {
        let locked = self.lock()?;
        let now = self.take_locked(&locked)?;
        let (steps, conflicts) = plan(&self.composed(back.changes)?, &self.stats());
        if !conflicts.is_empty() && !back.force {
            return Err(Error::Conflict(conflicts));
        }
        let before = self.begun(back.key, &now.tree, &locked)?;
        self.carry_out(steps, back.force)?;
        self.restored(before, &locked)
            .map_err(|error| Error::Unrecorded(error.to_string()))
    }

    /// Records what was put back.
    fn restored(&self, before: Tree, locked: &Locked) -> Result<Restored, Error> {
        fault::point(fault::RESTORE_DONE)?;
        let after = self.take_locked(locked)?.tree;
        let done = self.changes(&TreeChange {
            before: before.clone(),
            after: after.clone(),
        })?;
        Ok(Restored {
            before,
            after,
            files: done.keys().map(|path| path_of(path).to_owned()).collect(),
        })
    }

    /// The files as they were when this work began, even if it was interrupted since.
    pub(crate) fn begun(&self, key: &str, now: &Tree, _locked: &Locked) -> Result<Tree, Error> {
        let mut line = String::new();
        let _ = write!(line, "{key} ");
        let path = self.repository.join("begun");
        if let Some(tree) = fs::read_to_string(&path)
            .ok()
            .as_deref()
            .and_then(|text| text.strip_prefix(&line))
        {
            return Tree::parse(tree);
        }
        let new = path.with_extension("new");
        fs::write(&new, format!("{line}{now}")).map_err(at(&new))?;
        fs::rename(&new, &path).map_err(at(&path))?;
        Ok(now.clone())
    }

    pub(crate) fn carry_out(&self, mut steps: Vec<Step>, force: bool) -> Result<(), Error> {
        // Deletions come first, the deepest first: a directory may have to become a file.
        steps.sort_by(|one, other| {
            let creates = |step: &Step| step.wanted.is_some();
            let order = creates(one).cmp(&creates(other));
            order.then_with(|| {
                if creates(one) {
                    one.path.cmp(&other.path)
                } else {
                    other.path.cmp(&one.path)
                }
            })
        });
        let mut contents = self.contents()?;
        for item in steps.iter().filter_map(|step| step.wanted.as_ref()) {
            contents.size(&item.content)?;
        }
        let root = files::open_root(&self.directory).map_err(at(&self.directory))?;
        for (count, step) in steps.iter().enumerate() {
            if let Err(error) = one(&root, step, &mut contents, force) {
                let done = steps.get(..count).unwrap_or_default();
                return Err(revert(&root, done, &mut contents, error));
            }
        }
        let _ = rustix::fs::syncfs(&root);
        Ok(())
    }
}

/// The files to put back, and those of them that were changed since.
fn plan(changes: &BTreeMap<Vec<u8>, Change>, stats: &Stats) -> (Vec<Step>, Vec<PathBuf>) {
    let (mut steps, mut conflicts) = (Vec::new(), Vec::new());
    for (path, change) in changes {
        let now = stats.find(path).map(|entry| (entry.item(), entry.seen));
        let item = now.as_ref().map(|(item, _)| item);
        if item == change.before.as_ref() {
            continue;
        }
        if item != change.after.as_ref() {
            conflicts.push(path_of(path).to_owned());
        }
        steps.push(Step {
            path: path.clone(),
            now,
            wanted: change.before.clone(),
        });
    }
    (steps, conflicts)
}

/// Reverts the steps that were done before one failed.
fn revert(root: &OwnedFd, done: &[Step], contents: &mut Contents, error: Error) -> Error {
    let mut first = None;
    // First what must go, then what must come back.
    let (created, others): (Vec<_>, Vec<_>) = done.iter().rev().partition(|step| step.now.is_none());
    for step in created.into_iter().chain(others) {
        let back = Step {
            path: step.path.clone(),
            now: None,
            wanted: step.now.as_ref().map(|(item, _)| item.clone()),
        };
        if let Err(error) = one(root, &back, contents, true) {
            first.get_or_insert(error);
        }
    }
    match first {
        None => error,
        Some(undone) => Error::Halfway {
            why: error.to_string(),
            undone: undone.to_string(),
        },
    }
}

/// Puts one file back.
pub(crate) fn one(root: &OwnedFd, step: &Step, contents: &mut Contents, force: bool) -> Result<(), Error> {
    fault::point(fault::RESTORE_FILE)?;
    let path = path_of(&step.path);
    let content = match &step.wanted {
        Some(item) => Some((item.kind, contents.get(&item.content)?)),
        None => None,
    };
    let done = match content {
        Some((kind, bytes)) => write(root.as_fd(), step, (kind, &bytes), force),
        None => remove(root.as_fd(), step, force),
    };
    done.map_err(|error| match error.kind() {
        io::ErrorKind::ResourceBusy => Error::Conflict(vec![path.to_owned()]),
        _ => at(path)(error),
    })
}

/// Whether a file is still as it was recorded a moment ago.
fn verify(dir: BorrowedFd<'_>, name: &[u8], step: &Step, force: bool) -> io::Result<Option<u32>> {
    let stat = match statat(dir, files::component(name)?, AtFlags::SYMLINK_NOFOLLOW) {
        Err(Errno::NOENT) => None,
        other => Some(other?),
    };
    let is_dir = stat.is_some_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Directory);
    let same = match (&step.now, &stat) {
        (Some((_, seen)), Some(stat)) => *seen == Seen::of(stat),
        (None, None) => true,
        // Its files were deleted; if others are left in it, it cannot be removed.
        (None, Some(_)) => is_dir,
        (Some(_), None) => false,
    };
    if !same && !force {
        return Err(io::Error::from(io::ErrorKind::ResourceBusy));
    }
    Ok(stat.filter(|_| !is_dir).map(|stat| stat.st_mode))
}

fn remove(root: BorrowedFd<'_>, step: &Step, force: bool) -> io::Result<()> {
    let (parent, name) = files::split(&step.path);
    let dir = match files::open_dir(root, parent) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        other => other?,
    };
    if verify(dir.as_fd(), name, step, force)?.is_some() {
        unlinkat(&dir, files::component(name)?, AtFlags::empty())?;
    }
    prune(root, parent)
}

/// Removes directories that became empty.
fn prune(root: BorrowedFd<'_>, mut dir: &[u8]) -> io::Result<()> {
    while !dir.is_empty() {
        let (parent, name) = files::split(dir);
        let above = files::open_dir(root, parent)?;
        match unlinkat(&above, files::component(name)?, AtFlags::REMOVEDIR) {
            Ok(()) => dir = parent,
            Err(_) => break,
        }
    }
    Ok(())
}

fn write(root: BorrowedFd<'_>, step: &Step, (kind, bytes): (Kind, &[u8]), force: bool) -> io::Result<()> {
    let (parent, name) = files::split(&step.path);
    let dir = make_dir(root, parent)?;
    let mode = verify(dir.as_fd(), name, step, force)?;
    let name = files::component(name)?;
    let temporary = [OWN, &crate::take::id_of(&step.path).map(|byte| b'a' + byte % 26)].concat();
    let temporary = path_of(&temporary);
    match unlinkat(&dir, temporary, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => {}
        Err(error) => return Err(error.into()),
    }
    let created = create(&dir, temporary, (kind, bytes), mode).and_then(|()| {
        if mode.is_none() && kind_at(&dir, name) == Some(FileType::Directory) {
            empty(&dir, name)?;
        }
        Ok(renameat(&dir, temporary, &dir, name)?)
    });
    if created.is_err() {
        let _ = unlinkat(&dir, temporary, AtFlags::empty());
    }
    created
}

fn kind_at(dir: &OwnedFd, name: &std::path::Path) -> Option<FileType> {
    let stat = statat(dir, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
    Some(FileType::from_raw_mode(stat.st_mode))
}

/// Removes a directory that has only empty directories.
fn empty(dir: &OwnedFd, name: &std::path::Path) -> io::Result<()> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let below = openat(dir, name, flags, Mode::empty())?;
    for entry in rustix::fs::Dir::read_from(&below)? {
        let entry = entry?;
        let inner = entry.file_name().to_bytes();
        if inner != b"." && inner != b".." {
            empty(&below, files::component(inner)?)?;
        }
    }
    Ok(unlinkat(dir, name, AtFlags::REMOVEDIR)?)
}

fn create(
    dir: &OwnedFd,
    name: &std::path::Path,
    (kind, bytes): (Kind, &[u8]),
    mode: Option<u32>,
) -> io::Result<()> {
    if kind == Kind::Link {
        return Ok(symlinkat(path_of(bytes), dir, name)?);
    }
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut file = File::from(openat(dir, name, flags, Mode::from_raw_mode(0o600))?);
    file.write_all(bytes)?;
    let was = mode.filter(|mode| FileType::from_raw_mode(*mode) == FileType::RegularFile);
    let was = was.map_or(0o644, |mode| mode & 0o777);
    let readable = (was & 0o444) >> 2;
    let mode = if kind == Kind::Executable {
        was | readable
    } else {
        was & !0o111
    };
    Ok(fchmod(&file, Mode::from_raw_mode(mode))?)
}

/// Opens a directory, and creates it if it is missing.
fn make_dir(root: BorrowedFd<'_>, path: &[u8]) -> io::Result<OwnedFd> {
    let mut dir = files::open_dir(root, b"")?;
    for name in path.split(|byte| *byte == b'/').filter(|name| !name.is_empty()) {
        match mkdirat(&dir, files::component(name)?, Mode::from_raw_mode(0o755)) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
        dir = files::open_dir(dir.as_fd(), name)?;
    }
    Ok(dir)
}
