//! An independent record of what was promised: the gate's verdicts, the runs of tools, the answers, the crashes.

use agentd_protocol::{Event, EventBody, InputId, SessionId, Timestamp, ToolCallId, VerdictKind};
use agentd_turn::{Held, Reply, Violation};
use std::collections::BTreeMap;

/// A session is faulted when its loop crashes this often
const CRASHES: usize = 3;
/// within this time.
const WITHIN_MS: u64 = 300_000;

/// The data that the checks compare against.
#[derive(Debug, Default)]
pub(crate) struct Book {
    /// Keyed by session as well: a fork contains the same calls, but its gate has not judged them yet.
    gate: BTreeMap<(SessionId, ToolCallId), VerdictKind>,
    /// The number of runs of each call, across all incarnations.
    runs: BTreeMap<(SessionId, ToolCallId), u32>,
    /// The answer given for each key.
    keys: BTreeMap<String, InputId>,
    /// When the loops of each session crashed since it was last faulted.
    crashes: BTreeMap<SessionId, Vec<Timestamp>>,
    /// The number of answered commands, for statistics.
    pub(crate) answered: u64,
}

impl Book {
    pub(crate) fn gate_says(&mut self, session: SessionId, call: ToolCallId, kind: VerdictKind) {
        self.gate.insert((session, call), kind);
    }

    /// I7: the log allows nothing that the gate did not allow.
    pub(crate) fn sees(&self, event: &Event) -> Held {
        let EventBody::VerdictGiven(given) = &event.body else {
            return Ok(());
        };
        let said = self.gate.get(&(event.session, given.tool_call)).copied();
        let kind = given.verdict.kind;
        if kind == VerdictKind::Deny || said == Some(kind) {
            return Ok(());
        }
        let what = format!("the log says {kind:?} of a call, the gate said {said:?}");
        Err(Violation::of("I7", what))
    }

    /// I4: a call that must not be repeated runs once, whatever crashed in between. I7: this node's gate was asked
    /// about it in this session.
    pub(crate) fn runs(&mut self, session: SessionId, call: ToolCallId, repeatable: bool) -> Held {
        if !self.gate.contains_key(&(session, call)) {
            let what = format!("call {} runs, and the gate never judged it", call.short());
            return Err(Violation::of("I7", what));
        }
        let runs = self.runs.entry((session, call)).or_default();
        *runs += 1;
        match *runs == 1 || repeatable {
            true => Ok(()),
            false => Err(Violation::of("I4", format!("call {} ran twice", call.short()))),
        }
    }

    /// I1: the same key gets the same answer.
    pub(crate) fn answers(&mut self, key: &str, reply: &Reply) -> Held {
        let Reply::Sent { input, .. } = reply else {
            return Ok(());
        };
        let known = *self.keys.entry(key.to_owned()).or_insert(*input);
        match known == *input {
            true => Ok(()),
            false => Err(Violation::of("I1", format!("key {key} made two inputs"))),
        }
    }

    pub(crate) fn crashed(&mut self, session: SessionId, now: Timestamp) {
        self.crashes.entry(session).or_default().push(now);
    }

    /// I6: only its own crashes fault a session.
    pub(crate) fn is_faulted(&mut self, session: SessionId, now: Timestamp) -> Held {
        let crashes = self.crashes.remove(&session).unwrap_or_default();
        let recent = crashes.iter().filter(|at| now.since_ms(**at) <= WITHIN_MS);
        match recent.count() {
            CRASHES.. => Ok(()),
            few => Err(Violation::of("I6", format!("{few} crashes fault a session"))),
        }
    }

    /// The number of tools that ran.
    pub(crate) fn ran(&self) -> u64 {
        self.runs.values().map(|runs| u64::from(*runs)).sum()
    }
}
