//! Records the files of a directory.

use crate::archive::{Archive, Locked};
use crate::error::{Error, at};
use crate::files::{self, Read};
use crate::import::{AGENTD, Import, Onto};
use crate::pack::{self, Id, Leaf, Pack, What};
use crate::stats::{Entry, Seen, Stats};
use crate::trees::{Kind, Tree};
use crate::walk::{Found, Walk, Walked};
use agentd_fault_points as fault;
use rustix::time::{ClockId, clock_gettime};
use std::fmt::Write as _;
use std::fs;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::Path;

/// Packs of small recordings are joined when there are more of them.
const MOST_PACKS: usize = 50;

/// A finished recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Taken {
    /// The name of the recorded files.
    pub tree: Tree,
    /// The number of files.
    pub files: u64,
    /// Files that were left out, with the reason; at most a few of them.
    pub left_out: Vec<String>,
}

/// More changed files, or more bytes of them, do not wait in memory for the end of the walk.
const MOST_PUTS: usize = 256;
const MOST_BYTES: usize = 1 << 20;
/// In a larger directory, `git` computes the trees: it reads only those that change.
const MOST_LEAVES: usize = 20_000;

/// A recording in progress.
struct Recording<'a> {
    archive: &'a Archive,
    root: &'a OwnedFd,
    stats: &'a Stats,
    walked: Walked,
    seconds: i64,
    changes: Changes,
    /// The directory of the last file that was read.
    dir: Option<(Vec<u8>, OwnedFd)>,
    bytes: u64,
}

/// The changes since the last recording.
#[derive(Default)]
struct Changes {
    deleted: Vec<Vec<u8>>,
    puts: Vec<(Vec<u8>, Kind, Vec<u8>)>,
    /// The bytes of the puts.
    bytes: usize,
    /// Whatever was above, once it was too much, and everything since.
    import: Option<Import>,
}

impl Changes {
    const fn none(&self) -> bool {
        self.deleted.is_empty() && self.puts.is_empty() && self.import.is_none()
    }
}

/// A file as it was recorded: its place in the walk, and what was read.
type Kept = (Found, Seen, Kind, [u8; 20]);

impl Archive {
    /// Records the files of the directory as they are now. Unchanged files are not read again.
    ///
    /// # Errors
    /// The directory cannot be read or has too many files, or `git` failed. Nothing that was recorded before is lost.
    pub fn take(&self) -> Result<Taken, Error> {
        if self.is_blank() {
            return Ok(Taken {
                tree: Tree::empty(),
                files: 0,
                left_out: Vec::new(),
            });
        }
        let locked = self.lock()?;
        self.take_locked(&locked)
    }

    /// Whether the directory is empty and nothing was ever recorded of it. Many sessions begin so, and to make a repository
    /// for each costs milliseconds. Git knows the empty tree without one. Workspaces get theirs: its packs go into the store.
    fn is_blank(&self) -> bool {
        let is_empty = || fs::read_dir(&self.directory).is_ok_and(|mut entries| entries.next().is_none());
        !self.repository.exists() && self.workspace().is_none() && is_empty()
    }

    pub(crate) fn take_locked(&self, locked: &Locked) -> Result<Taken, Error> {
        self.prepare(locked)?;
        let stats = self.stats();
        let now = clock_gettime(ClockId::Realtime);
        let began_ns = i128::from(now.tv_sec) * 1_000_000_000 + i128::from(now.tv_nsec);
        let root = files::open_root(&self.directory).map_err(at(&self.directory))?;
        let walk = Walk {
            stats: &stats,
            max_files: self.limits.max_files,
            max_file_bytes: self.limits.max_file_bytes,
            apart: self
                .repository
                .parent()
                .and_then(Path::parent)
                .unwrap_or(Path::new("/")),
        };
        let walked = walk.beneath(&root, &self.directory)?;
        let mut recording = Recording {
            archive: self,
            root: &root,
            stats: &stats,
            walked,
            seconds: now.tv_sec,
            changes: Changes::default(),
            dir: None,
            bytes: 0,
        };
        let (kept, seen_again) = recording.files()?;
        let unchanged = stats.last.clone().filter(|_| recording.changes.none());
        let (commit, tree) = match unchanged {
            Some(last) => last,
            None => recording.commit(&kept)?,
        };
        fault::point(fault::CHECKPOINT_WRITTEN)?;
        let walked = recording.walked;
        if seen_again || stats.last.as_ref().is_none_or(|(last, _)| *last != commit) {
            let entries = kept.iter().map(|(found, seen, kind, content)| Entry {
                path: walked.path(found),
                seen: *seen,
                kind: *kind,
                content: *content,
            });
            Stats::store(
                &self.repository.join("stats"),
                (began_ns, &commit, &tree),
                entries,
            )?;
            self.tidy();
        }
        Ok(Taken {
            tree,
            files: kept.len() as u64,
            left_out: walked.left_out.into_lines(),
        })
    }

