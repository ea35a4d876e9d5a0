//! Applies changes of one directory to another: all of them, or none.

use crate::archive::{Archive, Keeper, Locked};
use crate::contents::Contents;
use crate::error::{Error, at};
use crate::files::{self, Read};
use crate::import::{Import, Onto};
use crate::journal::Journal;
use crate::restore::{Step, one};
use crate::take::{hex, id_of};
use crate::trees::{Change, Item, Kind, Tree, path_of};
use agentd_fault_points as fault;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::fd::AsFd as _;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};

/// The files that an application changed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Applied {
    /// The files that were written or deleted.
    pub files: Vec<PathBuf>,
    /// Those among them that had other changes, too: both were merged.
    pub merged: Vec<PathBuf>,
}

/// How one changed file fits the target.
pub(crate) enum Fit {
    Already,
    Write(Option<(Kind, Vec<u8>)>),
    Merge(Kind, Vec<u8>),
    Conflict,
}

impl Archive {
    /// Applies changes that were recorded in another archive. A file with other changes is merged; if one does not fit,
    /// nothing is changed. With `dry_run` it only looks.
    ///
    /// # Errors
    /// A file does not fit or cannot be written.
    pub fn apply(
        &self,
        from: &Self,
        changes: &BTreeMap<Vec<u8>, Change>,
        dry_run: bool,
    ) -> Result<Applied, Error> {
        let locked = self.lock()?;
        self.prepare(&locked)?;
        self.recover_locked(&locked)?;
        self.take_locked(&locked)?;
        let stats = self.stats();
        let mut contents = (from.contents()?, self.contents()?);
        let (mut applied, mut conflicts, mut steps) = (Applied::default(), Vec::new(), Vec::new());
        let mut import = Import::begin(&self.git(), &Onto::Nothing, 0)?;
        for (path, change) in changes {
            let now = stats.find(path).map(|entry| (entry.item(), entry.seen));
            let fit = self.fit(now.as_ref().map(|(item, _)| item), change, &mut contents)?;
            let name = path_of(path).to_owned();
            let wanted = match fit {
                Fit::Already => continue,
                Fit::Conflict => {
                    conflicts.push(name);
                    continue;
                }
                Fit::Write(wanted) => wanted,
                Fit::Merge(kind, bytes) => {
                    applied.merged.push(name.clone());
                    Some((kind, bytes))
                }
            };
            applied.files.push(name);
            let mut item = None;
            if let Some((kind, bytes)) = wanted {
                import = import.put(path, kind, &bytes)?;
                let content = hex(&id_of(&bytes));
                item = Some(Item { kind, content });
            }
            steps.push(Step {
                path: path.clone(),
                now,
                wanted: item,
            });
        }
        if !conflicts.is_empty() {
            return Err(Error::Conflict(conflicts));
        }
        if dry_run || steps.is_empty() {
            return Ok(applied);
        }
        import.finish()?;
        let journal = Journal::begin(&self.repository, &steps)?;
        fault::point(fault::APPLY_NOTED)?;
        // After a failure everything is reverted, or the note says what is left to do.
        let done = catch_unwind(AssertUnwindSafe(|| self.carry_out(steps, false))).unwrap_or_else(|panic| {
            let _ = self.recover_locked(&locked);
            resume_unwind(panic)
        });
        fault::point(fault::APPLY_DONE)?;
        if !matches!(done, Err(Error::Halfway { .. })) {
            journal.end()?;
        }
        done.map(|()| applied)
    }

    pub(crate) fn fit(
        &self,
        now: Option<&Item>,
        change: &Change,
        (theirs, ours): &mut (Contents, Contents),
    ) -> Result<Fit, Error> {
        if now == change.after.as_ref() {
            return Ok(Fit::Already);
        }
        if now == change.before.as_ref() {
            return Ok(Fit::Write(match &change.after {
                Some(after) => Some((after.kind, theirs.get(&after.content)?)),
                None => None,
            }));
        }
        match (now, &change.before, &change.after) {
            (Some(now), Some(before), Some(after)) => {
                let contents = [
                    ours.get(&now.content)?,
                    theirs.get(&before.content)?,
                    theirs.get(&after.content)?,
                ];
                self.merged([now, before, after], &contents)
            }
            _ => Ok(Fit::Conflict),
        }
    }

