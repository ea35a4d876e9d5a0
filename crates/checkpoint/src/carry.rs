//! Carries recorded files from one archive to another, as git packs.

use crate::archive::Archive;
use crate::error::{Error, at};
use crate::git::Git;
use crate::restore::{Back, Restored};
use crate::trees::{Tree, TreeChange};
use agentd_git::words;
use std::fs::{self, File};
use std::io::{Read as _, Write};
use std::path::Path;
use std::process::ChildStdin;
use std::sync::atomic::{AtomicU64, Ordering};

/// The number of files that were begun, to name the next one.
static PARTS: AtomicU64 = AtomicU64::new(0);

impl Archive {
    /// Copies recorded trees from another archive. Objects of the commit `known` are left out if both archives borrow
    /// it from a repository.
    ///
    /// # Errors
    /// A tree is not known there, or `git` failed.
    pub fn carry(&self, from: &Self, trees: &[Tree], known: Option<&str>) -> Result<(), Error> {
        let locked = self.lock()?;
        self.prepare(&locked)?;
        let known = known.filter(|commit| has(&self.git(), commit) && has(&from.git(), commit));
        self.unpack(|input| from.pack(trees, known, (input, u64::MAX)).map(drop))
    }

    /// Writes what a tree has beyond the tree `known` into a pack file of at most this many bytes: whole, or not at all.
    /// Returns its bytes.
    ///
    /// # Errors
    /// A tree is not known, it needs more bytes, or the file cannot be written.
    pub fn pack_to(&self, tree: &Tree, known: Option<&Tree>, file: &Path, most: u64) -> Result<u64, Error> {
        // Several sessions may make the same file.
        let number = PARTS.fetch_add(1, Ordering::Relaxed);
        let new = file.with_extension(format!("{}-{number}.part", std::process::id()));
        let mut out = File::create(&new).map_err(at(&new))?;
        let known = known.map(Tree::as_str);
        let bytes = self.pack(std::slice::from_ref(tree), known, (&mut out, most));
        let bytes = bytes.inspect_err(|_| drop(fs::remove_file(&new)))?;
        fs::rename(&new, file).map_err(at(file))?;
        Ok(bytes)
    }

    /// Takes the objects of a pack file.
    ///
    /// # Errors
    /// It is damaged, or cannot be read.
    pub fn unpack_from(&self, file: &Path) -> Result<(), Error> {
        let locked = self.lock()?;
        self.prepare(&locked)?;
        let mut pack = File::open(file).map_err(at(file))?;
        self.unpack(|input| std::io::copy(&mut pack, input).map(drop).map_err(at(file)))
    }

    /// The files of a commit, if the archive can read it.
    #[must_use]
    pub fn tree_of(&self, commit: &str) -> Option<Tree> {
        let name = Tree::parse(commit).ok()?;
        let found = self
            .git()
            .run(&["rev-parse", "--verify", "-q", &format!("{name}^{{tree}}")]);
        Tree::parse(String::from_utf8(found.ok()?).ok()?.trim_end()).ok()
    }

    /// The directory of the archive's own files.
    #[must_use]
    pub fn own_files(&self) -> &Path {
        &self.repository
    }

    /// Takes the objects of a pack that `write` writes.
    fn unpack(&self, write: impl FnOnce(&mut ChildStdin) -> Result<(), Error>) -> Result<(), Error> {
        let mut unpacking = self.git().start(&["index-pack", "--stdin"])?;
        let packed = match unpacking.stdin.take() {
            Some(mut input) => write(&mut input),
            None => Ok(()),
        };
        let output = unpacking
            .wait_with_output()
            .map_err(|error| failed("index-pack", &error))?;
        if !output.status.success() {
            return Err(failed("index-pack", &words(&output.stderr, output.status.code())));
        }
        packed
    }

    /// Writes the objects of trees as a pack of at most this many bytes, except for those of the commit or tree `known`.
    fn pack(
        &self,
        trees: &[Tree],
        known: Option<&str>,
        (out, most): (&mut impl Write, u64),
    ) -> Result<u64, Error> {
        let mut wanted = String::new();
        for tree in trees {
            wanted.push_str(tree.as_str());
            wanted.push('\n');
        }
        if let Some(known) = known {
            wanted.push_str(&format!("^{known}\n"));
        }
        let mut packing = self.git().start(&["pack-objects", "--revs", "--stdout", "-q"])?;
        if let Some(mut input) = packing.stdin.take() {
            // If it ends early, its exit code says why.
            let _ = input.write_all(wanted.as_bytes());
        }
        let copied = match packing.stdout.take() {
            Some(output) => std::io::copy(&mut output.take(most.saturating_add(1)), out),
            None => Ok(0),
        };
        if matches!(copied, Ok(bytes) if bytes > most) {
            let _ = packing.kill();
            let _ = packing.wait();
            return Err(Error::StoreLimit(most));
        }
        let mut said = Vec::new();
        if let Some(stderr) = packing.stderr.take() {
            let _ = stderr.take(1 << 16).read_to_end(&mut said);
        }
        let ended = packing.wait().map_err(|error| failed("pack-objects", &error))?;
        if !ended.success() {
            return Err(failed("pack-objects", &words(&said, ended.code())));
        }
        copied.map_err(|error| failed("pack-objects", &error))
    }

    /// Gives the directory the files of a tree, and only those, apart from what is never recorded.
    ///
    /// # Errors
    /// The tree is not known, or a file cannot be written: then nothing was changed, except after [`Error::Halfway`].
    pub fn fill(&self, tree: &Tree) -> Result<Restored, Error> {
        let now = self.take()?.tree;
        let back = TreeChange {
            before: tree.clone(),
            after: now,
        };
        self.restore(&Back {
            key: "fill",
            changes: &[back],
            force: false,
        })
    }
}

fn failed(what: &str, why: &impl ToString) -> Error {
    Error::Git {
        what: what.to_owned(),
        why: why.to_string(),
    }
}

fn has(git: &Git, object: &str) -> bool {
    Tree::parse(object).is_ok() && git.run(&["cat-file", "-e", object]).is_ok()
}
