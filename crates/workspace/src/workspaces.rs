//! The workspaces of a node.

use crate::error::{WorkspaceError, at};
use crate::inspect::{Repository, inspect};
use crate::mirror::Mirrors;
use crate::plan::{Plan, Source};
use crate::record::{MAX_FETCHED, Record, Stage};
use crate::state::{OWN_GIT, Present, State, present, state};
use agentd_file_work::FileWork;
use agentd_git::GitEnvironment;
use agentd_protocol::{SessionId, Workspace, WorkspaceKind};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::str::FromStr as _;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::Semaphore;

/// The directory of the workspaces in the data directory.
pub const WORKSPACES: &str = "workspaces";
/// The directory of the mirrors in the data directory.
const MIRRORS: &str = "mirrors";
/// How long reading a record or a list may take.
const LOOK_WITHIN: Duration = Duration::from_secs(10);

/// The workspaces of a node. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Workspaces(pub(crate) Arc<Inner>);

#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) root: PathBuf,
    pub(crate) environment: GitEnvironment,
    pub(crate) mirrors: Mirrors,
    /// Workspaces that are made at the same time: each writes as fast as the disk takes it.
    pub(crate) making: Semaphore,
    /// The sessions whose workspaces are being made or removed.
    busy: Mutex<BTreeSet<SessionId>>,
}

/// The workspaces of a node, by what their directories say.
#[derive(Debug, Default)]
pub struct Listing {
    /// The records, the oldest first.
    pub records: Vec<Record>,
    /// Directories without a record: their making had just begun, or their removal was almost done.
    pub begun: Vec<SessionId>,
    /// Directories whose record cannot be read, with the reason.
    pub damaged: Vec<(SessionId, String)>,
}

/// A workspace that nobody else makes or removes until this is dropped.
#[derive(Debug)]
pub(crate) struct Busy {
    inner: Arc<Inner>,
    session: SessionId,
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.inner.busy().remove(&self.session);
    }
}

impl Inner {
    fn busy(&self) -> std::sync::MutexGuard<'_, BTreeSet<SessionId>> {
        self.busy.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Workspaces {
    /// The workspaces below a data directory.
    ///
    /// # Errors
    /// Its directories cannot be created.
    pub fn open(data_dir: &Path, environment: GitEnvironment) -> Result<Self, WorkspaceError> {
        let (root, mirrors) = (data_dir.join(WORKSPACES), data_dir.join(MIRRORS));
        for dir in [&root, &mirrors] {
            private(dir).map_err(at(dir))?;
        }
        let real = |dir: &Path| crate::inspect::real(dir).map_err(at(dir));
        let (root, mirrors) = (real(&root)?, real(&mirrors)?);
        let processors = std::thread::available_parallelism().map_or(2, std::num::NonZero::get);
        Ok(Self(Arc::new(Inner {
            root,
            environment,
            mirrors: Mirrors::new(mirrors),
            making: Semaphore::new(processors.max(2)),
            busy: Mutex::default(),
        })))
    }

    /// The directory of all workspaces; real path.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.0.root
    }

    /// The directory that holds a session's workspace and what agentd keeps about it.
    #[must_use]
    pub fn dir(&self, session: SessionId) -> PathBuf {
        self.0.root.join(session.to_string())
    }

    /// A file that exists while a session's workspace is made but does not have the session's files yet. Whoever fills it
    /// writes and removes the file; it goes with the workspace.
    #[must_use]
    pub fn filling(&self, session: SessionId) -> PathBuf {
        self.0.root.join(format!("{session}.filling"))
    }

    /// Whether a real path is among agentd's own files: the mirrors, and everything in the directory of all workspaces
    /// but the trees.
    #[must_use]
    pub fn holds(&self, path: &Path) -> bool {
        if self.0.mirrors.hold(path) {
            return true;
        }
        let Ok(inside) = path.strip_prefix(&self.0.root) else {
            return false;
        };
        // SESSION/TREE and below.
        let mut parts = inside.components().skip(1);
        parts.next().is_none_or(|part| part.as_os_str() == OWN_GIT)
    }

    /// Looks at the repository that contains a directory; `None` if there is none.
    ///
    /// # Errors
    /// There is one, and it cannot be used.
    pub async fn inspect(&self, dir: &Path, within: Duration) -> Result<Option<Repository>, WorkspaceError> {
        inspect(&self.0.environment, dir, within).await
    }

