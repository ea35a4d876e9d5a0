//! Walks a directory: which files it has now, without reading them.

use crate::error::{Error, at};
use crate::files::{self, kind_of};
use crate::ignored::{self, Ignored};
use crate::stats::{Seen, Stats};
use crate::trees::path_of;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, RawDir, fstat, openat, statat};
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::Path;

/// The most directories inside each other.
const MOST_DEPTH: usize = 200;
/// The most names of files that are listed as left out.
const MOST_SHOWN: usize = 20;
/// The bytes that one read of a directory may return.
const BUFFER: usize = 32 * 1024;
/// Files that this crate itself was writing when it was killed.
pub(crate) const OWN: &[u8] = b".agentd-restore-";

/// A file that exists now.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Found {
    start: usize,
    end: usize,
    pub(crate) seen: Seen,
}

/// Files that are not recorded, and why.
#[derive(Debug, Default)]
pub(crate) struct LeftOut {
    shown: Vec<String>,
    more: u64,
}

impl LeftOut {
    pub(crate) fn add(&mut self, path: &[u8], why: &str) {
        if self.shown.len() < MOST_SHOWN {
            self.shown.push(format!("{}: {why}", path_of(path).display()));
        } else {
            self.more += 1;
        }
    }

    pub(crate) fn into_lines(mut self) -> Vec<String> {
        if self.more > 0 {
            self.shown.push(format!("{} more", self.more));
        }
        self.shown
    }
}

/// The files of a directory, in the order of their paths.
#[derive(Debug, Default)]
pub(crate) struct Walked {
    paths: Vec<u8>,
    pub(crate) found: Vec<Found>,
    pub(crate) left_out: LeftOut,
}

impl Walked {
    /// The path of a file.
    pub(crate) fn path(&self, found: &Found) -> &[u8] {
        self.paths.get(found.start..found.end).unwrap_or_default()
    }
}

/// The walk.
#[derive(Debug)]
pub(crate) struct Walk<'a> {
    pub(crate) stats: &'a Stats,
    pub(crate) max_files: u64,
    pub(crate) max_file_bytes: u64,
    /// A directory that is never recorded: agentd's own.
    pub(crate) apart: &'a Path,
}

struct State<'a> {
    walk: Walk<'a>,
    device: u64,
    apart: Option<(u64, u64)>,
    ignored: Ignored,
    /// The current directory, with a slash at its end unless it is the root.
    path: Vec<u8>,
    walked: Walked,
}

/// A name in a directory.
struct Name {
    /// With a slash at its end if it is a directory: then names sort like whole paths.
    sorted: Vec<u8>,
    kind: FileType,
}

impl Walk<'_> {
    /// Walks everything beneath an open directory.
    pub(crate) fn beneath(self, root: &OwnedFd, directory: &Path) -> Result<Walked, Error> {
        let about = fstat(root).map_err(at(directory))?;
        let apart = rustix::fs::stat(self.apart).ok();
        let mut state = State {
            apart: apart.map(|apart| (apart.st_dev, apart.st_ino)),
            walk: self,
            device: about.st_dev,
            ignored: Ignored::default(),
            path: Vec::new(),
            walked: Walked::default(),
        };
        let info = files::open_dir(root.as_fd(), b"").and_then(|dir| {
            let exclude = openat(
                &dir,
                ".git",
                OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW,
                Mode::empty(),
            )?;
            let info = openat(
                &exclude,
                "info",
                OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW,
                Mode::empty(),
            )?;
            files::read(&info, b"exclude", ignored::MOST_BYTES)
        });
        if let Ok(files::Read::Content { bytes, .. }) = info {
            state.ignored.enter(0, &bytes);
        }
        state.directory(root, 0).map_err(|error| match error {
            Error::File { path, error } => Error::File {
                path: directory.join(path),
                error,
            },
            other => other,
        })?;
        Ok(state.walked)
    }
}

