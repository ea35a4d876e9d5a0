//! Makes a workspace. The record comes first; after a crash, it says what to remove.

use crate::base::Base;
use crate::copy::{Copy, Stopped};
use crate::error::{WorkspaceError, at};
use crate::inspect::real;
use crate::plan::{Plan, Source};
use crate::record::{Record, Stage, branch_name};
use crate::skeleton::Skeleton;
use crate::state::{OWN_GIT, State, state};
use crate::workspaces::{Workspaces, private};
use agentd_fault_points as fault;
use agentd_file_work::FileWork;
use agentd_git::{Run, git};
use agentd_protocol::{SessionId, Timestamp, Workspace, WorkspaceKind};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

/// The bounds of one making.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// The time for all of it.
    pub within: Duration,
    /// The ignored files to bring along, relative to the source.
    pub include: Vec<PathBuf>,
    /// The most bytes that are copied, apart from what git checks out.
    pub max_bytes: u64,
    /// The most files that are copied, apart from what git checks out.
    pub max_files: u64,
}

/// A workspace that is whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Made {
    /// What it is.
    pub workspace: Workspace,
    /// What the person should know: changes that stay behind, submodules, files that were left out.
    pub notices: Vec<String>,
}

/// A making under way.
pub(crate) struct Making<'a> {
    pub(crate) all: &'a Workspaces,
    pub(crate) dir: PathBuf,
    pub(crate) tree: PathBuf,
    pub(crate) record: Record,
    pub(crate) limits: Limits,
    pub(crate) until: Instant,
    pub(crate) files: FileWork,
    pub(crate) notices: Vec<String>,
}

impl Workspaces {
    /// Makes the workspace that a plan describes. It belongs to nobody until the session exists: if that fails, remove it.
    ///
    /// # Errors
    /// What failed. Nothing is left behind then.
    pub async fn make(
        &self,
        session: SessionId,
        now: Timestamp,
        plan: Plan,
        limits: Limits,
    ) -> Result<Made, WorkspaceError> {
        let until = Instant::now() + limits.within;
        let _busy = self.busy(session)?;
        let turn = timeout_at(until, self.0.making.acquire());
        let _turn = turn.await.map_err(|_| WorkspaceError::Limit {
            message: "other workspaces took all the time to make this one".to_owned(),
            hint: "try again, or raise workspace.make_limit".to_owned(),
        })?;
        let dir = self.dir(session);
        let base = self.base(&plan, until).await?;
        let tree = dir.join(name_of(&plan.source));
        let workspace = describe(&plan, base.as_ref(), session, &tree);
        let record = Record {
            session,
            at: now,
            stage: Stage::Making,
            workspace,
            initial: None,
            fetched: Vec::new(),
        };
        let mut making = Making {
            all: self,
            dir,
            tree,
            record,
            limits,
            until,
            files: FileWork::of_session(&session.to_string()),
            notices: Vec::new(),
        };
        match making.all_steps(&plan, base).await {
            Ok(()) => Ok(Made {
                workspace: making.record.workspace,
                notices: making.notices,
            }),
            Err(error) => {
                let record = making.record.clone();
                if let Err(left) = self.erase(&record).await {
                    tracing::warn!(%session, %left, "could not remove the beginning of a workspace");
                }
                Err(error)
            }
        }
    }
}

/// The name of the tree's directory: people and models see it.
fn name_of(source: &Source) -> String {
    let text = match source {
        Source::Repository(repository) => repository.top.to_string_lossy().into_owned(),
        Source::Directory(dir) => dir.to_string_lossy().into_owned(),
        Source::Url(url) => url
            .trim_end_matches('/')
            .trim_end_matches(".git")
            .replace(':', "/"),
    };
    let last = text.rsplit('/').next().unwrap_or_default();
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let name: String = last
        .chars()
        .map(|c| if plain(c) { c } else { '-' })
        .take(64)
        .collect();
    // The other names in the directory are agentd's own.
    let taken = name.is_empty()
        || name.starts_with('.')
        || name == OWN_GIT
        || name.starts_with("record.")
        || name.starts_with("walls.")
        || name.ends_with(".index");
    if taken {
        format!("tree-{}", name.trim_start_matches('.'))
    } else {
        name
    }
}

