//! `session.close`, `delete`, `pause`, `compact`, `summarize`, `resume`.

use crate::answers::Answers as _;
use crate::api::{Api, COMMAND, READ, fault_of};
use crate::reads::live;
use crate::sight::{Caller, Seen};
use agentd_actor_kit::{FeedMsg, StoreMsg, SupervisorMsg};
use agentd_protocol::{
    Done, Fault, LifecycleParams, ResumeParams, RunState, SessionId, SessionMoved, SessionParams, listed,
};
use agentd_store::Row;
use agentd_turn::Command;
use std::path::{Path, PathBuf};

/// The maximum length of a reason.
const MAX_REASON: usize = 1_000;

impl Api {
    pub(crate) async fn close(&self, who: &Caller, params: LifecycleParams) -> Result<Done, Fault> {
        let reason = reason(params.reason, "closed by a person")?;
        let session = self.session(who, &params.session).await?;
        if let Some(peers) = &self.parts.peers
            && let Some(status) = peers.stranded().get(&*session)
            && !params.force
        {
            let message = format!(
                "session {} is {}: {}",
                session.short(),
                status.state,
                status.reason
            );
            return Err(Fault::conflict("session_running", message).hint("cancel it first, or use force"));
        }
        let command = Command::Close {
            reason,
            force: params.force,
        };
        let id = *session;
        let closed = self.route(who, session, command, None).await;
        self.give_back(id).await?;
        Ok(closed?.done())
    }

    pub(crate) async fn pause(&self, who: &Caller, params: LifecycleParams) -> Result<Done, Fault> {
        let reason = reason(params.reason, "paused by a person")?;
        let session = self.session(who, &params.session).await?;
        let done = self
            .route(who, session, Command::Pause { reason }, None)
            .await?
            .done();
        self.followed(*session).await?;
        Ok(done)
    }

    /// Has the conversation compacted. Answers when the request is durable; `context.compacted` or `context.kept` follows.
    pub(crate) async fn compact(&self, who: &Caller, params: SessionParams) -> Result<Done, Fault> {
        let session = self.session(who, &params.session).await?;
        Ok(self.route(who, session, Command::Compact, None).await?.done())
    }

    /// Has a model summarize the work of a session: `side_call.finished` follows, and `session.updated` if it succeeded.
    pub(crate) async fn summarize(&self, who: &Caller, params: SessionParams) -> Result<Done, Fault> {
        let session = self.session(who, &params.session).await?;
        Ok(self.route(who, session, Command::Summarize, None).await?.done())
    }

    /// Resumes a paused session, or one whose loop crashed too often.
    pub(crate) async fn resume(&self, who: &Caller, params: ResumeParams) -> Result<Done, Fault> {
        let reason = reason(params.reason, "resumed by a person")?;
        let (session, row) = self.row_of(who, &params.session).await?;
        if let Some(workdir) = &params.workdir {
            let asked = (row, workdir.as_str(), params.force);
            return self.resume_in(who, session, reason, asked).await;
        }
        let revive = |done| SupervisorMsg::Revive {
            session: *session,
            done,
        };
        let revived = self
            .parts
            .supervisor
            .call(COMMAND, revive)
            .await
            .map_err(fault_of)?;
        if revived && row.summary.status.state != RunState::Paused {
            return Ok(Done::at(row.head));
        }
        Ok(self
            .route(who, session, Command::Resume { reason, moved: None }, None)
            .await?
            .done())
    }

