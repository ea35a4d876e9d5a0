//! Trees of agents as clients see them: the questions below a session, and its end with all that it started.

use crate::api::{Api, read_from};
use agentd_actor_kit::{Handle, Read, StoreMsg};
use agentd_prompt::stricter;
use agentd_protocol::{
    EventBody, Fault, FaultClass, OpenApproval, PermissionMode, Principal, SessionId, Summary,
};
use agentd_store::{EncodedEvent, Range};
use agentd_turn::Command;
use std::time::Duration;

/// Sessions of a tree that are looked at.
const MOST: usize = 10_000;
/// Sub-agents may take so long to end.
const ENDING: Duration = Duration::from_secs(20);
/// They are looked at so often meanwhile.
const LOOK: Duration = Duration::from_millis(50);
/// Bytes of a log that are read at once.
const PAGE_BYTES: u32 = 4 << 20;

/// The open questions of a session and of the sub-agents below it, the oldest first.
pub(crate) async fn open_in_tree(
    store: &Handle<StoreMsg>,
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
            rows.extend(child.map(|row| row.summary));
        }
    }
    open.sort_by_key(|approval| (approval.asked_at, approval.approval));
    Ok(open)
}

impl Api {
    /// Waits until all below a session have ended, and its parent knows that it did.
    pub(crate) async fn tree_ended(
        &self,
        session: SessionId,
        parent: Option<SessionId>,
    ) -> Result<(), Fault> {
        let ended = async {
            loop {
                let below = self.summary(session).await?;
                let above = match parent {
                    Some(parent) => self.summary(parent).await?,
                    None => None,
                };
                let open = below.is_some_and(|row| !row.children.is_empty());
                if !open && !above.is_some_and(|row| row.children.contains(&session)) {
                    return Ok(());
                }
                tokio::time::sleep(LOOK).await;
            }
        };
        tokio::time::timeout(ENDING, ended).await.unwrap_or_else(|_| {
            Err(Fault::busy(
                "subagents_ending",
                "sub-agents of this session have not ended yet",
            )
            .hint("try again in a moment"))
        })
    }

    async fn summary(&self, session: SessionId) -> Result<Option<Summary>, Fault> {
        let row = self.read(|done| Read::Row { session, done }).await?;
        Ok(row.map(|row| row.summary))
    }

    /// A session got another mode: where it is stricter, what works below the session has it from now on, too (I7).
    pub(crate) async fn narrow_below(
        &self,
        who: &Principal,
        session: SessionId,
        mode: PermissionMode,
    ) -> Result<(), Fault> {
        let (mut next, mut seen) = (vec![session], 0);
        while let Some(parent) = next.pop()
            && seen < MOST
        {
            for child in self
                .summary(parent)
                .await?
                .into_iter()
                .flat_map(|row| row.children)
            {
                seen += 1;
                next.push(child);
                let Some(row) = self.summary(child).await? else {
                    continue;
                };
                let mode = stricter(row.mode, mode);
                if mode == row.mode {
                    continue;
                }
                let command = Command::Update {
                    title: None,
                    model: None,
                    mode: Some(mode),
                    labels: None,
                    budget: None,
                };
                match self.route(who, child, command, None).await {
                    // It has ended, or nothing of it runs.
                    Err(fault) if matches!(fault.class, FaultClass::Conflict | FaultClass::NotFound) => {}
                    done => {
                        done?;
                    }
                }
            }
        }
        Ok(())
    }

    /// All sub-agents that a session ever had, with theirs; the lowest last.
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