fn describe(plan: &Plan, base: Option<&Base>, session: SessionId, tree: &Path) -> Workspace {
    let source = match &plan.source {
        Source::Repository(repository) => repository.top.to_string_lossy().into_owned(),
        Source::Directory(dir) => dir.to_string_lossy().into_owned(),
        Source::Url(url) => url.clone(),
    };
    Workspace {
        kind: plan.kind,
        source,
        path: tree.to_string_lossy().into_owned(),
        base: base.map(|base| base.commit.clone()),
        branch: base.map(|_| branch_name(session)),
        repository: base.map(|base| base.common.to_string_lossy().into_owned()),
        with_changes: plan.with_changes,
        left_out: Vec::new(),
    }
}

impl Making<'_> {
    pub(crate) fn within(&self) -> Duration {
        self.until.saturating_duration_since(Instant::now())
    }

    /// Runs work on the workspace's own files.
    pub(crate) async fn on_disk<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, WorkspaceError> + Send + 'static,
    ) -> Result<T, WorkspaceError> {
        self.files.run(&self.all.0.root, self.within(), work).await?
    }

    async fn all_steps(&mut self, plan: &Plan, base: Option<Base>) -> Result<(), WorkspaceError> {
        let (dir, tree, record) = (self.dir.clone(), self.tree.clone(), self.record.clone());
        let walls = self.walls();
        self.on_disk(move || {
            private(&dir).map_err(at(&dir))?;
            record.write(&dir)?;
            walls.write(&dir).map_err(at(&dir))?;
            fs::create_dir(&tree).map_err(at(&tree))
        })
        .await?;
        fault::point(fault::WORKSPACE_BEGUN)?;
        let initial = match (&plan.source, base) {
            (Source::Directory(from), _) => self.copied(from.clone()).await?,
            (_, Some(base)) => self.checked_out(plan, &base).await?,
            (_, None) => {
                return Err(WorkspaceError::refused(
                    "no_commit",
                    "there is no commit",
                    "commit first",
                ));
            }
        };
        fault::point(fault::WORKSPACE_FILLED)?;
        self.record.initial = Some(initial);
        self.record.stage = Stage::Made;
        let (dir, record) = (self.dir.clone(), self.record.clone());
        self.on_disk(move || record.write(&dir)).await?;
        fault::point(fault::WORKSPACE_MADE)?;
        Ok(())
    }

    async fn copied(&mut self, from: PathBuf) -> Result<State, WorkspaceError> {
        let (to, mut copy) = (self.tree.clone(), self.copy());
        let copy = self
            .on_disk(move || {
                let from = real(&from).map_err(at(&from))?;
                copy.contents(&from, &to)
                    .map_err(|stopped| stopped_at(stopped, &from))?;
                Ok(copy)
            })
            .await?;
        if copy.left_out > 0 {
            self.notices.push(format!(
                "{} sockets, pipes or devices were not copied",
                copy.left_out
            ));
        }
        state(&self.all.0.environment, &self.dir, &self.record, self.within()).await
    }

    fn copy(&self) -> Copy {
        Copy::new(
            self.limits.max_bytes,
            self.limits.max_files,
            self.until.into_std(),
        )
    }

    /// Checks the base out with a repository of agentd's own, then gives the tree its git directory.
    async fn checked_out(&mut self, plan: &Plan, base: &Base) -> Result<State, WorkspaceError> {
        let own = self.dir.join(OWN_GIT);
        let skeleton = Parts::read(self, base).await?;
        let (made, branch) = (
            own.clone(),
            self.record.workspace.branch.clone().unwrap_or_default(),
        );
        let own_parts = skeleton.clone();
        self.on_disk(move || own_parts.skeleton(&branch, None, &[]).write(&made))
            .await?;
        self.run(&["read-tree", "-m", "-u", &base.commit]).await?;
        self.submodules().await?;
        self.give_git(plan, base, skeleton).await?;
        if plan.with_changes
            && let Some(top) = &base.top
        {
            self.bring_changes(top, base).await?;
        } else if let (Some(top), None) = (&base.top, &plan.reference) {
            self.warn_of_changes(top).await;
        }
        self.warn_of_lfs().await;
        let included = match (&base.top, self.limits.include.is_empty()) {
            (Some(top), false) => self.include(top.clone()).await?,
            _ => false,
        };
        if included {
            return state(&self.all.0.environment, &self.dir, &self.record, self.within()).await;
        }
        let tree = self.run(&["write-tree"]).await?;
        let heads = match plan.kind {
            WorkspaceKind::Worktree | WorkspaceKind::Copy => BTreeMap::new(),
            WorkspaceKind::Clone => {
                let branch = self.record.workspace.branch.clone().unwrap_or_default();
                BTreeMap::from([(format!("refs/heads/{branch}"), base.commit.clone())])
            }
        };
        Ok(State { heads, tree })
    }

    /// Runs git with agentd's own repository on the tree.
    pub(crate) async fn run(&self, words: &[&str]) -> Result<String, WorkspaceError> {
        let own = self.dir.join(OWN_GIT);
        let run = Run::new(&self.tree, self.within(), words).repository(&own, Some(&self.tree));
        Ok(git(&self.all.0.environment, run).await?.text())
    }

    /// Copies the ignored files that the operator named.
    async fn include(&self, top: PathBuf) -> Result<bool, WorkspaceError> {
        let (to, include, mut copy) = (self.tree.clone(), self.limits.include.clone(), self.copy());
        self.on_disk(move || {
            let mut any = false;
            for path in include {
                let done = copy.path(&top, &to, &path);
                any |= done.map_err(|stopped| stopped_at(stopped, &top.join(&path)))?;
            }
            Ok(any)
        })
        .await
    }
}

