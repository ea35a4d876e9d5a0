//! Trees of agents as clients see them: the open questions below a session, and waiting for the end of a whole tree.

use crate::api::{Api, read_from};
use crate::sight::{Caller, Seen};
use agentd_actor_kit::{Handle, Read, StoreMsg};
use agentd_protocol::{Budget, EventBody, Fault, OpenApproval, PermissionMode, RunState, SessionId, Summary};
use agentd_store::{EncodedEvent, Range};
use agentd_turn::ShownSettings;
use std::time::Duration;

/// The maximum number of sessions of a tree that are read.
const MOST: usize = 10_000;
/// The time limit for sub-agents to end.
const ENDING: Duration = Duration::from_secs(20);
/// The time limit for sub-agents to follow a change above them.
const FOLLOWING: Duration = Duration::from_secs(20);
/// The polling interval meanwhile.
const LOOK: Duration = Duration::from_millis(50);
/// Bytes of a log that one read returns.
const PAGE_BYTES: u32 = 4 << 20;

/// The open questions of a session and of the sub-agents below it that the caller sees, the oldest first.
pub(crate) async fn open_in_tree(
    store: &Handle<StoreMsg>,
    who: &Caller,
    summary: Summary,
) -> Result<Vec<OpenApproval>, Fault> {
    let (mut rows, mut open, mut seen) = (vec![summary], Vec::new(), 0);
    while let Some(row) = rows.pop() {
        open.extend(row.open_approvals);
        seen += 1;
        if seen > MOST {
            break;
        }
        for session in row.children {
            let child = read_from(store, |done| Read::Row { session, done }).await?;
            rows.extend(child.map(|row| row.summary).filter(|row| who.sees(&row.labels)));
        }
    }
    open.sort_by_key(|approval| (approval.asked_at, approval.approval));
    Ok(open)
}

impl Api {
    /// Waits until all sessions below a session have ended, and the session's parent knows that the session did.
    pub(crate) async fn tree_ended(
        &self,
        session: SessionId,
        parent: Option<SessionId>,
    ) -> Result<(), Fault> {
        let ended = async {
            loop {
                let below = self.summary(session).await?;
                let open = below.is_some_and(|row| !row.children.is_empty());
                if !open && !self.is_awaited(session, parent).await? {
                    return Ok(());
                }
                tokio::time::sleep(LOOK).await;
            }
        };
        tokio::time::timeout(ENDING, ended).await.unwrap_or_else(|_| {
            Err(
                Fault::busy("subagents_ending", "sub-agents of this session are still ending")
                    .hint("try again in a moment"),
            )
        })
    }

    /// Whether the parent still waits for this sub-agent's completion report.
    pub(crate) async fn is_awaited(
        &self,
        session: SessionId,
        parent: Option<SessionId>,
    ) -> Result<bool, Fault> {
        let Some(parent) = parent else { return Ok(false) };
        let above = self.summary(parent).await?;
        Ok(above.is_some_and(|row| row.children.contains(&session)))
    }

    pub(crate) async fn summary(&self, session: SessionId) -> Result<Option<Summary>, Fault> {
        let row = self.read(|done| Read::Row { session, done }).await?;
        Ok(row.map(|row| row.summary))
    }

    /// Waits until the active sub-agents below a session know that it was paused or got a stricter mode (I7). They find
    /// out before their next step in any case.
    pub(crate) async fn followed(&self, session: SessionId) -> Result<(), Fault> {
        let follow = async {
            while !self.all_follow(session).await? {
                tokio::time::sleep(LOOK).await;
            }
            Ok(())
        };
        tokio::time::timeout(FOLLOWING, follow).await.unwrap_or_else(|_| {
            let message = "the command took effect, but sub-agents of this session have not received it yet";
            Err(Fault::busy("subagents_follow", message).hint("they receive it before their next step"))
        })
    }

    async fn all_follow(&self, session: SessionId) -> Result<bool, Fault> {
        let (mut next, mut seen) = (Vec::from_iter(self.summary(session).await?), 0);
        while let Some(parent) = next.pop() {
            for child in &parent.children {
                let Some(child) = self.summary(*child).await? else {
                    continue;
                };
                let works = child.turn.is_some() && child.status.state != RunState::Faulted;
                let strict = child.mode.stricter(parent.mode) == child.mode;
                if works && (!strict || (parent.paused && !child.paused)) {
                    return Ok(false);
                }
                seen += 1;
                if seen > MOST {
                    return Ok(true);
                }
                next.push(child);
            }
        }
        Ok(true)
    }

    /// Refuses a mode or a budget beyond the caller's rights. Returns the settings that the session must still have when the
    /// change is carried out: what somebody tightens meanwhile, a caller without `approve` must not loosen.
    pub(crate) async fn may_have(
        &self,
        who: &Caller,
        session: Seen,
        mode: Option<PermissionMode>,
        budget: Option<&Budget>,
    ) -> Result<Option<Box<ShownSettings>>, Fault> {
        if mode.is_none() && budget.is_none() {
            return Ok(None);
        }
        let Some(row) = self.summary(*session).await? else {
            return Ok(None);
        };
        let rights = who.rights();
        if let Some(mode) = mode {
            rights.change_mode(row.mode, mode)?;
            self.below_parent(*session, &row, mode).await?;
        }
        if let Some(budget) = budget {
            rights.change_budget(&row.budget, budget)?;
        }
        Ok((!rights.may_loosen()).then(|| Box::new(ShownSettings::from(&row))))
    }

    /// Refuses a mode for a sub-agent that is looser than its parent's: it would not take effect (I7).
    async fn below_parent(
        &self,
        session: SessionId,
        row: &Summary,
        mode: PermissionMode,
    ) -> Result<(), Fault> {
        let above = match row.parent {
            Some(parent) => self.summary(parent).await?,
            None => None,
        };
        let Some(above) = above.filter(|above| above.children.contains(&session)) else {
            return Ok(());
        };
        if mode.stricter(above.mode) == mode {
            return Ok(());
        }
        let message = "a sub-agent cannot have a less strict mode than its parent session";
        Err(Fault::denied("looser_than_parent", message)
            .hint(format!("change the mode of {} first", above.session.short())))
    }

    /// All sub-agents that a session ever had, and theirs; the lowest last.
    pub(crate) async fn all_below(&self, session: SessionId) -> Result<Vec<SessionId>, Fault> {
        let (mut found, mut next) = (Vec::new(), vec![session]);
        while let Some(parent) = next.pop() {
            let had = self.summary(parent).await?.is_some_and(|row| row.subagents > 0);
            if !had {
                continue;
            }
            let children = self.children_of(parent).await?;
            if found.len() + children.len() > MOST {
                break;
            }
            found.extend(&children);
            next.extend(children);
        }
        Ok(found)
    }

    async fn children_of(&self, parent: SessionId) -> Result<Vec<SessionId>, Fault> {
        let (mut at, mut children) = (0, Vec::new());
        loop {
            let range = Range {
                max_bytes: PAGE_BYTES,
                ..Range::after(at)
            };
            let page = self
                .read(|done| Read::Load {
                    session: parent,
                    range,
                    done,
                })
                .await?;
            let Some((last, _)) = page.events.last() else {
                return Ok(children);
            };
            at = *last;
            for (_, line) in &page.events {
                let started = EncodedEvent::decode(line).ok().map(|event| event.body);
                if let Some(EventBody::SubagentStarted(started)) = started {
                    children.push(started.child);
                }
            }
        }
    }
}