    /// Has a session go on in another directory of this node, together with its sub-agents that work in the earlier one.
    async fn resume_in(
        &self,
        who: &Caller,
        session: Seen,
        reason: String,
        (row, workdir, force): (Row, &str, bool),
    ) -> Result<Done, Fault> {
        if let Some(parent) = row.summary.parent {
            let message = "a sub-agent works in the directory of its parent and moves with it";
            let hint = format!("move the parent: agentctl resume {} -C DIR", parent.short());
            return Err(Fault::invalid("moves_with_parent", message).hint(hint));
        }
        if let Some(peers) = &self.parts.peers
            && let Some(owner) = peers.owner(*session).await?
        {
            let message = format!("session {} runs on node {}", session.short(), owner.name);
            let hint =
                "send this to that node; or have it give up its sessions first: agentctl node drain NODE";
            return Err(Fault::conflict("runs_elsewhere", message).hint(hint));
        }
        let requires = &row.summary.requires;
        if !self.has_labels(requires) {
            let node = &self.parts.facts.node;
            let message = format!("node {node} does not have the labels {}", listed(requires));
            let hint = "send this to a node that has them; `agentctl nodes -o wide` lists them";
            return Err(Fault::conflict("labels_missing", message).hint(hint));
        }
        let workdir = self.shared_directory(who, workdir, force).await?.shared()?;
        let command = |workdir: String| Command::Resume {
            reason: reason.clone(),
            moved: Some(Box::new(SessionMoved {
                node: self.parts.facts.node.clone(),
                epoch: 0,
                workdir: Some(workdir),
            })),
        };
        // The session itself comes last. Until then no sub-agent may run here, so that each moves before it starts; and if
        // this ends early, its repetition moves the rest.
        for child in self.all_below(*session).await?.into_iter().rev() {
            let below = self.summary(child).await?;
            let below = below.filter(|below| below.status.state != RunState::Closed);
            let rest = below.and_then(|below| {
                let rest = Path::new(&below.workdir)
                    .strip_prefix(&row.summary.workdir)
                    .ok()?;
                Some(rest.to_owned())
            });
            let Some(rest) = rest else { continue };
            let place = Path::new(&workdir).join(rest).components().collect::<PathBuf>();
            let child = Seen::sub_agent(session, child);
            self.route(who, child, command(place.display().to_string()), None)
                .await?;
        }
        Ok(self.route(who, session, command(workdir), None).await?.done())
    }

    /// Deletes a session and its sub-agents; with `force` also a running session, whose turn is cancelled first.
    pub(crate) async fn delete(&self, who: &Caller, params: LifecycleParams) -> Result<Done, Fault> {
        let (seen, row) = self.row_of(who, &params.session).await?;
        let session = *seen;
        self.owned_here(session).await?;
        let row = live(row, &self.statuses().await?);
        let state = row.status.state;
        let rests = state.at_rest() || (state == RunState::Paused && row.turn.is_none());
        if !rests && !params.force {
            let message = format!("session {} is {state}", session.short());
            return Err(Fault::conflict("session_running", message).hint("cancel it first, or use force"));
        }
        self.may_lose(session, params.force).await?;
        let workspace = self.workspace_of(seen).await?;
        // A sub-agent that has not reported is closed, too, so that its tree counts what it spent before it is deleted.
        if !rests || self.is_awaited(session, row.parent).await? {
            let command = Command::Close {
                reason: "deleted".to_owned(),
                force: true,
            };
            // A session that can no longer be closed can still be deleted.
            if let Err(fault) = self.route(who, seen, command, None).await {
                tracing::warn!(%session, %fault, "could not close a running session; deleting it anyway");
            }
        }
        self.tree_ended(session, row.parent).await?;
        for child in self.all_below(session).await?.into_iter().rev() {
            self.forget(child).await?;
        }
        self.forget(session).await?;
        self.remove_place(session, workspace.as_deref()).await;
        tracing::info!(%session, by = %who, "session deleted");
        Ok(Done::at(row.seq))
    }

    async fn forget(&self, session: SessionId) -> Result<(), Fault> {
        let evict = |done| SupervisorMsg::Evict { session, done };
        self.parts
            .supervisor
            .call(COMMAND, evict)
            .await
            .map_err(fault_of)?;
        let delete = |done| StoreMsg::Delete { session, done };
        self.parts
            .store
            .call(READ, delete)
            .await
            .map_err(fault_of)?
            .map_err(Fault::from)?;
        self.parts.feed.cast(FeedMsg::Cold { session });
        Ok(())
    }
}

fn reason(given: Option<String>, default: &str) -> Result<String, Fault> {
    match given {
        Some(reason) if reason.chars().count() > MAX_REASON => Err(Fault::invalid(
            "reason_too_long",
            format!("a reason can have at most {MAX_REASON} characters"),
        )),
        Some(reason) if !reason.trim().is_empty() => Ok(reason),
        Some(_) | None => Ok(default.to_owned()),
    }
}
