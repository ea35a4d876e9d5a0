//! `approval.changes`: what has changed since a person was asked. The comparison before the call runs is the one that counts;
//! this one spares a person an answer that would be void.

use crate::api::{Api, READ, fault_of};
use crate::sight::{Caller, Seen};
use agentd_actor_kit::ToolMsg;
use agentd_protocol::{
    ApprovalChanges, ApprovalChangesParams, ApprovalId, Binding, EventBody, Fault, Seq, ToolCallId,
};
use agentd_store::{EncodedEvent, Range};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Events of one read.
const PAGE: u32 = 256;
/// The maximum number of reads in the search for the question.
const PAGES: usize = 40;

/// A question about a call, as far as it has been found.
#[derive(Debug, Default)]
struct Asked {
    call: Option<ToolCallId>,
    binding: Option<Binding>,
    proposed: Option<(String, Value)>,
}

impl Asked {
    /// Takes an event; the question comes before its call, as the newest event comes first. Returns whether this was all.
    fn take(&mut self, approval: ApprovalId, body: EventBody) -> bool {
        match body {
            EventBody::ApprovalAsked(asked) if asked.approval == approval => {
                self.call = asked.tool_call;
                self.binding = asked.binding;
                self.call.is_none() || self.binding.is_none()
            }
            EventBody::ToolProposed(proposed) if Some(proposed.tool_call) == self.call => {
                self.proposed = Some((proposed.name, proposed.input));
                true
            }
            _ => false,
        }
    }
}

impl Api {
    pub(crate) async fn approval_changes(
        &self,
        who: &Caller,
        params: ApprovalChangesParams,
    ) -> Result<ApprovalChanges, Fault> {
        let (approval, session) = self.approval(who, params.approval.trim()).await?;
        let asked = self.asked(session, approval).await?;
        let unknown = ApprovalChanges {
            compared: false,
            changes: Vec::new(),
        };
        let (Some(then), Some((name, input))) = (asked.binding, asked.proposed) else {
            return Ok(unknown);
        };
        let Ok(prepared) = self.parts.registry.prepare(&name, &input) else {
            return Ok(unknown);
        };
        let workdir = then.cwd.clone();
        let prepared = Box::new(prepared.within(Path::new(&workdir)));
        let detail = |done| ToolMsg::Detail {
            prepared,
            workdir: PathBuf::from(workdir),
            done,
        };
        let now = self.parts.tools.call(READ, detail).await.map_err(fault_of)?;
        Ok(ApprovalChanges {
            compared: true,
            changes: match now.binding {
                Ok(now) => then.changes(&now),
                Err(why) => vec![why],
            },
        })
    }

    /// Looks for the question and its call, from the end of the log.
    async fn asked(&self, session: Seen, approval: ApprovalId) -> Result<Asked, Fault> {
        let mut asked = Asked::default();
        let mut upto: Option<Seq> = None;
        for _ in 0..PAGES {
            let range = Range {
                upto,
                ..Range::last(PAGE)
            };
            let page = self.load(session, range).await?;
            for (seq, line) in &page.events {
                upto = Some(seq.saturating_sub(1));
                let event = EncodedEvent::decode(line);
                if event.is_ok_and(|event| asked.take(approval, event.body)) {
                    return Ok(asked);
                }
            }
            if !page.more {
                break;
            }
        }
        Ok(asked)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use agentd_protocol::{Stamp, Timestamp};
    use serde_json::json;

    #[test]
    fn the_call_of_the_question_is_found_and_no_other() {
        let mut stamp = Stamp::new(Timestamp(1_763_629_200_123), 1);
        let (approval, call, other) = (stamp.approval(), stamp.tool_call(), stamp.tool_call());
        let body = |value: Value| serde_json::from_value::<EventBody>(value).unwrap();
        let proposed = |call: ToolCallId| {
            body(
                json!({ "type": "tool.proposed", "tool_call": call, "name": "Edit", "input": {}, "index": 0, "effect": "write" }),
            )
        };
        let question = |binding: Value| {
            body(json!({
                "type": "approval.asked", "approval": approval, "kind": "tool", "tool_call": call, "title": "t", "detail": "d", "binding": binding,
            }))
        };
        let mut asked = Asked::default();
        assert!(!asked.take(approval, proposed(call)), "before its question");
        assert!(!asked.take(approval, question(json!({ "input": "1", "cwd": "/w" }))));
        assert!(!asked.take(approval, proposed(other)));
        assert!(asked.take(approval, proposed(call)));
        assert_eq!(asked.proposed, Some(("Edit".to_owned(), json!({}))));
        assert!(
            Asked::default().take(approval, question(Value::Null)),
            "nothing to compare"
        );
    }
}