    /// Joins small packs, and removes what a killed `git` left. A failure leaves more files than needed.
    fn tidy(&self) {
        let packs = fs::read_dir(self.repository.join("objects/pack"));
        let names = packs
            .into_iter()
            .flatten()
            .flatten()
            .map(|entry| entry.file_name());
        let names: Vec<String> = names.filter_map(|name| name.into_string().ok()).collect();
        for left in names
            .iter()
            .filter(|name| name.starts_with("tmp_") || name.starts_with(".tmp-"))
        {
            let _ = fs::remove_file(self.repository.join("objects/pack").join(left));
        }
        if names.iter().filter(|name| name.ends_with(".pack")).count() > MOST_PACKS {
            let _ = self.git().run(&["repack", "-d", "-l", "-q", "--geometric=2"]);
        }
    }
}

impl Recording<'_> {
    /// Compares the files with those of the last recording. Returns the present ones, and whether it read any of them again.
    fn files(&mut self) -> Result<(Vec<Kept>, bool), Error> {
        let found = std::mem::take(&mut self.walked.found);
        let mut changed = false;
        // Deletions come first: a directory may have become a file.
        changed |= self.deletions(&found)?;
        let mut kept = Vec::with_capacity(found.len());
        let mut entries = self.stats.entries().peekable();
        for one in found {
            let path = self.walked.path(&one);
            while entries.next_if(|entry| entry.path < path).is_some() {}
            match entries.next_if(|entry| entry.path == path) {
                Some(then) if self.stats.vouches(&then, &one.seen) => {
                    kept.push((one, then.seen, then.kind, then.content));
                }
                then => {
                    changed = true;
                    kept.extend(self.read(one, then)?);
                }
            }
        }
        Ok((kept, changed))
    }

    fn deletions(&mut self, found: &[Found]) -> Result<bool, Error> {
        let mut now = found.iter().map(|one| self.walked.path(one)).peekable();
        let mut gone = Vec::new();
        for entry in self.stats.entries() {
            while now.next_if(|path| *path < entry.path).is_some() {}
            if now.peek() != Some(&entry.path) {
                gone.push(entry.path);
            }
        }
        for path in &gone {
            self.delete(path)?;
        }
        Ok(!gone.is_empty())
    }

    fn read(&mut self, one: Found, then: Option<Entry<'_>>) -> Result<Option<Kept>, Error> {
        let path = self.walked.path(&one).to_vec();
        let (seen, kind, bytes) = match self.content(&path) {
            Ok(Read::Content { seen, kind, bytes }) => (seen, kind, bytes),
            Ok(Read::Gone) => return self.without(&path, then, None),
            Ok(Read::TooLarge) => return self.without(&path, then, Some("it grew too large".to_owned())),
            Err(error) => return self.without(&path, then, Some(error.to_string())),
        };
        let content = id_of(&bytes);
        if (self.archive.secret)(&bytes) {
            let why = "it contains a credential of this daemon".to_owned();
            return self.without(&path, then, Some(why));
        }
        if then.is_none_or(|then| then.content != content || then.kind != kind) {
            self.bytes = self.bytes.saturating_add(bytes.len() as u64);
            if self.bytes > self.archive.limits.max_bytes {
                return Err(Error::TooManyBytes(self.archive.limits.max_bytes));
            }
            self.put(path, kind, bytes)?;
        }
        Ok(Some((one, seen, kind, content)))
    }

    /// A file that cannot be recorded.
    fn without(
        &mut self,
        path: &[u8],
        then: Option<Entry<'_>>,
        why: Option<String>,
    ) -> Result<Option<Kept>, Error> {
        if let Some(why) = why {
            self.walked.left_out.add(path, &why);
        }
        if then.is_some() {
            self.delete(path)?;
        }
        Ok(None)
    }

    fn put(&mut self, path: Vec<u8>, kind: Kind, bytes: Vec<u8>) -> Result<(), Error> {
        let changes = &mut self.changes;
        match changes.import.take() {
            Some(import) => changes.import = Some(import.put(&path, kind, &bytes)?),
            None => {
                changes.bytes = changes.bytes.saturating_add(bytes.len());
                changes.puts.push((path, kind, bytes));
                if changes.bytes > MOST_BYTES || changes.puts.len() > MOST_PUTS {
                    let import = self.import()?;
                    self.changes.import = Some(import);
                }
            }
        }
        Ok(())
    }

    fn delete(&mut self, path: &[u8]) -> Result<(), Error> {
        match self.changes.import.take() {
            Some(import) => self.changes.import = Some(import.delete(path)?),
            None => self.changes.deleted.push(path.to_vec()),
        }
        Ok(())
    }

    /// `git` with the changes so far.
    fn import(&mut self) -> Result<Import, Error> {
        if let Some(import) = self.changes.import.take() {
            return Ok(import);
        }
        fault::point(fault::CHECKPOINT_WRITE)?;
        let last = self.stats.last.as_ref().map(|(commit, _)| commit.as_str());
        let mut import = Import::begin(&self.archive.git(), &Onto::Commit(last), self.seconds)?;
        for path in std::mem::take(&mut self.changes.deleted) {
            import = import.delete(&path)?;
        }
        for (path, kind, bytes) in std::mem::take(&mut self.changes.puts) {
            import = import.put(&path, kind, &bytes)?;
        }
        Ok(import)
    }

    /// Writes what has changed. Returns the commit and its tree.
    fn commit(&mut self, kept: &[Kept]) -> Result<(String, Tree), Error> {
        let repository = &self.archive.repository;
        // At first most contents are in the objects that it borrows, and git knows which.
        let borrowed = self.stats.last.is_none() && repository.join("objects/info/alternates").exists();
        if self.changes.import.is_some() || kept.len() > MOST_LEAVES || borrowed {
            return self.import()?.finish();
        }
        fault::point(fault::CHECKPOINT_WRITE)?;
        // Nothing that was recorded could be read without it.
        if !self.archive.git().is_installed() {
            return Err(Error::NoGit);
        }
        let (pack, commit, tree) = self.pack(kept).map_err(at(repository))?;
        pack.write(&repository.join("objects/pack"))?;
        let (commit, tree) = (hex(&commit), Tree::parse(&hex(&tree))?);
        let (dir, new) = (repository.join("refs/agentd"), repository.join("files.new"));
        fs::create_dir_all(&dir).map_err(at(&dir))?;
        fs::write(&new, format!("{commit}\n")).map_err(at(&new))?;
        fs::rename(&new, dir.join("files")).map_err(at(&dir))?;
        Ok((commit, tree))
    }

    /// The changes as a pack; its commit and the tree of that.
    fn pack(&self, kept: &[Kept]) -> std::io::Result<(Pack, Id, Id)> {
        let mut pack = Pack::new();
        for (_, _, bytes) in &self.changes.puts {
            pack.add(What::Blob, bytes)?;
        }
        let then = self.stats.entries();
        let then: Vec<Leaf<'_>> = then
            .map(|entry| (entry.path, entry.kind, entry.content))
            .collect();
        let now = kept.iter();
        let now: Vec<Leaf<'_>> = now
            .map(|(found, _, kind, content)| (self.walked.path(found), *kind, *content))
            .collect();
        let tree = pack::add_trees(&mut pack, &then, &now)?;
        let mut commit = format!("tree {}\n", hex(&tree));
        if let Some((parent, _)) = &self.stats.last {
            let _ = writeln!(commit, "parent {parent}");
        }
        for role in ["author", "committer"] {
            let _ = writeln!(commit, "{role} {AGENTD} {} +0000", self.seconds);
        }
        commit.push_str("\ncheckpoint");
        let commit = pack.add(What::Commit, commit.as_bytes())?;
        Ok((pack, commit, tree))
    }

    fn content(&mut self, path: &[u8]) -> std::io::Result<Read> {
        let (parent, name) = files::split(path);
        if self.dir.as_ref().is_none_or(|(dir, _)| dir != parent) {
            self.dir = Some((parent.to_vec(), files::open_dir(self.root.as_fd(), parent)?));
        }
        match &self.dir {
            Some((_, dir)) => files::read(dir, name, self.archive.limits.max_file_bytes),
            None => Ok(Read::Gone),
        }
    }
}

/// Bytes as hex digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// The id that git gives to a content.
pub(crate) fn id_of(bytes: &[u8]) -> Id {
    pack::id_of(What::Blob, bytes)
}
