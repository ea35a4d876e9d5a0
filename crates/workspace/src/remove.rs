//! Removes workspaces, and what a crash left of their making or removal.

use crate::error::{WorkspaceError, at};
use crate::record::{Record, Stage, branch_name};
use crate::workspaces::Workspaces;
use agentd_fault_points as fault;
use agentd_file_work::FileWork;
use agentd_git::{Run, ask};
use agentd_protocol::{SessionId, Timestamp, Workspace};
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::Duration;

/// How long the removal of one workspace may take.
const REMOVE_WITHIN: Duration = Duration::from_secs(600);
/// How long finding out whether there is work may take.
const LOOK_WITHIN: Duration = Duration::from_secs(60);
/// The deepest directory whose permissions are repaired.
const MAX_DEPTH: usize = 1_000;

/// What a removal did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Removed {
    /// The session that it was made for.
    pub session: SessionId,
    /// A branch that stays in the person's repository, because it has commits.
    pub branch: Option<String>,
}

impl Workspaces {
    /// Removes a session's workspace. Without `force`, one with work that nobody fetched stays. `None`: there is none.
    ///
    /// # Errors
    /// It has such work, or cannot be removed.
    pub async fn remove(&self, session: SessionId, force: bool) -> Result<Option<Removed>, WorkspaceError> {
        let _busy = self.busy(session)?;
        let Some(record) = self.record(session).await? else {
            return Ok(None);
        };
        if !force && let Some(what) = self.unfetched(&record, LOOK_WITHIN).await {
            return Err(WorkspaceError::NotFetched {
                session: session.short(),
                what,
            });
        }
        self.erase(&record).await.map(Some)
    }

    /// Removes what is left of a session's workspace on this machine: its directory, and git's entry of a worktree.
    ///
    /// # Errors
    /// It is being made or removed, or cannot be removed.
    pub async fn discard(&self, session: SessionId, workspace: &Workspace) -> Result<(), WorkspaceError> {
        let _busy = self.busy(session)?;
        let record = match self.record(session).await {
            Ok(Some(record)) => record,
            Ok(None) | Err(_) => Record {
                session,
                at: Timestamp(0),
                stage: Stage::Removing,
                workspace: workspace.clone(),
                initial: None,
                fetched: Vec::new(),
            },
        };
        let moved = !record
            .workspace
            .path
            .starts_with(self.root().to_string_lossy().as_ref());
        if moved && record.workspace.path == workspace.path && self.dir(session).exists() {
            return Err(WorkspaceError::refused(
                "workspace_moved",
                format!(
                    "{} was made at another place, {}",
                    self.dir(session).display(),
                    workspace.path
                ),
                "put the data directory back where it was",
            ));
        }
        self.erase(&record).await.map(drop)
    }

    /// Removes what a crash left behind, and workspaces of sessions that do not exist and have no work. Returns how many.
    ///
    /// # Errors
    /// The directory of all workspaces cannot be read.
    pub async fn clean_up<F: Future<Output = bool> + Send>(
        &self,
        exists: impl Fn(SessionId) -> F + Send + Sync,
    ) -> Result<usize, WorkspaceError> {
        let listing = self.list().await?;
        for (session, why) in &listing.damaged {
            tracing::warn!(%session, %why, "the record of a workspace is damaged; leaving it as it is");
        }
        let mut removed = 0;
        for session in listing.begun {
            let Ok(_busy) = self.busy(session) else { continue };
            match self.remove_dir(session).await {
                Ok(()) => removed += 1,
                Err(error) => {
                    tracing::warn!(%session, %error, "could not remove a workspace without a record");
                }
            }
        }
        for record in listing.records {
            let session = record.session;
            if record.stage == Stage::Made && exists(session).await {
                continue;
            }
            let Ok(_busy) = self.busy(session) else { continue };
            if let Some(what) = self.unfetched(&record, LOOK_WITHIN).await {
                tracing::warn!(%session, %what, "a workspace without a session has work; keeping it");
                continue;
            }
            match self.erase(&record).await {
                Ok(_) => removed += 1,
                Err(error) => tracing::warn!(%session, %error, "could not remove the rest of a workspace"),
            }
        }
        Ok(removed)
    }

