//! Makes a workspace again that is not on this machine.

use crate::logged::Logged;
use crate::store::FileStore;
use agentd_actor_kit::{Read, StoreMsg};
use agentd_fault_points as fault;
use agentd_protocol::{SessionId, Workspace, WorkspaceKind, WorkspaceRestored};
use agentd_workspace::{Limits, Made, Plan, Source};
use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long looking at a repository may take.
const LOOK_WITHIN: Duration = Duration::from_secs(20);
/// How long the store may take for one blob.
const GET_WITHIN: Duration = Duration::from_secs(30);

/// The operator's settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rules {
    /// The most bytes that the store keeps for one session; `None`: it keeps none.
    pub keep_bytes: Option<u64>,
    /// The bounds of making a workspace.
    pub making: Limits,
}

impl FileStore {
    /// Whether a session's workspace is on this machine, and is the one that its log names.
    pub async fn is_here(&self, session: SessionId, workspace: &Workspace) -> bool {
        let path = PathBuf::from(&workspace.path);
        if !path.starts_with(self.workspaces.dir(session)) {
            return false;
        }
        // A disk that does not answer has not lost anything.
        let filling = self.workspaces.filling(session);
        let gone = move || match fs::symlink_metadata(path) {
            Err(error) => error.kind() == std::io::ErrorKind::NotFound,
            // An earlier daemon was killed while it put the files in place.
            Ok(_) => filling.exists(),
        };
        !self.on_disk(session, gone).await.unwrap_or(false)
    }

    /// Makes a workspace again, with the newest files that the store kept. It counts when the log has the result: call
    /// [`FileStore::brought`] then.
    ///
    /// # Errors
    /// Why that is impossible, in words.
    pub async fn bring(
        &self,
        session: SessionId,
        workspace: &Workspace,
        logged: Logged,
    ) -> Result<WorkspaceRestored, String> {
        let gone = format!("the workspace {} is not on this machine", workspace.path);
        let mut missing = logged.missing();
        let Some((as_of, tree)) = logged.last else {
            return Err(format!(
                "{gone}, and the store has no copy of its files; put it back, or start a new session \
                 (workspace.keep = \"store\" keeps copies)"
            ));
        };
        let failed = |why: String| format!("{gone}, and could not be made again: {why}");
        if workspace.branch.is_some() {
            missing.push("commits of the session".to_owned());
        }
        // Remains of an earlier stay on this machine are older than the log.
        let cleared = self.workspaces.discard(session, workspace).await;
        cleared.map_err(|error| failed(error.to_string()))?;
        let filling = self.workspaces.filling(session);
        let begun = self
            .on_disk(session, move || File::create(filling)?.sync_all())
            .await;
        begun
            .and_then(|begun| begun.map_err(|error| error.to_string()))
            .map_err(failed)?;
        let made = self
            .make(session, workspace, &mut missing)
            .await
            .map_err(failed)?;
        let filled = self.fill(session, &made, logged.packs, tree.clone()).await;
        if let Err(why) = filled {
            let _ = self.workspaces.remove(session, true).await;
            return Err(failed(why));
        }
        fault::point(fault::FILES_BROUGHT).map_err(|injected| failed(injected.to_string()))?;
        tracing::info!(%session, %as_of, path = made.workspace.path, "made the workspace again from the store");
        Ok(WorkspaceRestored {
            workspace: made.workspace,
            tree: tree.to_string(),
            as_of,
            missing,
        })
    }

    /// The log says that the workspace was made again.
    pub async fn brought(&self, session: SessionId) {
        let filling = self.workspaces.filling(session);
        let removed = self.on_disk(session, move || fs::remove_file(filling)).await;
        if let Err(why) = removed.and_then(|removed| removed.map_err(|error| error.to_string())) {
            tracing::warn!(%session, why, "could not note that the workspace is whole; the next load makes it again");
        }
    }

    /// Makes the directory: of the same kind if its source is here, otherwise without a repository.
    async fn make(
        &self,
        session: SessionId,
        workspace: &Workspace,
        missing: &mut Vec<String>,
    ) -> Result<Made, String> {
        let (now, limits) = (self.clock.now(), self.rules.making.clone());
        let again = match workspace.kind {
            WorkspaceKind::Copy => None,
            WorkspaceKind::Clone | WorkspaceKind::Worktree => {
                self.workspaces.again(workspace, LOOK_WITHIN).await.ok()
            }
        };
        if let Some(plan) = again {
            // The branch of a worktree may be left in its repository.
            let clone = Plan {
                kind: WorkspaceKind::Clone,
                ..plan.clone()
            };
            for plan in [plan, clone] {
                match self.workspaces.make(session, now, plan, limits.clone()).await {
                    Ok(made) => return Ok(made),
                    Err(error) => {
                        tracing::info!(%session, %error, "could not make the workspace of its source");
                    }
                }
            }
        }
        if workspace.kind != WorkspaceKind::Copy {
            missing.push(format!(
                "the git repository, because {} is not on this machine",
                workspace.source
            ));
        }
        let empty = self.empty(session, workspace).await?;
        let plan = Plan {
            kind: WorkspaceKind::Copy,
            source: Source::Directory(empty),
            reference: None,
            with_changes: false,
        };
        let made = self.workspaces.make(session, now, plan, limits).await;
        made.map_err(|error| error.to_string())
    }

    /// An empty directory with the name of the workspace's tree.
    async fn empty(&self, session: SessionId, workspace: &Workspace) -> Result<PathBuf, String> {
        let name = Path::new(&workspace.path).file_name().unwrap_or("tree".as_ref());
        let dir = self.workspaces.root().join("empty").join(name);
        let made = dir.clone();
        let done = self.on_disk(session, move || fs::create_dir_all(made)).await?;
        done.map_err(|error| error.to_string())?;
        Ok(dir)
    }

    /// Puts the files in place.
    async fn fill(
        &self,
        session: SessionId,
        made: &Made,
        packs: Vec<Vec<String>>,
        tree: agentd_checkpoint::Tree,
    ) -> Result<(), String> {
        let archive = self.keeper.archive(Path::new(&made.workspace.path));
        let file = self.workspaces.dir(session).join("kept.pack");
        for parts in packs {
            let new = file.clone();
            let begun = self.on_disk(session, move || File::create(new)).await?;
            let mut out = begun.map_err(|error| error.to_string())?;
            for name in parts {
                let read = |done| {
                    StoreMsg::Read(Read::Blob {
                        name: name.clone(),
                        done,
                    })
                };
                let got = self.store.call(GET_WITHIN, read).await;
                let bytes = got
                    .map_err(|error| error.to_string())?
                    .map_err(|error| error.to_string())?
                    .ok_or_else(|| format!("the store has no blob {name}"))?;
                let written = self
                    .on_disk(session, move || out.write_all(&bytes).map(|()| out))
                    .await?;
                out = written.map_err(|error| error.to_string())?;
            }
            let (archive, pack) = (archive.clone(), file.clone());
            let unpacked = self.on_disk(session, move || archive.unpack_from(&pack)).await?;
            unpacked.map_err(|error| error.to_string())?;
        }
        let filled = self
            .on_disk(session, move || {
                let _ = fs::remove_file(file);
                archive.fill(&tree).map(drop)
            })
            .await?;
        filled.map_err(|error| error.to_string())
    }
}
