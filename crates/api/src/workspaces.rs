//! The workspaces of sessions: made before a session is created, removed when it is deleted.

use crate::api::Api;
use crate::directories::WorkDir;
use crate::sight::Caller;
use crate::validate;
use agentd_checkpoint::Tree;
use agentd_file_work::FileWork;
use agentd_git::GitError;
use agentd_protocol::{CreateParams, Fault, SessionId, Workspace, WorkspaceCreated};
use agentd_settings::WorkspaceConfig;
use agentd_workspace::{Asked, Limits, Plan, Source, WorkspaceError, Workspaces, plan};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long looking at a repository may take.
const LOOK_WITHIN: Duration = Duration::from_secs(20);

/// How long removing the recorded files of one workspace may take.
const REMOVE_WITHIN: Duration = Duration::from_secs(60);
/// How long filling a fork's workspace may take.
const FILL_WITHIN: Duration = Duration::from_secs(100);

/// The trees that a log names.
#[derive(Debug, Clone, Default)]
pub(crate) struct RecordedTrees {
    /// All of them.
    pub(crate) trees: Vec<Tree>,
    /// The files at the end.
    pub(crate) last: Option<Tree>,
}

/// Where a new session works.
#[derive(Debug)]
pub(crate) struct Place {
    /// Its working directory.
    pub(crate) workdir: String,
    /// The name of its project, if that is not its directory's.
    pub(crate) project: Option<String>,
    /// Its own workspace.
    pub(crate) workspace: Option<Workspace>,
    /// What the person should know.
    pub(crate) notices: Vec<String>,
}

impl Place {
    /// A directory that the session shares, unless the caller may only copy it.
    pub(crate) fn shared(directory: WorkDir) -> Result<Self, Fault> {
        Ok(Self {
            workdir: directory.shared()?,
            project: None,
            workspace: None,
            notices: Vec::new(),
        })
    }
}

/// Why a workspace was not made.
#[derive(Debug)]
enum NoPlace {
    /// The caller may not have it.
    Denied(Fault),
    Workspace(WorkspaceError),
}

impl From<WorkspaceError> for NoPlace {
    fn from(error: WorkspaceError) -> Self {
        Self::Workspace(error)
    }
}

impl Api {
    /// Finds or makes the directory that a new session works in. Its own workspace belongs to nobody until the session
    /// exists: [`Api::abandon`] removes it if that fails.
    pub(crate) async fn working_place(
        &self,
        who: &Caller,
        session: SessionId,
        params: &CreateParams,
        directory: Option<WorkDir>,
    ) -> Result<Place, Fault> {
        let loaded = self.loaded();
        let settings = &loaded.settings.workspace;
        let workdir = directory.as_ref().map_or(Path::new(""), WorkDir::path);
        let asked = Asked {
            request: params.workspace.as_ref(),
            default: settings.choice(workdir),
            workdir,
            repository: None,
        };
        let automatic = asked.is_automatic();
        let made = self.own_place(who, session, asked, making_limits(settings)).await;
        let notice = match made {
            Ok(Some(mut place)) => {
                if automatic {
                    // Nobody asked for it, so the person may look for the changes in the directory.
                    let id = session.short();
                    place.notices.insert(
                        0,
                        format!(
                            "the session works in a clone of {}; `agentctl apply {id}` brings its changes to the \
                             current directory, --workspace shared works in the directory itself",
                            workdir.display()
                        ),
                    );
                }
                return Ok(place);
            }
            Ok(None) => None,
            Err(NoPlace::Workspace(WorkspaceError::Refused { message, .. })) if automatic => Some(format!(
                "the session works in {} itself: {message}",
                workdir.display()
            )),
            Err(NoPlace::Workspace(error)) => return Err(fault_of_workspace(error)),
            Err(NoPlace::Denied(fault)) => return Err(fault),
        };
        let Some(directory) = directory else {
            return Err(Fault::invalid("bad_workdir", "the working directory is missing")
                .hint("name one with -C DIR"));
        };
        self.apart(directory.text()).await?;
        let mut place = Place::shared(directory)?;
        place.notices.extend(notice);
        Ok(place)
    }

