//! Where the work of a session goes: the repository that it came from, and agentd's note that it was fetched.

use crate::api::Api;
use crate::sight::Seen;
use crate::work_out::Work;
use crate::workspaces::fault_of_workspace;
use agentd_protocol::{EventBody, Fault, Workspace, WorkspaceKind};
use agentd_workspace::WorkspaceError;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long looking at a repository may take.
const LOOK_WITHIN: Duration = Duration::from_secs(20);
/// How long comparing a workspace with what was fetched may take.
const COMPARE_WITHIN: Duration = Duration::from_secs(60);

/// The repository that a session's work came from.
#[derive(Debug, Clone)]
pub(crate) struct Origin {
    /// Git's common directory: of a person's repository, or of agentd's mirror.
    pub(crate) git_dir: PathBuf,
    /// The commit that a new one begins at.
    pub(crate) base: String,
    /// The work tree or the URL, for people.
    pub(crate) name: String,
}

impl Origin {
    /// Refuses a mirror: nobody would find a branch there.
    pub(crate) fn of_a_person(self) -> Result<Self, Fault> {
        if Path::new(&self.name).is_absolute() {
            return Ok(self);
        }
        let message = format!("the session works on a clone of {}", self.name);
        Err(Fault::conflict("no_repository", message)
            .hint("use `agentctl export ID --bundle NAME` or `agentctl apply ID --to DIR`"))
    }
}

impl Api {
    /// The workspace that a session was created with.
    pub(crate) async fn workspace_of(&self, session: Seen) -> Result<Option<Box<Workspace>>, Fault> {
        let events = self.events(session, 0).await?;
        Ok(events.into_iter().find_map(|event| match event.body {
            EventBody::SessionCreated(created) => created.workspace,
            _ => None,
        }))
    }

    /// The repository that a session's work goes to. A session with a workspace of its own has it since its creation, so no
    /// command could choose it.
    pub(crate) async fn origin(&self, work: &Work) -> Result<Origin, Fault> {
        let none = |what: &str| {
            let message = format!("{what} is not in a git repository");
            Fault::conflict("no_repository", message)
                .hint("use `agentctl apply ID --to DIR` or `agentctl export ID --patch`")
        };
        if let Some(workspace) = work.workspace.as_deref() {
            let (Some(git_dir), Some(base)) = (&workspace.repository, &workspace.base) else {
                return Err(none(&workspace.source));
            };
            return Ok(Origin {
                git_dir: PathBuf::from(git_dir),
                base: base.clone(),
                name: workspace.source.clone(),
            });
        }
        let workdir = work.workdir.display().to_string();
        let found = self.parts.workspaces.inspect(&work.workdir, LOOK_WITHIN).await;
        let found = found.map_err(fault_of_workspace)?.ok_or_else(|| none(&workdir))?;
        let Some(base) = found.head else {
            let message = format!("the repository {} has no commit yet", found.top.display());
            return Err(Fault::conflict("no_commit", message).hint("commit something first"));
        };
        Ok(Origin {
            git_dir: found.common,
            base,
            name: workdir,
        })
    }

    /// Notes that a session's workspace was fetched, if its files are those that were fetched. Otherwise it stays work.
    pub(crate) async fn note_fetched(&self, work: &Work) {
        match self.try_note_fetched(work).await {
            Ok(None) => {}
            Ok(Some(why)) => {
                tracing::info!(session = %work.session, why, "the workspace has more work than was fetched");
            }
            Err(error) => tracing::warn!(session = %work.session, %error, "could not note what was fetched"),
        }
    }

    async fn try_note_fetched(&self, work: &Work) -> Result<Option<&'static str>, Fault> {
        let (all, session) = (&self.parts.workspaces, *work.session);
        let record = all.record(session).await.map_err(fault_of_workspace)?;
        let Some(record) = record else { return Ok(None) };
        // The look comes first: what changes after it differs from the note, and so is work.
        let present = all
            .present(&record, COMPARE_WITHIN)
            .await
            .map_err(fault_of_workspace)?;
        let base = work.base();
        let compare = work.run(&work.workdir, move |archive, changes| {
            let paths: BTreeSet<Vec<u8>> = changes.keys().cloned().collect();
            Ok((archive.has_only(&base, changes)?, paths))
        });
        let ((same, left_out), paths) = compare.await?;
        if !same {
            return Ok(Some("files differ from those that were recorded"));
        }
        let known = match &present.changed {
            Some(changed) => changed.iter().all(|path| paths.contains(path)),
            None => record.workspace.kind == WorkspaceKind::Copy && !left_out,
        };
        if !known {
            return Ok(Some("files were changed that are not recorded"));
        }
        match all.mark_fetched(session, present).await {
            Err(WorkspaceError::Refused { .. }) => Ok(Some("it is being removed")),
            done => done.map(|()| None).map_err(fault_of_workspace),
        }
    }
}
