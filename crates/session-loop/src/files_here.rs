//! The files of a session that is loaded: elsewhere, or in a workspace that has to be made again.

use crate::error::LoopError;
use crate::load::{Folded, decoded, note, page};
use crate::services::Services;
use agentd_kept_files::Logged;
use agentd_protocol::{EventBody, Principal, Seq, SessionMoved, WorkspaceRestored};

/// The purpose of loading a session.
#[derive(Debug, Default)]
pub enum LoadPurpose {
    /// To go on. Its files have to be here.
    #[default]
    Ordinary,
    /// For a command that needs no files: if they are elsewhere, the session gets no model call here.
    NoFiles,
    /// To work in another directory. If its files are elsewhere, it moves to this node with the first append, so that no
    /// crash leaves it here with the earlier directory.
    Move(Box<SessionMoved>, Principal),
}

/// A session whose files are on another node is here: with another directory, or to end its work.
pub(crate) async fn arrive(
    services: &Services,
    folded: &mut Folded,
    purpose: LoadPurpose,
) -> Result<(), LoopError> {
    let LoadPurpose::Move(moved, by) = purpose else {
        folded.agent.only_end();
        return Ok(());
    };
    let moved = SessionMoved {
        epoch: folded.epoch,
        ..*moved
    };
    note(services, folded, &by, [EventBody::from(moved)].into_iter()).await
}

/// Makes the session's own workspace again if it is not on this machine. Without it, no turn gets a model call.
pub(crate) async fn bring_workspace(
    services: &Services,
    folded: &mut Folded,
    head: Seq,
) -> Result<Option<WorkspaceRestored>, LoopError> {
    let session = folded.session;
    let durable = folded.agent.durable();
    let workspace = durable
        .settings
        .as_ref()
        .and_then(|settings| settings.workspace.clone());
    let (Some(workspace), Some(files)) = (workspace, &services.files) else {
        return Ok(None);
    };
    if durable.closed.is_some() || files.is_here(session, &workspace).await {
        return Ok(None);
    }
    let (mut logged, mut at) = (Logged::default(), 0);
    while at < head {
        let page = page(&services.store, services.timing.load, session, (at, head)).await?;
        let last = page.events.last().map_or(at, |(seq, _)| *seq);
        if last <= at {
            return Err(LoopError::Short { found: at, head });
        }
        for (seq, line) in &page.events {
            logged.note(&decoded(*seq, line)?);
        }
        at = last;
    }
    match files.bring(session, &workspace, logged).await {
        Ok(restored) => Ok(Some(restored)),
        Err(why) => {
            tracing::warn!(%session, why, "a workspace is lost");
            folded.agent.lose_workspace(why);
            Ok(None)
        }
    }
}
