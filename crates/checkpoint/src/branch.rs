//! Brings recorded changes into a git repository as a commit, or out as a bundle.
//!
//! Git runs on the repository with its hooks off and without its index; it writes objects, and one new branch. Its caller has
//! found the repository: nothing in a directory that commands can write chooses it.

use crate::apply::Fit;
use crate::archive::{Archive, has_sha256};
use crate::error::Error;
use crate::git::Git;
use crate::import::{Import, Onto};
use crate::trees::{Change, Item, Tree, path_of};
use agentd_fault_points as fault;
use std::collections::BTreeMap;
use std::path::Path;

/// A commit to make.
#[derive(Debug, Clone, Copy)]
pub struct NewCommit<'a> {
    /// The branch, without `refs/heads/`.
    pub branch: &'a str,
    /// The whole message.
    pub message: &'a str,
    /// The author's name and address.
    pub author: (&'a str, &'a str),
    /// When it is made, in seconds.
    pub seconds: i64,
    /// The commit before it.
    pub base: &'a str,
}

/// A commit that was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Committed {
    /// Its id.
    pub commit: String,
    /// The commit before it.
    pub base: String,
    /// The number of files that differ.
    pub files: usize,
}

impl Archive {
    /// Makes a branch of a repository (its common git directory) with these changes. A file that differs in the commit before
    /// is merged. A branch that has just this commit already, perhaps of another time, stays as it is.
    ///
    /// # Errors
    /// The branch exists with something else, or a change does not fit: then nothing was changed.
    pub fn branch(
        &self,
        repository: &Path,
        changes: &BTreeMap<Vec<u8>, Change>,
        new: &NewCommit<'_>,
    ) -> Result<Committed, Error> {
        let theirs = self.theirs(repository)?;
        let name = ref_of(&theirs, new.branch)?;
        let there = theirs.run(&["rev-parse", "--verify", "-q", &name]).ok();
        let locked = self.lock()?;
        self.prepare(&locked)?;
        let made = self.commit(&theirs, changes, new);
        let ours = self.git().borrowing(&theirs);
        if let Some(there) = there {
            // An earlier call may have been killed before it could answer.
            let commit = line(&there);
            return match made {
                Ok(made) if same(&ours, &commit, &made.commit)? => Ok(Committed { commit, ..made }),
                _ => Err(Error::Exists(new.branch.to_owned())),
            };
        }
        let made = made?;
        let wanted = format!("{}\n^{}\n", made.commit, made.base);
        let pack = ours.run_with(&["pack-objects", "--revs", "--stdout", "-q"], wanted.as_bytes())?;
        theirs.run_with(&["unpack-objects", "-q"], &pack)?;
        fault::point(fault::BRANCH_WRITTEN)?;
        let none = "0".repeat(40);
        theirs.run(&["update-ref", &name, &made.commit, &none])?;
        fault::point(fault::BRANCH_MADE)?;
        Ok(made)
    }

    /// The same commit as a new branch of a server, given by its URL and protocol. The repository stays as it is.
    ///
    /// # Errors
    /// As [`Archive::branch`], or the server refuses it.
    pub fn push(
        &self,
        repository: &Path,
        changes: &BTreeMap<Vec<u8>, Change>,
        new: &NewCommit<'_>,
        to: (&str, &str),
    ) -> Result<Committed, Error> {
        let theirs = self.theirs(repository)?;
        let name = ref_of(&theirs, new.branch)?;
        let locked = self.lock()?;
        self.prepare(&locked)?;
        let made = self.commit(&theirs, changes, new)?;
        drop(locked);
        self.git().borrowing(&theirs).push(&made.commit, to, &name)?;
        Ok(made)
    }

    /// The same commit as a bundle for `git fetch`.
    ///
    /// # Errors
    /// As [`Archive::branch`].
    pub fn bundle(
        &self,
        repository: &Path,
        changes: &BTreeMap<Vec<u8>, Change>,
        new: &NewCommit<'_>,
    ) -> Result<Vec<u8>, Error> {
        let theirs = self.theirs(repository)?;
        let name = ref_of(&theirs, new.branch)?;
        let locked = self.lock()?;
        self.prepare(&locked)?;
        let made = self.commit(&theirs, changes, new)?;
        let ours = self.git().borrowing(&theirs);
        ours.run(&["update-ref", &name, &made.commit])?;
        let bundle = ours.run(&["bundle", "create", "-q", "-", &name, &format!("^{}", made.base)]);
        ours.run(&["update-ref", "-d", &name])?;
        bundle
    }