fn stopped_at(stopped: Stopped, path: &Path) -> WorkspaceError {
    match stopped {
        Stopped::Failed(error) => at(path)(error),
        Stopped::Limit(why) => WorkspaceError::Limit {
            message: format!("{} was not copied: {why}", path.display()),
            hint: "raise workspace.copy_bytes, workspace.copy_files or workspace.make_limit".to_owned(),
        },
    }
}

/// What a git directory of a workspace takes from its source.
#[derive(Debug, Clone)]
pub(crate) struct Parts {
    base: String,
    objects: PathBuf,
    sha256: bool,
    shallow: Option<Vec<u8>>,
    exclude: Option<Vec<u8>>,
}

/// The largest list that is copied from a source.
const MAX_LIST: u64 = 16 << 20;

impl Parts {
    async fn read(making: &Making<'_>, base: &Base) -> Result<Self, WorkspaceError> {
        let common = base.common.clone();
        let read = move || {
            let list = |name: &str| {
                let path = common.join(name);
                let small =
                    fs::symlink_metadata(&path).is_ok_and(|found| found.is_file() && found.len() <= MAX_LIST);
                small.then(|| fs::read(&path).ok()).flatten()
            };
            Ok((list("shallow"), list("info/exclude")))
        };
        let (shallow, exclude) = making.on_disk(read).await?;
        Ok(Self {
            base: base.commit.clone(),
            objects: base.common.join("objects"),
            sha256: base.sha256,
            shallow,
            exclude,
        })
    }

    pub(crate) fn skeleton<'a>(
        &'a self,
        branch: &'a str,
        origin: Option<&'a str>,
        references: &'a [(String, String)],
    ) -> Skeleton<'a> {
        Skeleton {
            branch,
            base: &self.base,
            objects: &self.objects,
            sha256: self.sha256,
            origin,
            references,
            shallow: self.shallow.as_deref(),
            exclude: self.exclude.as_deref(),
        }
    }
}
