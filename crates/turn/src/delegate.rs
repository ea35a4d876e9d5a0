//! Sub-agents: a call that becomes a session of its own. The parent's log knows of each child from before its creation to
//! after its end, so whatever is lost on the way is asked for again; a child is told of only once.

use crate::apply::Refusal;
use crate::draft::Draft;
use crate::durable::Durable;
use crate::effect::{Effect, Reply};
use crate::limits::action;
use crate::open_call::OpenCall;
use crate::status::status;
use crate::words;
use agentd_protocol::{
    EffectClass, EndReason, Fault, LimitKind, LimitReached, Lineage, RunState, SandboxLevel, SessionId,
    Spent, Status, SubagentFinished, SubagentStarted, Timestamp, ToolCallId, ToolFinished, ToolOutcome,
    ToolStarted, ToolStatus, TurnError, WaitReason, child_of,
};
use serde::{Deserialize, Serialize};

/// Characters of a result that `subagent.finished` repeats.
const PREVIEW_CHARS: usize = 200;

/// What a sub-agent is to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delegation {
    /// In a few words.
    pub purpose: String,
    /// The whole task.
    pub prompt: String,
    /// The custom agent that does it.
    pub agent: Option<String>,
}

/// A child that has not ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Child {
    /// The call that it answers.
    pub tool_call: ToolCallId,
    /// What it is for.
    pub purpose: String,
    /// Since when.
    pub at: Timestamp,
}

/// How a child ended, as it tells its parent.
#[derive(Debug, Clone, PartialEq)]
pub struct Ended {
    /// How its last turn ended; none: it had none.
    pub reason: Option<EndReason>,
    /// Its last words.
    pub text: String,
    /// What went wrong.
    pub error: Option<TurnError>,
    /// What it and all below it spent.
    pub spent: Spent,
}

/// The place of an allowed call has come: it becomes a session, which is created when this is durable (I4).
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

/// A child, or who looked for it in vain, says how it ended.
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

/// After a restart, and whenever the session wakes: children that are waited for are looked for again, the others are
/// told to end once more.
pub(crate) fn recover(draft: &mut Draft<'_, '_>) {
    let children: Vec<_> = draft.durable().children.clone().into_iter().collect();
    for (child, Child { tool_call, .. }) in children {
        let waits = draft.durable().call(tool_call).is_some_and(OpenCall::is_open);
        if waits {
            send_off(draft, tool_call, child);
        } else {
            stop(draft, child, words::NOT_WANTED);
        }
    }
}

/// Nobody waits for a child any more.
pub(crate) fn stop(draft: &mut Draft<'_, '_>, child: SessionId, why: &str) {
    let reason = why.to_owned();
    draft.effect(Effect::StopChild { child, reason });
}

/// The calls of a turn that is being closed: those that became sessions end with them.
pub(crate) fn stop_of(draft: &mut Draft<'_, '_>, tool_call: ToolCallId, why: &str) {
    if let Some(child) = draft.durable().child_for(tool_call) {
        stop(draft, child, why);
    } else if draft.volatile().running.remove(&tool_call) {
        draft.effect(Effect::KillTool { tool_call });
    }
}

/// The call was started, and its child is open: it is waited for without anything that runs here.
pub(crate) fn is_child(durable: &Durable, call: &OpenCall) -> bool {
    call.is_running() && durable.child_for(call.id).is_some()
}

/// The status of a turn that waits for sub-agents alone.
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
    /// For whom this session works. A copy of a sub-agent's log works for nobody.
    #[must_use]
    pub fn lineage(&self) -> Option<(SessionId, &Lineage)> {
        let settings = self.settings.as_ref()?;
        let (parent, lineage) = (settings.parent?, settings.lineage.as_deref()?);
        (child_of(parent, lineage.tool_call) == self.session).then_some((parent, lineage))
    }

    /// How far it is from the root of its tree.
    #[must_use]
    pub fn depth(&self) -> u32 {
        self.lineage().map_or(0, |(_, lineage)| lineage.depth)
    }

    /// The top of its tree.
    #[must_use]
    pub fn root(&self) -> SessionId {
        self.lineage().map_or(self.session, |(_, lineage)| lineage.root)
    }

    /// The titles from the root down to this session; nothing for a root.
    #[must_use]
    pub fn path(&self) -> Vec<String> {
        let Some((_, lineage)) = self.lineage() else {
            return Vec::new();
        };
        let own = self.settings.as_ref().map(|settings| settings.title.clone());
        lineage.path.iter().cloned().chain(own).collect()
    }

    /// The session that a call became, while it has not ended.
    pub(crate) fn child_for(&self, tool_call: ToolCallId) -> Option<SessionId> {
        let mut children = self.children.iter();
        children
            .find(|(_, child)| child.tool_call == tool_call)
            .map(|(session, _)| *session)
    }

    /// What it spent itself.
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

    /// The children of the session that a log was copied from are not those of the copy.
    fn is_own(&self, child: SessionId, tool_call: ToolCallId) -> bool {
        child_of(self.session, tool_call) == child
    }
}