    /// The plan of another workspace like this one, which begins at the same commit. A copy is made from its files as
    /// they are now.
    ///
    /// # Errors
    /// Its source cannot be used any more.
    pub async fn again(&self, workspace: &Workspace, within: Duration) -> Result<Plan, WorkspaceError> {
        let source = match workspace.kind {
            WorkspaceKind::Copy => Source::Directory(PathBuf::from(&workspace.path)),
            WorkspaceKind::Clone | WorkspaceKind::Worktree if !workspace.source.starts_with('/') => {
                Source::Url(workspace.source.clone())
            }
            WorkspaceKind::Clone | WorkspaceKind::Worktree => {
                let repository = self.inspect(Path::new(&workspace.source), within).await?;
                Source::Repository(repository.ok_or_else(|| {
                    WorkspaceError::refused(
                        "workspace_source",
                        format!("{} is not a git repository any more", workspace.source),
                        "put the repository back, or start a new session",
                    )
                })?)
            }
        };
        Ok(Plan {
            kind: workspace.kind,
            source,
            reference: workspace.base.clone(),
            with_changes: false,
        })
    }

    /// The record of a session's workspace; `None` if it has none.
    ///
    /// # Errors
    /// The record cannot be read.
    pub async fn record(&self, session: SessionId) -> Result<Option<Record>, WorkspaceError> {
        let dir = self.dir(session);
        let read = move || Record::read(&dir);
        self.on_disk(read).await?
    }

    /// All workspaces, the oldest first.
    ///
    /// # Errors
    /// The directory of all workspaces cannot be read.
    pub async fn list(&self) -> Result<Listing, WorkspaceError> {
        let root = self.0.root.clone();
        let read = move || {
            let mut listing = Listing::default();
            for entry in fs::read_dir(&root).map_err(at(&root))?.flatten() {
                let name = entry.file_name();
                let Some(session) = name.to_str().and_then(|name| SessionId::from_str(name).ok()) else {
                    continue;
                };
                match Record::read(&entry.path()) {
                    Ok(Some(record)) => listing.records.push(record),
                    Ok(None) => listing.begun.push(session),
                    Err(error) => listing.damaged.push((session, error.to_string())),
                }
            }
            listing.records.sort_by_key(|record| (record.at, record.session));
            Ok(listing)
        };
        self.on_disk(read).await?
    }

    /// The present state of a workspace.
    ///
    /// # Errors
    /// It is not whole, or cannot be read.
    pub async fn state(&self, record: &Record, within: Duration) -> Result<State, WorkspaceError> {
        state(&self.0.environment, &self.dir(record.session), record, within).await
    }

    /// The present files of a workspace, to note that they were fetched.
    ///
    /// # Errors
    /// It is not whole, or cannot be read.
    pub async fn present(&self, record: &Record, within: Duration) -> Result<Present, WorkspaceError> {
        present(&self.0.environment, &self.dir(record.session), record, within).await
    }

    /// What of a session's workspace nobody has fetched, in words; `None`: nothing. If agentd cannot tell, that counts as
    /// work.
    pub async fn unfetched(&self, record: &Record, within: Duration) -> Option<String> {
        if record.stage != Stage::Made {
            return None;
        }
        let Some(initial) = &record.initial else {
            return Some("an unknown beginning".to_owned());
        };
        match self.state(record, within).await {
            Ok(state) => state.beyond(initial, &record.fetched),
            Err(error) => Some(format!("files that agentd cannot examine ({error})")),
        }
    }

    /// Notes that these files were fetched: applied, exported, or put on a branch elsewhere.
    ///
    /// # Errors
    /// The record cannot be written.
    pub async fn mark_fetched(&self, session: SessionId, present: Present) -> Result<(), WorkspaceError> {
        let (dir, state) = (self.dir(session), present.state);
        let _busy = self.busy(session)?;
        let mark = move || {
            let Some(mut record) = Record::read(&dir)? else {
                return Ok(());
            };
            record.fetched.retain(|known| *known != state);
            record.fetched.push(state);
            let surplus = record.fetched.len().saturating_sub(MAX_FETCHED);
            record.fetched.drain(..surplus);
            record.write(&dir)
        };
        self.on_disk(mark).await?
    }

    pub(crate) fn busy(&self, session: SessionId) -> Result<Busy, WorkspaceError> {
        if !self.0.busy().insert(session) {
            return Err(WorkspaceError::refused(
                "workspace_busy",
                "the workspace is being made or removed",
                "try again in a moment",
            ));
        }
        Ok(Busy {
            inner: Arc::clone(&self.0),
            session,
        })
    }

    /// Runs short work on the directory of all workspaces.
    pub(crate) async fn on_disk<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, WorkspaceError> {
        let files = FileWork::of_directory(&self.0.root);
        Ok(files.run(&self.0.root, LOOK_WITHIN, work).await?)
    }
}

/// Creates a directory that only this user can enter.
pub(crate) fn private(dir: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::DirBuilderExt as _;
    fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)
}
