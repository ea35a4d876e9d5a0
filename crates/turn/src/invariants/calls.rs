//! The tool calls of a turn, from the model's request to their one result.

use super::{Held, Violation};
use agentd_protocol::{
    ApprovalAsked, ApprovalDecided, ApprovalId, ApprovalKind, Block, Decision, Seq, ToolCallId, ToolFinished,
    ToolStarted, ToolStatus, VerdictGiven, VerdictKind,
};
use std::collections::BTreeMap;

/// The progress of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Named,
    Proposed,
    ToAsk,
    Asking(ApprovalId, ApprovalKind),
    Allowed,
    Refused,
    Said,
    Started { seq: Seq, repeatable: bool, runs: u32 },
}

/// The calls without a result.
#[derive(Debug, Clone, Default)]
pub(super) struct Calls(BTreeMap<ToolCallId, Stage>);

fn i3(what: &str) -> Held {
    Err(Violation::of("I3", what))
}

impl Calls {
    pub(super) fn named(&mut self, content: &[Block]) -> Held {
        for block in content {
            let Block::ToolUse { id, .. } = block else {
                continue;
            };
            let Ok(id) = id.parse() else {
                return i3("a call carries a foreign id");
            };
            if self.0.insert(id, Stage::Named).is_some() {
                return i3("two calls share an id");
            }
        }
        Ok(())
    }

    pub(super) fn proposed(&mut self, call: ToolCallId) -> Held {
        self.turns(call, |stage| (stage == Stage::Named).then_some(Stage::Proposed))
    }

    pub(super) fn judged(&mut self, given: &VerdictGiven) -> Held {
        let kind = given.verdict.kind;
        self.turns(given.tool_call, |stage| match (stage, kind) {
            (Stage::Proposed | Stage::ToAsk | Stage::Allowed, VerdictKind::Deny) => Some(Stage::Refused),
            (Stage::Proposed, VerdictKind::Allow) => Some(Stage::Allowed),
            (Stage::Proposed, VerdictKind::Ask) => Some(Stage::ToAsk),
            _ => None,
        })
    }

    pub(super) fn asked(&mut self, asked: &ApprovalAsked) -> Held {
        let Some(call) = asked.tool_call else {
            return Ok(());
        };
        let before = match asked.kind {
            ApprovalKind::Tool => Stage::ToAsk,
            ApprovalKind::Plan | ApprovalKind::Question | ApprovalKind::Limit => Stage::Allowed,
        };
        let asking = Stage::Asking(asked.approval, asked.kind);
        self.turns(call, |stage| (stage == before).then_some(asking))
    }

    pub(super) fn decided(&mut self, decided: &ApprovalDecided) -> Held {
        let asked = self.0.values_mut().find_map(|stage| match stage {
            Stage::Asking(approval, kind) if *approval == decided.approval => Some((*kind, stage)),
            _ => None,
        });
        let Some((kind, stage)) = asked else { return Ok(()) };
        *stage = match (kind, decided.decision) {
            (ApprovalKind::Tool, Decision::Allow) => Stage::Allowed,
            (ApprovalKind::Tool, Decision::Withdrawn) => Stage::ToAsk,
            (ApprovalKind::Tool, Decision::Answer) => {
                return Err(Violation::of("I7", "a call was answered, not allowed"));
            }
            (_, Decision::Withdrawn) => Stage::Allowed,
            (_, Decision::Deny | Decision::Expired) => Stage::Refused,
            (_, Decision::Allow | Decision::Answer) => Stage::Said,
        };
        Ok(())
    }

    pub(super) fn started(&mut self, started: &ToolStarted, seq: Seq) -> Held {
        let repeatable = started.idempotent;
        let runs = 0;
        match self.0.get_mut(&started.tool_call) {
            Some(stage @ (Stage::Allowed | Stage::Started { repeatable: true, .. })) => {
                *stage = Stage::Started {
                    seq,
                    repeatable,
                    runs,
                };
                Ok(())
            }
            Some(Stage::Started { .. }) => Err(Violation::of("I4", "a call was started twice")),
            Some(_) => Err(Violation::of("I7", "a call started without an allow verdict")),
            None => Err(Violation::of("I4", "a call was started that is not open")),
        }
    }

    pub(super) fn finished(&mut self, finished: &ToolFinished) -> Held {
        let ok = finished.outcome.status == ToolStatus::Ok;
        match self.0.remove(&finished.tool_call) {
            None => i3("a result belongs to no open call"),
            Some(Stage::Named | Stage::Asking(..)) => i3("a call has a result before it was decided"),
            Some(Stage::Proposed | Stage::ToAsk | Stage::Refused) if ok => {
                Err(Violation::of("I7", "a call succeeded without an allow verdict"))
            }
            Some(_) => Ok(()),
        }
    }

    pub(super) fn runs(&mut self, call: ToolCallId, durable: Seq) -> Held {
        match self.0.get_mut(&call) {
            Some(Stage::Started { seq, .. }) if *seq > durable => {
                Err(Violation::of("I4", "a tool runs before its intent is durable"))
            }
            Some(Stage::Started { runs, repeatable, .. }) => {
                *runs = runs.saturating_add(1);
                match *runs == 1 || *repeatable {
                    true => Ok(()),
                    false => Err(Violation::of("I4", "a tool runs twice for one intent")),
                }
            }
            Some(_) | None => Err(Violation::of("I4", "a tool runs without an intent")),
        }
    }

    pub(super) fn is_running(&self, call: ToolCallId) -> bool {
        matches!(self.0.get(&call), Some(Stage::Started { .. }))
    }

    pub(super) fn all_answered(&self, when: &str) -> Held {
        match self.0.keys().next() {
            None => Ok(()),
            Some(call) => i3(&format!("{when} while call {call} has no result")),
        }
    }

    fn turns(&mut self, call: ToolCallId, into: impl FnOnce(Stage) -> Option<Stage>) -> Held {
        let Some(stage) = self.0.get_mut(&call) else {
            return i3("an event concerns a call that is not open");
        };
        match into(*stage) {
            Some(next) => {
                *stage = next;
                Ok(())
            }
            None => Err(Violation::of(
                "I7",
                format!("an event of call {call} does not follow from {stage:?}"),
            )),
        }
    }
}
