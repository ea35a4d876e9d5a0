//! What is told. Pure.

use agentd_protocol::{Event, EventBody};
use agentd_text::{digest, redact, redact_known};
use serde_json::{Value, json};

/// The longest detail; the inbox has all of it.
const MAX_DETAIL: usize = 16 << 10;

/// One thing to tell.
#[derive(Debug, Clone, PartialEq)]
pub struct Note {
    /// The same for each try, and for nothing else.
    pub key: String,
    /// 0: somebody is asked. From 1: nobody answered in time, this often.
    pub level: u32,
    /// The JSON object.
    pub body: String,
}

impl Note {
    /// What an event has to tell, if anything.
    #[must_use]
    pub fn of(event: &Event) -> Option<Self> {
        let (approval, level, what) = match &event.body {
            EventBody::ApprovalAsked(asked) => (
                asked.approval,
                0,
                json!({
                    "kind": asked.kind,
                    "tool_call": asked.tool_call,
                    "title": safe(&asked.title),
                    "detail": safe(&asked.detail),
                    // All of it, also where the detail is cut.
                    "bytes": asked.detail.len(),
                    "sha256": digest(&asked.detail),
                    "whole": asked.detail.len() <= MAX_DETAIL,
                    "risks": asked.about.risks.iter().map(|risk| safe(risk)).collect::<Vec<_>>(),
                    "rule": asked.about.rule,
                    "directory": asked.about.directory,
                    "watches": asked.about.watches,
                    "said_by_model": asked.about.said.as_deref().map(safe),
                    "choices": asked.choices,
                    "scopes": asked.scopes,
                    "expires_at": asked.expires_at,
                }),
            ),
            EventBody::ApprovalEscalated(escalated) => (
                escalated.approval,
                escalated.level,
                json!({ "expires_at": escalated.expires_at }),
            ),
            _ => return None,
        };
        let mut body = json!({
            "type": event.body.kind(),
            "session": event.session,
            "seq": event.seq,
            "at": event.at,
            "turn": event.turn,
            "approval": approval,
            "level": level,
            "answer_with": format!("agentctl approve {}", approval.short()),
        });
        if let (Value::Object(body), Value::Object(what)) = (&mut body, what) {
            body.extend(what);
        }
        Some(Self {
            key: format!("{approval}.{level}"),
            level,
            body: body.to_string(),
        })
    }
}

fn safe(text: &str) -> String {
    let known = redact_known(text);
    let mut safe = redact(&known).into_owned();
    if safe.len() > MAX_DETAIL {
        safe.truncate(safe.floor_char_boundary(MAX_DETAIL));
        safe.push('…');
    }
    safe
}