    /// Merges the changes of both sides if they are in different lines of a text.
    fn merged(&self, [now, before, after]: [&Item; 3], contents: &[Vec<u8>; 3]) -> Result<Fit, Error> {
        if [now, before, after].iter().any(|item| item.kind == Kind::Link) {
            return Ok(Fit::Conflict);
        }
        let kind = if after.kind == before.kind {
            now.kind
        } else {
            after.kind
        };
        let names = ["merge-now", "merge-before", "merge-after"].map(|name| self.repository.join(name));
        for (path, content) in names.iter().zip(contents) {
            fs::write(path, content).map_err(at(path))?;
        }
        let args = ["merge-file", "-p", "--"].map(OsStr::new);
        let paths = names.iter().map(|path| path.as_os_str());
        let args: Vec<&OsStr> = args.into_iter().chain(paths).collect();
        // Its exit code is the number of conflicts, or an error, as for binary files.
        let merged = self.git().run(&args);
        for path in &names {
            let _ = fs::remove_file(path);
        }
        match merged {
            Ok(bytes) => Ok(Fit::Merge(kind, bytes)),
            Err(Error::Git { .. }) => Ok(Fit::Conflict),
            Err(error) => Err(error),
        }
    }

    /// Reverts what an interrupted [`Archive::apply`] has done. Files that someone changed since are left as they are.
    ///
    /// # Errors
    /// A file cannot be put back.
    pub fn recover(&self) -> Result<(), Error> {
        let locked = self.lock()?;
        self.recover_locked(&locked)
    }

    fn recover_locked(&self, _locked: &Locked) -> Result<(), Error> {
        let Some(journal) = Journal::left(&self.repository) else {
            return Ok(());
        };
        let root = files::open_root(&self.directory).map_err(at(&self.directory))?;
        let mut contents = self.contents()?;
        let entries = journal.entries().into_iter().rev();
        let (created, others): (Vec<_>, Vec<_>) = entries.partition(|(_, now, _)| now.is_none());
        for (path, now, wanted) in created.into_iter().chain(others) {
            let (parent, name) = files::split(&path);
            let there = files::open_dir(root.as_fd(), parent);
            let there = match there.and_then(|dir| files::read(dir, name, u64::MAX)) {
                Ok(Read::Content { kind, bytes, .. }) => Some(Item {
                    kind,
                    content: hex(&id_of(&bytes)),
                }),
                _ => None,
            };
            if there == wanted && there != now {
                let step = Step {
                    path,
                    now: None,
                    wanted: now,
                };
                one(&root, &step, &mut contents, true)?;
            }
        }
        journal.end()
    }

    /// The files of a tree with changes: a tree that has both.
    ///
    /// # Errors
    /// `git` failed.
    pub fn with(&self, base: &Tree, changes: &BTreeMap<Vec<u8>, Change>) -> Result<Tree, Error> {
        let _locked = self.lock()?;
        let mut import = Import::begin(&self.git(), &Onto::Tree(base), 0)?;
        for (path, _) in changes.iter().filter(|(_, change)| change.after.is_none()) {
            import = import.delete(path)?;
        }
        for (path, change) in changes {
            if let Some(item) = &change.after {
                import = import.put_known(path, item)?;
            }
        }
        Ok(import.finish()?.1)
    }

    /// Whether the directory has nothing but a tree with these changes now, and whether some files were left out of that
    /// comparison.
    ///
    /// # Errors
    /// The directory cannot be recorded, or `git` failed.
    pub fn has_only(&self, base: &Tree, changes: &BTreeMap<Vec<u8>, Change>) -> Result<(bool, bool), Error> {
        let wanted = self.with(base, changes)?;
        let now = self.take()?;
        Ok((now.tree == wanted, !now.left_out.is_empty()))
    }

    /// The difference between two trees as a patch for `git apply`.
    ///
    /// # Errors
    /// `git` failed.
    pub fn patch(&self, before: &Tree, after: &Tree) -> Result<Vec<u8>, Error> {
        let args = [
            "diff",
            "--binary",
            "--full-index",
            "--no-ext-diff",
            "--no-textconv",
            "--no-color",
            "--no-renames",
        ];
        let args: Vec<&str> = args
            .into_iter()
            .chain([before.as_str(), after.as_str()])
            .collect();
        self.git().run(&args)
    }
}

impl Keeper {
    /// The directories in which an interrupted [`Archive::apply`] must be reverted.
    #[must_use]
    pub fn interrupted(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.root()).into_iter().flatten().flatten();
        let left = entries
            .map(|entry| entry.path())
            .filter(|path| Journal::left(path).is_some());
        left.filter_map(|path| directory_of(&path)).collect()
    }
}

/// The directory that an archive belongs to.
fn directory_of(repository: &Path) -> Option<PathBuf> {
    let mut bytes = fs::read(repository.join("description")).ok()?;
    bytes.pop_if(|byte| *byte == b'\n');
    Some(path_of(&bytes).to_owned())
}