    fn theirs(&self, repository: &Path) -> Result<Git, Error> {
        if has_sha256(repository) {
            return Err(Error::Sha256(repository.to_owned()));
        }
        Ok(self.git_of(repository))
    }

    fn commit(
        &self,
        theirs: &Git,
        changes: &BTreeMap<Vec<u8>, Change>,
        new: &NewCommit<'_>,
    ) -> Result<Committed, Error> {
        let head = format!("{}^{{commit}}", new.base);
        let base = line(&theirs.run(&["rev-parse", "--verify", "--end-of-options", &head])?);
        let ours = self.git().borrowing(theirs);
        let tree = line(&ours.run(&["rev-parse", "--verify", &format!("{base}^{{tree}}")])?);
        let tree = Tree::parse(&tree)?;
        let (tree, files) = self.fitted(&ours, &tree, changes)?;
        let (name, address) = new.author;
        let date = format!("{} +0000", new.seconds);
        let who = [
            ("GIT_AUTHOR_NAME", name),
            ("GIT_AUTHOR_EMAIL", address),
            ("GIT_AUTHOR_DATE", &date),
            ("GIT_COMMITTER_NAME", name),
            ("GIT_COMMITTER_EMAIL", address),
            ("GIT_COMMITTER_DATE", &date),
        ];
        let args = ["commit-tree", tree.as_str(), "-p", &base, "-F", "-"];
        let commit = line(&ours.named(&who).run_with(&args, new.message.as_bytes())?);
        Ok(Committed { commit, base, files })
    }

    /// The tree with these changes, and how many of them it did not have.
    fn fitted(
        &self,
        ours: &Git,
        tree: &Tree,
        changes: &BTreeMap<Vec<u8>, Change>,
    ) -> Result<(Tree, usize), Error> {
        let items = crate::trees::files_of(ours, tree)?;
        let mut contents = (
            crate::contents::Contents::of(ours)?,
            crate::contents::Contents::of(ours)?,
        );
        let (mut conflicts, mut puts, mut gone) = (Vec::new(), Vec::new(), Vec::new());
        for (path, change) in changes {
            let now: Option<&Item> = items.get(path);
            match self.fit(now, change, &mut contents)? {
                Fit::Already => {}
                Fit::Write(None) => gone.push(path),
                Fit::Write(Some((kind, bytes))) | Fit::Merge(kind, bytes) => puts.push((path, kind, bytes)),
                Fit::Conflict => conflicts.push(path_of(path).to_owned()),
            }
        }
        if !conflicts.is_empty() {
            return Err(Error::Conflict(conflicts));
        }
        let count = puts.len() + gone.len();
        let mut import = Import::begin(ours, &Onto::Tree(tree), 0)?;
        for path in gone {
            import = import.delete(path)?;
        }
        for (path, kind, bytes) in puts {
            import = import.put(path, kind, &bytes)?;
        }
        Ok((import.finish()?.1, count))
    }
}

/// The whole name of a branch.
fn ref_of(git: &Git, branch: &str) -> Result<String, Error> {
    let name = format!("refs/heads/{branch}");
    match git.run(&["check-ref-format", &name]) {
        Ok(_) if !branch.starts_with('-') => Ok(name),
        Err(Error::NoGit) => Err(Error::NoGit),
        _ => Err(Error::BadBranch(branch.chars().take(100).collect())),
    }
}

/// Whether two commits differ only in their times.
fn same(git: &Git, one: &str, other: &str) -> Result<bool, Error> {
    let format = "--format=%T %P%n%an%n%ae%n%cn%n%ce%n%B";
    let about = |commit| git.run(&["show", "-s", "--no-show-signature", format, commit]);
    Ok(about(one)? == about(other)?)
}

fn line(output: &[u8]) -> String {
    String::from_utf8_lossy(output).trim_end().to_owned()
}
