//! The trace of a loop: each request to a model, and the stages of each tool call with their durations.

use crate::shell::Shell;
use agentd_actor_kit::{CallStage, RequestSent, StageDone, Traced, Tracer};
use agentd_protocol::{
    ApprovalId, ApprovalKind, CallId, Decision, Event, EventBody, OpenApproval, Timestamp, ToolCallId,
    ToolStatus, VerdictKind,
};
use agentd_provider::ModelSpec;
use std::collections::BTreeMap;

/// The last messages of a request that the trace records; all of them in each request would be too many to read.
const LAST_MESSAGES: usize = 8;

/// The current stages of calls. Empty while tracing is off.
#[derive(Debug, Default)]
pub(crate) struct Track {
    stages: Tracer,
    since: BTreeMap<ToolCallId, Timestamp>,
    asking: BTreeMap<ApprovalId, ToolCallId>,
}

impl Track {
    pub(crate) fn new(stages: Tracer, open: &[OpenApproval]) -> Self {
        let mut track = Self {
            stages,
            ..Self::default()
        };
        if track.stages.is_on() {
            let calls = open.iter().filter(|open| open.kind == ApprovalKind::Tool);
            track.asking = calls
                .filter_map(|open| Some((open.approval, open.tool_call?)))
                .collect();
        }
        track
    }
}

impl Shell {
    /// A call enters a stage that does not start where the previous one ends.
    pub(crate) fn enters(&mut self, tool_call: ToolCallId) {
        if self.track.stages.is_on() {
            self.track.since.insert(tool_call, self.services.clock.now());
        }
    }

    /// A call leaves a stage.
    pub(crate) fn leaves(&mut self, tool_call: ToolCallId, stage: CallStage, outcome: &str) {
        if !self.track.stages.is_on() {
            return;
        }
        let now = self.services.clock.now();
        let since = self.track.since.insert(tool_call, now);
        let turn = self.core.agent.durable().turn.as_ref();
        self.track.stages.tell(Traced::Stage(StageDone {
            at: now,
            session: self.session,
            turn: turn.map(|turn| turn.id),
            step: turn.map_or(0, |turn| turn.steps),
            tool_call,
            stage,
            outcome: outcome.to_owned(),
            ms: since.map(|since| now.since_ms(since)),
        }));
    }

    /// A request goes to a model.
    pub(crate) fn sends(&self, (call, attempt): (CallId, u32), spec: &ModelSpec) {
        if !self.track.stages.is_on() {
            return;
        }
        let turn = self.core.agent.durable().turn.as_ref();
        let messages = self.core.transcript.messages();
        let before = messages.len().saturating_sub(LAST_MESSAGES);
        self.track.stages.tell(Traced::Request(Box::new(RequestSent {
            at: self.services.clock.now(),
            session: self.session,
            turn: turn.map(|turn| turn.id),
            step: turn.map_or(0, |turn| turn.steps),
            call,
            attempt,
            api_mode: serde_json::to_value(spec.dialect)
                .ok()
                .and_then(|name| name.as_str().map(str::to_owned))
                .unwrap_or_default(),
            base_url: spec.base_url.clone(),
            model: spec.model.clone(),
            temperature: spec.temperature,
            max_tokens: spec.max_output,
            messages: messages.len(),
            last: messages.iter().skip(before).cloned().collect(),
        })));
    }

    /// Derives stages from events.
    pub(crate) fn trace(&mut self, event: &Event) {
        if !self.track.stages.is_on() {
            return;
        }
        if let EventBody::ApprovalAsked(asked) = &event.body {
            let call = asked.tool_call.filter(|_| asked.kind == ApprovalKind::Tool);
            self.track
                .asking
                .extend(call.map(|tool_call| (asked.approval, tool_call)));
        } else if let EventBody::ApprovalDecided(decided) = &event.body {
            if let Some(tool_call) = self.track.asking.remove(&decided.approval) {
                self.leaves(tool_call, CallStage::Confirmation, word(decided.decision));
            }
        } else if let EventBody::ToolFinished(finished) = &event.body {
            let outcome = of_status(finished.outcome.status);
            self.leaves(finished.tool_call, CallStage::Formatting, outcome);
            self.track.since.remove(&finished.tool_call);
        } else if let EventBody::TurnFinished(_) = &event.body {
            self.track.since.clear();
            self.track.asking.clear();
        }
    }
}

/// The trace's word for a verdict.
pub(crate) const fn of_verdict(kind: VerdictKind) -> &'static str {
    match kind {
        VerdictKind::Allow => "allow",
        VerdictKind::Ask => "ask",
        VerdictKind::Deny => "deny",
    }
}

/// The trace's word for a result.
pub(crate) const fn of_status(status: ToolStatus) -> &'static str {
    match status {
        ToolStatus::Ok => "ok",
        ToolStatus::Error => "error",
        ToolStatus::Denied => "denied",
        ToolStatus::Interrupted => "interrupted",
        ToolStatus::Timeout => "timeout",
    }
}

const fn word(decision: Decision) -> &'static str {
    match decision {
        Decision::Allow => "allow",
        Decision::Deny => "deny",
        Decision::Answer => "answer",
        Decision::Expired => "expired",
        Decision::Withdrawn => "withdrawn",
    }
}
