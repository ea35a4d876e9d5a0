//! Gives a checked-out tree its git directory, and brings along or reports what the person has not committed.

use crate::base::Base;
use crate::error::{WorkspaceError, at};
use crate::make::{Making, Parts};
use crate::plan::Plan;
use crate::record::{branch_name, worktree_name};
use crate::state::{OWN_GIT, write_tree};
use crate::submodules::without_submodules;
use agentd_fault_points as fault;
use agentd_git::{Run, ask, git};
use agentd_protocol::WorkspaceKind;
use agentd_sandbox::Annex;
use std::fs;
use std::path::Path;

/// Bytes of `.gitattributes` that are searched for filters.
const MAX_ATTRIBUTES: u64 = 1 << 20;

impl Making<'_> {
    /// What commands need beyond the tree: the objects that it borrows, and for a worktree the places in the repository
    /// where git must write.
    pub(crate) fn walls(&self) -> Annex {
        let workspace = &self.record.workspace;
        let Some(common) = workspace.repository.as_ref().map(Path::new) else {
            return Annex::default();
        };
        match workspace.kind {
            WorkspaceKind::Copy => Annex::default(),
            WorkspaceKind::Clone => Annex {
                read: vec![common.join("objects")],
                ..Annex::default()
            },
            WorkspaceKind::Worktree => Annex {
                read: vec![common.to_owned()],
                write: vec![
                    common.join("objects"),
                    common.join("refs/heads/agentd"),
                    common.join("logs/refs/heads/agentd"),
                    common.join("worktrees").join(worktree_name(self.record.session)),
                ],
                repository: Some(common.to_owned()),
            },
        }
    }

    pub(crate) async fn give_git(
        &mut self,
        plan: &Plan,
        base: &Base,
        parts: Parts,
    ) -> Result<(), WorkspaceError> {
        let (tree, index) = (self.tree.clone(), self.given_index());
        let branch = branch_name(self.record.session);
        match plan.kind {
            WorkspaceKind::Copy => Ok(()),
            WorkspaceKind::Clone => {
                let (origin, references) = (self.record.workspace.source.clone(), base.references.clone());
                self.on_disk(move || {
                    let git_dir = tree.join(".git");
                    parts
                        .skeleton(&branch, Some(&origin), &references)
                        .write(&git_dir)?;
                    fs::copy(&index, git_dir.join("index"))
                        .map(drop)
                        .map_err(at(&git_dir))
                })
                .await
            }
            WorkspaceKind::Worktree => self.give_worktree(base, &branch).await,
        }
    }

    /// Makes the branch and the files that git keeps about a worktree. `git worktree add` would run hooks and filters.
    async fn give_worktree(&self, base: &Base, branch: &str) -> Result<(), WorkspaceError> {
        let name = format!("refs/heads/{branch}");
        let words = ["update-ref", "--no-deref", &name, &base.commit, ""];
        let run = Run::new(&self.dir, self.within(), words).repository(&base.common, None);
        git(&self.all.0.environment, run).await?;
        fault::point(fault::WORKSPACE_BRANCHED)?;
        let (tree, common) = (self.tree.clone(), base.common.clone());
        let index = self.given_index();
        let (place, branch) = (self.record.worktree_dir().unwrap_or_default(), branch.to_owned());
        self.on_disk(move || {
            let write = || -> std::io::Result<()> {
                // Where git must write, the walls need directories that exist.
                fs::create_dir_all(common.join("logs/refs/heads/agentd"))?;
                fs::create_dir_all(common.join("worktrees"))?;
                fs::create_dir(&place)?;
                fs::write(place.join("commondir"), "../..\n")?;
                fs::write(place.join("gitdir"), format!("{}\n", tree.join(".git").display()))?;
                fs::write(place.join("HEAD"), format!("ref: refs/heads/{branch}\n"))?;
                // So that `git worktree prune` of a person who cannot see the data directory leaves it alone.
                fs::write(
                    place.join("locked"),
                    "agentd keeps this worktree: agentctl workspace ls\n",
                )?;
                fs::copy(&index, place.join("index"))?;
                fs::write(tree.join(".git"), format!("gitdir: {}\n", place.display()))
            };
            write().map_err(at(&place))
        })
        .await
    }

    /// Brings the person's uncommitted changes along, as changes that are not committed here either.
    pub(crate) async fn bring_changes(&mut self, top: &Path, base: &Base) -> Result<(), WorkspaceError> {
        let (own, index) = (self.dir.join(OWN_GIT), self.dir.join("changes.index"));
        self.persons_index(top, &index).await?;
        without_submodules(self, &own, &index, top).await?;
        let changed = self.persons_tree(&own, top, &index).await?;
        let before = self.run(&["write-tree"]).await?;
        self.run(&["read-tree", "-m", "-u", &before, &changed]).await?;
        // Git takes repositories among the person's files for submodules.
        without_submodules(self, &own, &own.join("index"), &self.tree).await?;
        if base.top.is_some() && before == changed {
            self.notices
                .push("there were no uncommitted changes to bring along".to_owned());
        }
        Ok(())
    }

    async fn persons_tree(&self, own: &Path, top: &Path, index: &Path) -> Result<String, WorkspaceError> {
        let environment = &self.all.0.environment;
        write_tree(
            environment,
            own,
            (top, index),
            environment.excludes(),
            self.within(),
        )
        .await
    }

    /// Tells the person that uncommitted changes stay behind. A failure to find them is not reported.
    pub(crate) async fn warn_of_changes(&mut self, top: &Path) {
        match self.changes(top).await {
            Ok(0) => {}
            Ok(files) => {
                let s = if files == 1 { "" } else { "s" };
                self.notices.push(format!(
                    "{files} file{s} with uncommitted changes in {} stay behind; --with-changes (in the API: with_changes) brings them along",
                    top.display()
                ));
            }
            Err(error) => tracing::debug!(%error, "could not look for uncommitted changes"),
        }
    }

    async fn changes(&self, top: &Path) -> Result<usize, WorkspaceError> {
        let (own, index) = (self.dir.join(OWN_GIT), self.dir.join("changes.index"));
        self.persons_index(top, &index).await?;
        let words = [
            "status",
            "--porcelain",
            "-z",
            "--no-renames",
            "--ignore-submodules=all",
        ];
        let run = Run::new(top, self.within(), words)
            .repository(&own, Some(top))
            .option(self.all.0.environment.excludes())
            .variable("GIT_INDEX_FILE", &index);
        let listed = git(&self.all.0.environment, run).await?;
        let (path, output) = (index, listed.output);
        let _ = self.on_disk(move || Ok(fs::remove_file(path))).await?;
        Ok(output
            .split(|byte| *byte == 0)
            .filter(|entry| !entry.is_empty())
            .count())
    }

    /// A copy of the person's index, which tells which files are unchanged. One that cannot be used alone is made anew.
    async fn persons_index(&self, top: &Path, index: &Path) -> Result<(), WorkspaceError> {
        let own = self.dir.join(OWN_GIT);
        let asked = ["rev-parse", "--path-format=absolute", "--git-path", "index"];
        let place = git(&self.all.0.environment, Run::new(top, self.within(), asked)).await?;
        let (from, to) = (std::path::PathBuf::from(place.text()), index.to_owned());
        let copied = self.on_disk(move || Ok(fs::copy(from, to).is_ok())).await?;
        let run = |words: &[&str]| {
            Run::new(top, self.within(), words)
                .repository(&own, Some(top))
                .variable("GIT_INDEX_FILE", index)
        };
        if copied
            && ask(&self.all.0.environment, run(&["ls-files", "--", "no/such/file"]))
                .await?
                .success
        {
            return Ok(());
        }
        let to = index.to_owned();
        let _ = self.on_disk(move || Ok(fs::remove_file(to))).await?;
        git(&self.all.0.environment, run(&["read-tree", "HEAD"])).await?;
        Ok(())
    }

    /// Says that files of Git LFS are pointers: their contents would come from a filter, which is a program.
    pub(crate) async fn warn_of_lfs(&mut self) {
        let attributes = self.tree.join(".gitattributes");
        let look = move || {
            let small = fs::symlink_metadata(&attributes)
                .is_ok_and(|found| found.is_file() && found.len() <= MAX_ATTRIBUTES);
            let text = small
                .then(|| fs::read(&attributes).ok())
                .flatten()
                .unwrap_or_default();
            Ok(String::from_utf8_lossy(&text).contains("filter=lfs"))
        };
        if self.on_disk(look).await.unwrap_or(false) {
            self.leave_out(
                "the contents of Git LFS (its files are pointers, because agentd runs no filters)".to_owned(),
            );
        }
    }
}
