//! The content of a notification. Pure.

use agentd_protocol::{Event, EventBody};
use agentd_text::{digest, redact, redact_known};
use serde_json::{Value, json};

/// The maximum size of the detail; the inbox has the whole text.
const MAX_DETAIL: usize = 16 << 10;

/// One notification.
#[derive(Debug, Clone, PartialEq)]
pub struct Note {
    /// Unique per notification; retries have the same key.
    pub key: String,
    /// 0: an approval was requested. From 1: the number of times that it was not answered in time.
    pub level: u32,
    /// The JSON object.
    pub body: String,
}

impl Note {
    /// The notification of an event, if it has one.
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
                    // The size of the whole detail, even if it is cut here.
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
