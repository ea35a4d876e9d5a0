//! Finds the turn that takes an input, and collects its result and tool calls.

use crate::exit::Exit;
use crate::render::{tidy_usd, word};
use agentd_protocol::{
    EndReason, Event, EventBody, InputId, SessionId, ToolCallId, ToolStatus, TurnError, TurnFinished, TurnId,
    Usage,
};
use serde::Serialize;
use serde_json::Value;

/// Watches for the end of the turn that takes an input.
#[derive(Debug)]
pub(crate) struct TurnWatch {
    session: SessionId,
    input: InputId,
    turn: Option<TurnId>,
    calls: Vec<CallResult>,
}

/// One tool call of the result object.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct CallResult {
    #[serde(skip)]
    id: ToolCallId,
    name: String,
    input: Value,
    result: Option<String>,
    status: Option<String>,
}

impl CallResult {
    fn is_denied(&self) -> bool {
        self.status.as_deref() == Some(word(&ToolStatus::Denied).as_str())
    }
}

/// The result object of `run -o json`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct RunResult {
    pub(crate) session: SessionId,
    pub(crate) turn: Option<TurnId>,
    pub(crate) success: bool,
    pub(crate) reason: EndReason,
    pub(crate) text: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<TurnError>,
    pub(crate) steps: u32,
    pub(crate) tool_calls: Vec<CallResult>,
    /// The number of calls denied by a rule, by a person, or because no person could be asked.
    pub(crate) denied_calls: usize,
    pub(crate) usage: Usage,
    pub(crate) cost_usd: f64,
}

impl RunResult {
    /// The exit code of the turn.
    pub(crate) const fn exit(&self) -> Exit {
        match self.reason {
            EndReason::Completed if !self.success => Exit::TURN_FAILED,
            reason => Exit::of_turn(reason),
        }
    }

    /// What a script should know if calls were denied because nobody was there to ask.
    pub(crate) fn about_denied(&self) -> Option<String> {
        let calls = match self.denied_calls {
            0 => return None,
            1 => "1 call was denied".to_owned(),
            many => format!("{many} calls were denied"),
        };
        Some(format!(
            "note: {calls}; here is nobody to ask. To let such calls run, use --allow RULE or --mode accept-edits. To answer \
             yourself, use run -d and then `agentctl approvals`. With --fail-on-deny, this exits with 7"
        ))
    }

    /// Like `exit`, but a denied call has an exit code of its own.
    pub(crate) fn exit_on_deny(&self) -> Exit {
        let otherwise_well = self.exit() == Exit::OK || self.reason == EndReason::Denied;
        if self.denied_calls > 0 && otherwise_well {
            Exit::BLOCKED
        } else {
            self.exit()
        }
    }
}

impl TurnWatch {
    pub(crate) const fn new(session: SessionId, input: InputId) -> Self {
        Self {
            session,
            input,
            turn: None,
            calls: Vec::new(),
        }
    }

    /// The turn, once it has begun.
    pub(crate) const fn turn(&self) -> Option<TurnId> {
        self.turn
    }

    /// The input, while it is still queued.
    pub(crate) const fn waits(&self) -> Option<InputId> {
        if self.turn.is_none() {
            Some(self.input)
        } else {
            None
        }
    }

    /// Takes in an event; returns the result when the turn has ended.
    pub(crate) fn observe(&mut self, event: &Event) -> Option<RunResult> {
        if let Some(result) = self.joining(event) {
            return Some(result);
        }
        if self.turn.is_none() || event.turn != self.turn {
            return None;
        }
        if let EventBody::ToolProposed(call) = &event.body {
            self.calls.push(CallResult {
                id: call.tool_call,
                name: call.name.clone(),
                input: call.input.clone(),
                result: None,
                status: None,
            });
        } else if let EventBody::ToolFinished(done) = &event.body {
            if let Some(call) = self.calls.iter_mut().find(|call| call.id == done.tool_call) {
                call.result = Some(done.outcome.llm_text.clone());
                call.status = Some(word(&done.outcome.status));
            }
        } else if let EventBody::TurnFinished(finished) = &event.body {
            return Some(self.finished(finished));
        }
        None
    }

    /// Records the turn that takes the input. Returns a result if no turn ever will.
    fn joining(&mut self, event: &Event) -> Option<RunResult> {
        let joined = if let EventBody::TurnStarted(started) = &event.body {
            started.inputs.contains(&self.input)
        } else if let EventBody::ModelStarted(started) = &event.body {
            started.inputs.contains(&self.input)
        } else {
            false
        };
        if joined {
            self.turn = event.turn;
        }
        let taken_back = matches!(&event.body, EventBody::InputCancelled(taken) if taken.input == self.input);
        if let EventBody::InputCancelled(taken) = &event.body
            && let Some(reason) = taken.reason.as_ref().filter(|_| taken_back)
        {
            return Some(self.not_let_in(reason));
        }
        let closed = matches!(&event.body, EventBody::SessionClosed(_)) && self.turn.is_none();
        (taken_back || closed).then(|| self.never_ran())
    }

    fn finished(&mut self, finished: &TurnFinished) -> RunResult {
        RunResult {
            session: self.session,
            turn: self.turn,
            success: finished.succeeded(),
            reason: finished.reason,
            text: finished.text.clone(),
            error: finished.error.clone(),
            steps: finished.steps,
            denied_calls: self.calls.iter().filter(|call| call.is_denied()).count(),
            tool_calls: std::mem::take(&mut self.calls),
            usage: finished.usage,
            cost_usd: tidy_usd(finished.cost_usd),
        }
    }

    /// A hook rejected the input.
    fn not_let_in(&self, reason: &str) -> RunResult {
        RunResult {
            reason: EndReason::Denied,
            error: Some(TurnError {
                class: "denied".to_owned(),
                message: format!("the input was rejected: {reason}"),
            }),
            ..self.never_ran()
        }
    }

    /// The input was taken back, or the session closed, before a turn took it.
    fn never_ran(&self) -> RunResult {
        RunResult {
            session: self.session,
            turn: None,
            success: false,
            reason: EndReason::Cancelled,
            text: String::new(),
            error: None,
            steps: 0,
            tool_calls: Vec::new(),
            denied_calls: 0,
            usage: Usage::default(),
            cost_usd: 0.0,
        }
    }
}
