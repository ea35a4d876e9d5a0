//! Sub-agents: a call that becomes a session of its own. The parent's log records each child from before its creation
//! to after its end, so whatever is lost on the way is requested again; each child's end is recorded only once.

use crate::calls::open_call::OpenCall;
use crate::draft::Draft;
use crate::durable::Durable;
use crate::durable::apply::Refusal;
use crate::durable::status::status;
use crate::effect::{Effect, Reply};
use crate::steps::limits::action;
use crate::words;
use agentd_protocol::{
    EffectClass, EndReason, Fault, LimitKind, LimitReached, Lineage, RunState, SandboxLevel, SessionId,
    Spent, Status, SubagentFinished, SubagentStarted, Timestamp, ToolCallId, ToolFinished, ToolOutcome,
    ToolStarted, ToolStatus, TurnError, WaitReason, child_of,
};
use serde::Serialize;

/// The most characters of a result that `subagent.finished` repeats.
const PREVIEW_CHARS: usize = 200;

/// The task of a sub-agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delegation {
    /// The purpose in a few words.
    pub purpose: String,
    /// The whole task.
    pub prompt: String,
    /// The name of the custom agent that does it.
    pub agent: Option<String>,
}

/// A child that has not ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Child {
    /// The call that it answers.
    pub tool_call: ToolCallId,
    /// Its purpose.
    pub purpose: String,
    /// When it was started.
    pub at: Timestamp,
}

/// How a child ended, as reported to its parent.
#[derive(Debug, Clone, PartialEq)]
pub struct Ended {
    /// How its last turn ended; `None` if it had no turn.
    pub reason: Option<EndReason>,
    /// Its last words.
    pub text: String,
    /// What went wrong, if anything.
    pub error: Option<TurnError>,
    /// The spending of the child and its descendants.
    pub spent: Spent,
}

/// Turns an allowed call into a session, which is created once this is durable (I4).
pub(crate) fn start(
    draft: &mut Draft<'_, '_>,
    tool_call: ToolCallId,
    title: String,
    sandbox: SandboxLevel,
    purpose: String,
) {
    let deepest = draft.config().max_depth;
    if draft.durable().depth() >= deepest {
        draft.emit(LimitReached {
            limit: LimitKind::Depth,
            value: f64::from(deepest),
            action: action::STOP.to_owned(),
        });
        let outcome = ToolOutcome::text(ToolStatus::Error, words::too_deep(deepest)).coded("E_DEPTH");
        return draft.emit(ToolFinished { tool_call, outcome });
    }
    let child = child_of(draft.durable().session, tool_call);
    draft.emit(ToolStarted {
        tool_call,
        title,
        effect: EffectClass::None,
        sandbox,
        idempotent: false,
    });
    draft.emit(SubagentStarted {
        tool_call,
        child,
        purpose,
    });
    send_off(draft, tool_call, child);
}

fn send_off(draft: &mut Draft<'_, '_>, tool_call: ToolCallId, child: SessionId) {
    let Some(call) = draft.durable().call(tool_call) else {
        return;
    };
    let (name, input) = (call.name.clone(), call.input.clone());
    draft.effect(Effect::StartChild {
        tool_call,
        child,
        name,
        input,
    });
}

/// Handles a child's end, reported by the child or by the sender that could not find it.
pub(crate) fn ended(draft: &mut Draft<'_, '_>, child: SessionId, ended: &Ended) -> Result<Reply, Fault> {
    let Some(Child { tool_call, at, .. }) = draft.durable().children.get(&child).cloned() else {
        let message = format!("this session does not wait for {}", child.short());
        return Err(Fault::conflict("not_awaited", message));
    };
    let waits = draft.durable().call(tool_call).is_some_and(OpenCall::is_open);
    draft.emit(SubagentFinished {
        tool_call,
        child,
        reason: ended.reason,
        result: ended.text.chars().take(PREVIEW_CHARS).collect(),
        spent: ended.spent,
    });
    if waits {
        let mut outcome = outcome(child, ended);
        outcome.duration_ms = draft.now().since_ms(at);
        draft.emit(ToolFinished { tool_call, outcome });
    }
    Ok(Reply::Done { seq: 0 })
}

fn outcome(child: SessionId, ended: &Ended) -> ToolOutcome {
    let status = match ended.reason {
        Some(EndReason::Completed) => ToolStatus::Ok,
        Some(EndReason::Cancelled) => ToolStatus::Interrupted,
        Some(_) | None => ToolStatus::Error,
    };
    let text = words::of_child(child, ended);
    let outcome = ToolOutcome::text(status, text);
    if status == ToolStatus::Error {
        outcome.coded("E_SUBAGENT")
    } else {
        outcome
    }
}