    /// Removes a workspace and whatever it left in the repository that it came from.
    pub(crate) async fn erase(&self, record: &Record) -> Result<Removed, WorkspaceError> {
        let mut record = record.clone();
        record.stage = Stage::Removing;
        let (dir, mark) = (self.dir(record.session), record.clone());
        self.on_disk(move || if dir.exists() { mark.write(&dir) } else { Ok(()) })
            .await??;
        fault::point(fault::WORKSPACE_REMOVING)?;
        let branch = self.unlink(&record).await;
        fault::point(fault::WORKSPACE_UNLINKED)?;
        self.remove_dir(record.session).await?;
        Ok(Removed {
            session: record.session,
            branch,
        })
    }

    /// Removes a worktree's entry and its branch from the repository. A branch with commits stays, and is returned.
    async fn unlink(&self, record: &Record) -> Option<String> {
        let place = record.worktree_dir()?;
        let repository = record.workspace.repository.clone()?;
        let files = FileWork::of_session(&record.session.to_string());
        let entry = place.clone();
        let removed = files
            .run(Path::new(&repository), REMOVE_WITHIN, move || {
                remove_all(&entry, &[])
            })
            .await;
        if let Err(error) = removed.map_err(io::Error::from).flatten() {
            tracing::warn!(place = %place.display(), %error, "could not remove git's entry of a worktree");
        }
        let branch = branch_name(record.session);
        let name = format!("refs/heads/{branch}");
        let base = record.workspace.base.clone().unwrap_or_default();
        let run = |words: &[&str]| {
            Run::new(Path::new("/"), LOOK_WITHIN, words).repository(Path::new(&repository), None)
        };
        let environment = &self.0.environment;
        // Only if it is where it began.
        let _ = ask(
            environment,
            run(&["update-ref", "--no-deref", "-d", &name, &base]),
        )
        .await;
        let left = ask(environment, run(&["rev-parse", "--verify", "--quiet", &name])).await;
        left.is_ok_and(|left| left.success).then_some(branch)
    }

    async fn remove_dir(&self, session: SessionId) -> Result<(), WorkspaceError> {
        let (dir, filling) = (self.dir(session), self.filling(session));
        let files = FileWork::of_session(&session.to_string());
        let removed = files.run(&self.0.root, REMOVE_WITHIN, move || {
            remove_all(&dir, &["record.json"]).map_err(at(&dir))?;
            fault::point(fault::WORKSPACE_EMPTIED)?;
            remove_all(&dir, &[]).map_err(at(&dir))?;
            let _ = fs::remove_file(filling);
            Ok(())
        });
        removed.await?
    }
}

/// Removes a directory, or all of its entries but some. Directories without permissions get them first.
fn remove_all(dir: &Path, keep: &[&str]) -> io::Result<()> {
    let missing = |error: &io::Error| error.kind() == io::ErrorKind::NotFound;
    if keep.is_empty() {
        return match remove_tree(dir) {
            Err(error) if !missing(&error) => Err(error),
            _ => Ok(()),
        };
    }
    let entries = match fs::read_dir(dir) {
        Err(error) if missing(&error) => return Ok(()),
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        if keep.iter().any(|kept| entry.file_name() == *kept) {
            continue;
        }
        let removed = match entry.file_type()?.is_dir() {
            true => remove_tree(&entry.path()),
            false => fs::remove_file(entry.path()),
        };
        match removed {
            Err(error) if !missing(&error) => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

fn remove_tree(dir: &Path) -> io::Result<()> {
    match fs::remove_dir_all(dir) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            repair(dir, 0)?;
            fs::remove_dir_all(dir)
        }
        done => done,
    }
}

/// Lets the owner remove what is in a tree. Only commands of the session could change it meanwhile, and they are gone.
fn repair(dir: &Path, depth: usize) -> io::Result<()> {
    if depth > MAX_DEPTH {
        return Err(io::Error::other("the directories are too deep"));
    }
    fs::set_permissions(dir, fs::Permissions::from_mode(0o700))?;
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            repair(&entry.path(), depth + 1)?;
        }
    }
    Ok(())
}