    /// Makes the workspace that is asked for; `None`: the session shares its directory.
    async fn own_place(
        &self,
        who: &Caller,
        session: SessionId,
        asked: Asked<'_>,
        limits: Limits,
    ) -> Result<Option<Place>, NoPlace> {
        let from_url = asked.request.is_some_and(|request| request.repo.is_some());
        let repository = if !from_url && asked.needs_repository() {
            self.parts.workspaces.inspect(asked.workdir, LOOK_WITHIN).await?
        } else {
            None
        };
        if let Some(repository) = &repository {
            self.may_copy(who, repository).await.map_err(NoPlace::Denied)?;
        }
        let planned = plan(Asked {
            repository: repository.as_ref(),
            ..asked
        })?;
        match planned {
            Some(plan) => Ok(Some(self.make_place(session, asked.workdir, plan, limits).await?)),
            None => Ok(None),
        }
    }

    /// Makes the workspace of a fork: of the same kind, with the files as they were recorded at that point.
    pub(crate) async fn place_of_fork(
        &self,
        session: SessionId,
        of: &Workspace,
        recorded: RecordedTrees,
    ) -> Result<(WorkspaceCreated, Vec<String>), Fault> {
        let plan = self.parts.workspaces.again(of, LOOK_WITHIN).await;
        let limits = making_limits(&self.loaded().settings.workspace);
        let plan = plan.map_err(fault_of_workspace)?;
        let place = self
            .make_place(session, Path::new(&of.source), plan, limits)
            .await;
        let place = place.map_err(fault_of_workspace)?;
        let workspace = place
            .workspace
            .ok_or_else(|| Fault::internal("workspace_failed", "a workspace of its own was not made"))?;
        let mut notices = place.notices;
        let RecordedTrees { trees, last } = recorded;
        if let Some(tree) = last.clone() {
            let from = self.parts.checkpoints.archive(Path::new(&of.path));
            let to = self.parts.checkpoints.archive(Path::new(&workspace.path));
            let base = workspace.base.clone();
            let work = move || {
                to.carry(&from, &trees, base.as_deref())?;
                to.fill(&tree).map(drop)
            };
            let files = FileWork::of_session(&session.to_string());
            let done = files.run(Path::new(&workspace.path), FILL_WITHIN, work).await;
            done.map_err(|failed| Fault::timeout("files_slow", failed.to_string()))?
                .map_err(crate::recorded::fault)?;
        } else {
            notices.push(
                "no files were recorded up to that point, so the workspace has those of its source"
                    .to_owned(),
            );
        }
        let tree = last.map(|tree| tree.to_string());
        Ok((WorkspaceCreated { workspace, tree }, notices))
    }

    /// Refuses a directory that commands must not write, because the daemon's data is below it.
    pub(crate) async fn apart(&self, workdir: &str) -> Result<(), Fault> {
        if self.parts.facts.walls {
            validate::apart(workdir, &self.parts.facts.data_dir).await?;
        }
        Ok(())
    }

    async fn make_place(
        &self,
        session: SessionId,
        workdir: &Path,
        plan: Plan,
        limits: Limits,
    ) -> Result<Place, WorkspaceError> {
        let below = match &plan.source {
            Source::Repository(repository) if workdir != repository.top => Some(repository.top.clone()),
            _ => None,
        };
        let (all, now) = (self.parts.workspaces.clone(), self.parts.clock.now());
        // If the client goes away, the making ends all the same, and what it made is removed.
        let (to, making) = tokio::sync::oneshot::channel();
        tokio::spawn(async move {
            let made = all.make(session, now, plan, limits).await;
            if to.send(made).is_err() {
                remove(&all, session).await;
            }
        });
        let made = making.await.map_err(|_| WorkspaceError::Io {
            path: self.parts.workspaces.dir(session),
            source: std::io::Error::other("the making of the workspace stopped"),
        })??;
        let mut notices = made.notices;
        if let Some(top) = below {
            notices.push(format!(
                "the session works at the top of the repository, {}",
                top.display()
            ));
        }
        let source = made
            .workspace
            .source
            .trim_end_matches('/')
            .trim_end_matches(".git");
        let project = source.rsplit(['/', ':']).next().map(str::to_owned);
        Ok(Place {
            workdir: made.workspace.path.clone(),
            project: project.filter(|name| !name.is_empty()),
            workspace: Some(made.workspace),
            notices,
        })
    }