/// After a restart and at every wake: looks again for children whose results are awaited, and tells the others once
/// more to end.
pub(crate) fn recover(draft: &mut Draft<'_, '_>) {
    let children: Vec<_> = draft.durable().children.clone().into_iter().collect();
    for (child, Child { tool_call, .. }) in children {
        let waits = draft.durable().call(tool_call).is_some_and(OpenCall::is_open);
        if waits && draft.seen().draining {
            // It is here only to end its work: the child is not needed, or continues where its files are.
        } else if waits {
            send_off(draft, tool_call, child);
        } else {
            stop(draft, child, words::NOT_WANTED);
        }
    }
}

/// Stops a child whose result is no longer needed.
pub(crate) fn stop(draft: &mut Draft<'_, '_>, child: SessionId, why: &str) {
    let reason = why.to_owned();
    draft.effect(Effect::StopChild { child, reason });
}

/// Stops the sub-agent of a call whose turn is being closed.
pub(crate) fn stop_of(draft: &mut Draft<'_, '_>, tool_call: ToolCallId, why: &str) {
    if let Some(child) = draft.durable().child_for(tool_call) {
        stop(draft, child, why);
    } else if draft.volatile().running.remove(&tool_call) {
        draft.effect(Effect::KillTool { tool_call });
    }
}

/// The call was started and its child is open: it is waiting, but nothing runs in this session.
pub(crate) fn is_child(durable: &Durable, call: &OpenCall) -> bool {
    call.is_running() && durable.child_for(call.id).is_some()
}

/// The status of a turn that waits only for sub-agents.
pub(crate) fn waiting(durable: &Durable) -> Option<Status> {
    let waited = durable.open_calls().filter_map(|call| durable.child_for(call.id));
    let mut waited = waited.filter_map(|child| durable.children.get(&child));
    let first = waited.next()?;
    let more = match waited.count() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let reason = format!("a sub-agent works: {}{more}", first.purpose);
    Some(status(RunState::Waiting(WaitReason::Child), &reason, first.at))
}

impl Durable {
    /// The session that this one works for. A fork of a sub-agent has no parent to work for.
    #[must_use]
    pub fn lineage(&self) -> Option<(SessionId, &Lineage)> {
        let settings = self.settings.as_ref()?;
        let (parent, lineage) = (settings.parent?, settings.lineage.as_deref()?);
        (child_of(parent, lineage.tool_call) == self.session).then_some((parent, lineage))
    }

    /// Its depth below the root of its tree.
    #[must_use]
    pub fn depth(&self) -> u32 {
        self.lineage().map_or(0, |(_, lineage)| lineage.depth)
    }

    /// The root of its tree.
    #[must_use]
    pub fn root(&self) -> SessionId {
        self.lineage().map_or(self.session, |(_, lineage)| lineage.root)
    }

    /// The titles from the root down to this session; empty for a root.
    #[must_use]
    pub fn path(&self) -> Vec<String> {
        let Some((_, lineage)) = self.lineage() else {
            return Vec::new();
        };
        let own = self.settings.as_ref().map(|settings| settings.title.clone());
        lineage.path.iter().cloned().chain(own).collect()
    }

    /// The session that a call became, until that session ends.
    pub(crate) fn child_for(&self, tool_call: ToolCallId) -> Option<SessionId> {
        let mut children = self.children.iter();
        children
            .find(|(_, child)| child.tool_call == tool_call)
            .map(|(session, _)| *session)
    }

    /// The spending of the session itself, without its sub-agents.
    #[must_use]
    pub fn spent(&self, now: Timestamp) -> Spent {
        Spent {
            tokens: self.totals.usage.total(),
            usd: self.totals.cost_usd,
            time_ms: self.spent_ms(now),
            steps: self.totals.steps,
        }
    }

    pub(crate) fn subagent_started(
        &mut self,
        started: &SubagentStarted,
        at: Timestamp,
    ) -> Result<(), Refusal> {
        let call = self.call(started.tool_call).ok_or("no such call runs")?;
        if !call.is_running() {
            return Err("the call was not started (I4)");
        }
        if self.child_for(started.tool_call).is_some() {
            return Err("the call is a session already");
        }
        if !self.is_own(started.child, started.tool_call) {
            return Ok(());
        }
        let child = Child {
            tool_call: started.tool_call,
            purpose: started.purpose.clone(),
            at,
        };
        self.children.insert(started.child, child);
        self.subagents = self.subagents.saturating_add(1);
        Ok(())
    }

    pub(crate) fn subagent_finished(&mut self, finished: &SubagentFinished) -> Result<(), Refusal> {
        if !self.is_own(finished.child, finished.tool_call) {
            return Ok(());
        }
        let child = self.children.remove(&finished.child);
        child.ok_or("no such session is open, or it was told of before")?;
        self.below = self.below.and(finished.spent);
        Ok(())
    }

    /// Whether a child belongs to this session. A fork does not own the children of the log that it was copied from.
    fn is_own(&self, child: SessionId, tool_call: ToolCallId) -> bool {
        child_of(self.session, tool_call) == child
    }
}