impl State<'_> {
    fn directory(&mut self, dir: &OwnedFd, depth: usize) -> Result<(), Error> {
        let rules = self.ignored.depth();
        let mut names = names_of(dir).map_err(at(path_of(&self.path)))?;
        names.sort_unstable_by(|one, other| one.sorted.cmp(&other.sorted));
        if names.iter().any(|name| name.sorted == b".gitignore")
            && let Ok(files::Read::Content { bytes, .. }) =
                files::read(dir, b".gitignore", ignored::MOST_BYTES)
        {
            self.ignored.enter(self.path.len(), &bytes);
        }
        for Name { sorted, kind } in names {
            let length = self.path.len();
            self.path.extend(&sorted);
            let done = self.entry(dir, kind, (length, depth));
            self.path.truncate(length);
            done?;
        }
        self.ignored.leave(rules);
        Ok(())
    }

    /// One name; the current path ends with it.
    fn entry(&mut self, dir: &OwnedFd, kind: FileType, (above, depth): (usize, usize)) -> Result<(), Error> {
        if kind == FileType::Directory {
            self.path.pop();
            if self.skips(true) {
                return Ok(());
            }
            return self.enter(dir, (above, depth));
        }
        if self.skips(false) {
            return Ok(());
        }
        let name = self.path.get(above..).unwrap_or_default();
        // It may be gone by now.
        let Ok(stat) = statat(dir, path_of(name), AtFlags::SYMLINK_NOFOLLOW) else {
            return Ok(());
        };
        if kind_of(&stat).is_none() {
            return Ok(());
        }
        let seen = Seen::of(&stat);
        if seen.size > self.walk.max_file_bytes {
            let why = format!("{} bytes, more than workspace.checkpoint_file_bytes", seen.size);
            self.walked.left_out.add(&self.path, &why);
            return Ok(());
        }
        if self.walked.found.len() as u64 >= self.walk.max_files {
            return Err(Error::TooManyFiles(self.walk.max_files));
        }
        let start = self.walked.paths.len();
        self.walked.paths.extend(&self.path);
        let end = self.walked.paths.len();
        self.walked.found.push(Found { start, end, seen });
        Ok(())
    }

    fn skips(&self, is_dir: bool) -> bool {
        self.ignored.has(&self.path, is_dir) && !self.walk.stats.has_below(&self.path)
    }

    fn enter(&mut self, dir: &OwnedFd, (above, depth): (usize, usize)) -> Result<(), Error> {
        let name = path_of(self.path.get(above..).unwrap_or_default());
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let below = match openat(dir, name, flags, Mode::empty()) {
            Ok(below) => below,
            Err(error) => {
                self.walked
                    .left_out
                    .add(&self.path, &io::Error::from(error).to_string());
                return Ok(());
            }
        };
        let about = fstat(&below).map_err(at(path_of(&self.path)))?;
        if about.st_dev != self.device {
            self.walked.left_out.add(&self.path, "another file system");
            return Ok(());
        }
        if self.apart == Some((about.st_dev, about.st_ino)) {
            self.walked
                .left_out
                .add(&self.path, "the data directory of agentd");
            return Ok(());
        }
        if depth >= MOST_DEPTH {
            self.walked
                .left_out
                .add(&self.path, "too many directories inside each other");
            return Ok(());
        }
        self.path.push(b'/');
        self.directory(&below, depth + 1)
    }
}

/// The names in a directory, without those that are never recorded.
fn names_of(dir: &OwnedFd) -> io::Result<Vec<Name>> {
    let mut names = Vec::new();
    let mut buffer = Vec::with_capacity(BUFFER);
    let mut entries = RawDir::new(dir, buffer.spare_capacity_mut());
    while let Some(entry) = entries.next() {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if matches!(name, b"." | b"..") || name.eq_ignore_ascii_case(b".git") || name.starts_with(OWN) {
            continue;
        }
        let kind = match entry.file_type() {
            FileType::Unknown => {
                FileType::from_raw_mode(statat(dir, path_of(name), AtFlags::SYMLINK_NOFOLLOW)?.st_mode)
            }
            known => known,
        };
        let mut sorted = name.to_vec();
        if kind == FileType::Directory {
            sorted.push(b'/');
        }
        names.push(Name { sorted, kind });
    }
    Ok(names)
}