    /// Removes the workspace of a session that was not created after all.
    pub(crate) async fn abandon(&self, session: SessionId) {
        remove(&self.parts.workspaces, session).await;
    }

    /// Removes the workspace of a session unless it is kept.
    pub(crate) fn unowned(&self, session: SessionId) -> Unowned {
        Unowned(Some((self.parts.workspaces.clone(), session)))
    }

    /// Refuses to delete a session whose workspace has work that nobody fetched.
    pub(crate) async fn may_lose(&self, session: SessionId, force: bool) -> Result<(), Fault> {
        if force {
            return Ok(());
        }
        let record = self
            .parts
            .workspaces
            .record(session)
            .await
            .map_err(fault_of_workspace)?;
        let Some(record) = record else { return Ok(()) };
        match self.parts.workspaces.unfetched(&record, LOOK_WITHIN).await {
            None => Ok(()),
            Some(what) => Err(fault_of_workspace(WorkspaceError::NotFetched {
                session: session.short(),
                what,
            })),
        }
    }

    /// Removes the workspace of a deleted session, and what was recorded of it.
    pub(crate) async fn remove_place(&self, session: SessionId, workspace: Option<&Workspace>) {
        if let Some(workspace) = workspace {
            let archive = self.parts.checkpoints.archive(Path::new(&workspace.path));
            let files = FileWork::of_directory(self.parts.workspaces.root());
            let removed = files
                .run(self.parts.workspaces.root(), REMOVE_WITHIN, move || {
                    archive.remove()
                })
                .await;
            match removed.map_err(|failed| failed.to_string()) {
                Ok(Ok(())) => {}
                Ok(Err(error)) => tracing::warn!(%session, %error, "could not remove recorded files"),
                Err(why) => tracing::warn!(%session, why, "could not remove recorded files"),
            }
        }
        match self.parts.workspaces.remove(session, true).await {
            Ok(Some(removed)) => {
                if let Some(branch) = removed.branch {
                    tracing::info!(%session, branch, "the branch of a removed worktree stays");
                }
            }
            Ok(None) => {}
            Err(error) => {
                tracing::warn!(%session, %error, "could not remove the workspace of a deleted session");
            }
        }
    }
}

/// The workspace of a session that does not exist yet. It is removed when this is dropped: the client went away, or a
/// panic ended the request.
#[derive(Debug)]
pub(crate) struct Unowned(Option<(Workspaces, SessionId)>);

impl Unowned {
    /// From here on, the session may exist.
    pub(crate) fn keep(mut self) {
        self.0 = None;
    }
}

impl Drop for Unowned {
    fn drop(&mut self) {
        if let Some((all, session)) = self.0.take()
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            runtime.spawn(async move { remove(&all, session).await });
        }
    }
}

async fn remove(all: &Workspaces, session: SessionId) {
    if let Err(error) = all.remove(session, true).await {
        tracing::warn!(%session, %error, "could not remove the workspace of a session that was not created");
    }
}

/// The bounds of making a workspace.
#[must_use]
pub fn making_limits(settings: &WorkspaceConfig) -> Limits {
    Limits {
        within: settings.make_limit,
        include: settings.include.iter().map(PathBuf::from).collect(),
        max_bytes: settings.copy_bytes,
        max_files: settings.copy_files,
    }
}

/// The fault of a workspace that could not be made or removed.
pub(crate) fn fault_of_workspace(error: WorkspaceError) -> Fault {
    let message = error.to_string();
    match error {
        WorkspaceError::Refused { code, message, hint } => Fault::invalid(code, message).hint(hint),
        WorkspaceError::NotFetched { session, .. } => Fault::conflict("work_not_fetched", message).hint(
            format!("fetch it first (agentctl branch {session} NAME, or apply), or use force to lose it"),
        ),
        WorkspaceError::Limit { message, hint } => Fault::limit("workspace_limit", message).hint(hint),
        WorkspaceError::Git(GitError::Slow { .. }) => {
            Fault::timeout("workspace_slow", message).hint("try again, or raise workspace.make_limit")
        }
        WorkspaceError::Files(_) => Fault::timeout("workspace_slow", message),
        WorkspaceError::Git(_) | WorkspaceError::Io { .. } | WorkspaceError::Injected(_) => {
            Fault::storage("workspace_failed", message)
        }
    }
}
