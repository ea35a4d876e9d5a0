//! Carries recorded files from one archive to another, as git packs.

use crate::archive::Archive;
use crate::error::Error;
use crate::git::Git;
use crate::restore::{Back, Restored};
use crate::trees::{Tree, TreeChange};
use agentd_git::words;
use std::io::{Read as _, Write};

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
        let mut unpacking = self.git().start(&["index-pack", "--stdin"])?;
        let packed = match unpacking.stdin.take() {
            Some(mut input) => from.pack(trees, known, &mut input),
            None => Ok(()),
        };
        let output = unpacking
            .wait_with_output()
            .map_err(|error| failed("index-pack", error))?;
        packed?;
        if output.status.success() {
            return Ok(());
        }
        Err(failed("index-pack", words(&output.stderr, output.status.code())))
    }

    /// Writes the objects of trees as a pack, except for those of the commit or tree `known`.
    fn pack(&self, trees: &[Tree], known: Option<&str>, out: &mut impl Write) -> Result<(), Error> {
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
            Some(mut output) => std::io::copy(&mut output, out).map(drop),
            None => Ok(()),
        };
        let mut said = Vec::new();
        if let Some(stderr) = packing.stderr.take() {
            let _ = stderr.take(1 << 16).read_to_end(&mut said);
        }
        let ended = packing.wait().map_err(|error| failed("pack-objects", error))?;
        if !ended.success() {
            return Err(failed("pack-objects", words(&said, ended.code())));
        }
        copied.map_err(|error| failed("pack-objects", error))
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

fn failed(what: &str, why: impl ToString) -> Error {
    Error::Git {
        what: what.to_owned(),
        why: why.to_string(),
    }
}

fn has(git: &Git, object: &str) -> bool {
    Tree::parse(object).is_ok() && git.run(&["cat-file", "-e", object]).is_ok()
}
