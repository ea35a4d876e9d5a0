//! The lines of the side files for an event: pure, one event in, lines out.

use agentd_actor_kit::{RequestSent, StageDone, Traced};
use agentd_protocol::{
    ApprovalKind, Block, Event, EventBody, Message, ModelFinished, ToolFinished, TurnFinished, VerdictKind,
};
use serde_json::{Value, json};
use std::sync::Arc;

/// Characters of a message in the trace.
const MESSAGE_PREVIEW: usize = 200;
/// Characters of a model's answer in the trace.
const ANSWER_PREVIEW: usize = 500;

/// The records of `trace.jsonl` for an event: `{at, trace_id, session, step, event, data}` with the event names of a
/// ReAct loop (user_message, llm_request, llm_response, tool_call_parsed, …).
pub(crate) fn trace(event: &Event, step: Option<u32>) -> Vec<Value> {
    let record = |name: &str, data: Value| json!({"at": event.at, "trace_id": event.turn, "session": event.session, "step": step, "event": name, "data": data});
    match &event.body {
        EventBody::InputAccepted(input) => {
            vec![record(
                "user_message",
                json!({"input": input.input, "text": preview(&text(&input.content), MESSAGE_PREVIEW)}),
            )]
        }
        EventBody::IntentClassified(found) => vec![record(
            "intent_classified",
            json!({"label": found.label, "confidence": found.confidence, "reason": found.reason,
                "planning": found.planning, "source": found.source}),
        )],
        EventBody::ModelStarted(call) => vec![record(
            "llm_request",
            json!({"call": call.call, "attempt": call.attempt, "provider": call.provider, "model": call.model,
                "inputs": call.inputs.len(), "input_tokens_estimate": call.input_tokens_estimate}),
        )],
        EventBody::ModelFinished(answer) => vec![record("llm_response", answered(answer))],
        EventBody::ModelFailed(failure) => vec![record(
            "llm_response",
            json!({"call": failure.call, "attempt": failure.attempt, "error": failure.class, "message": failure.message,
                "retry_at": failure.retry_at, "remedy": failure.remedy}),
        )],
        EventBody::ToolProposed(call) => vec![record(
            "tool_call_parsed",
            json!({"tool_call": call.tool_call, "name": call.name, "input": preview(&call.input.to_string(), ANSWER_PREVIEW)}),
        )],
        EventBody::VerdictGiven(given) if given.verdict.kind == VerdictKind::Deny => vec![record(
            "policy_deny_cmd",
            json!({"tool_call": given.tool_call, "rule": given.verdict.rule, "reason": given.verdict.reason}),
        )],
        EventBody::HookFinished(hook) => vec![record(
            "hook",
            json!({"tool_call": hook.tool_call, "input": hook.prompt, "hook": hook.hook, "on": hook.event, "status": hook.status,
                "decision": hook.decision, "reason": hook.reason, "duration_ms": hook.duration_ms}),
        )],
        EventBody::ApprovalAsked(ask) if ask.kind == ApprovalKind::Tool => {
            vec![record(
                "confirm_exec",
                json!({"approval": ask.approval, "tool_call": ask.tool_call, "title": ask.title}),
            )]
        }
        EventBody::ToolFinished(done) => vec![
            record("tool_result", finished(done)),
            record(
                "tool_result_fed_back",
                json!({"tool_call": done.tool_call, "bytes": done.outcome.llm_text.len()}),
            ),
        ],
        EventBody::TurnFinished(turn) => ended(turn)
            .into_iter()
            .map(|(name, data)| record(name, data))
            .collect(),
        _ => Vec::new(),
    }
}

/// The record of something that the log does not contain.
pub(crate) fn traced(traced: &Traced) -> Value {
    match traced {
        Traced::Stage(done) => stage(done),
        Traced::Request(sent) => request(sent),
    }
}

/// The record of a request as sent: destination, settings, number of messages, and the last messages.
fn request(sent: &RequestSent) -> Value {
    let seen = |message: &Arc<Message>| {
        let (role, said) = (message.role, said(&message.content));
        json!({"role": role, "preview": preview(&said, MESSAGE_PREVIEW)})
    };
    let last: Vec<Value> = sent.last.iter().map(seen).collect();
    json!({"at": sent.at, "trace_id": sent.turn, "session": sent.session, "step": sent.step, "event": "llm_request_sent",
        "data": {"call": sent.call, "attempt": sent.attempt, "model": sent.model, "api_mode": sent.api_mode,
            "base_url": place(&sent.base_url), "temperature": sent.temperature, "max_tokens": sent.max_tokens,
            "messages_count": sent.messages, "last_messages": last}})
}

/// An address without possible credentials: its query, and a user before the host (I8).
fn place(url: &str) -> String {
    let bare = url.split(['?', '#']).next().unwrap_or_default();
    match bare.split_once("://") {
        Some((scheme, rest)) => {
            let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
            let host = host.rsplit('@').next().unwrap_or_default();
            format!("{scheme}://{host}/{path}")
        }
        None => bare.to_owned(),
    }
}

/// A message as text: its texts, calls and results.
fn said(content: &[Block]) -> String {
    let piece = |block: &Block| match block {
        Block::Text { text } => text.clone(),
        Block::ToolUse { name, input, .. } => format!("[{name} {input}]"),
        Block::ToolResult { content, .. } => format!("[result: {content}]"),
        Block::Image { media_type, .. } => format!("[{media_type}]"),
        Block::Thinking { .. } | Block::Unknown => String::new(),
    };
    content.iter().map(piece).collect()
}

/// The record of a finished call stage: discovery, permission, pre_hook, confirmation, execution, post_hook, formatting.
fn stage(done: &StageDone) -> Value {
    json!({"at": done.at, "trace_id": done.turn, "session": done.session, "step": done.step, "event": "stage_complete",
        "data": {"tool_call": done.tool_call, "stage": done.stage.name(), "outcome": done.outcome, "ms": done.ms}})
}

fn answered(answer: &ModelFinished) -> Value {
    let said = text(&answer.content);
    let calls: Vec<Value> = answer
        .content
        .iter()
        .filter_map(|block| match block {
            Block::ToolUse { name, input, .. } => {
                Some(json!({"name": name, "input": preview(&input.to_string(), MESSAGE_PREVIEW)}))
            }
            _ => None,
        })
        .collect();
    json!({"call": answer.call, "attempt": answer.attempt, "text_length": said.chars().count(),
        "text_preview": preview(&said, ANSWER_PREVIEW), "truncated": said.chars().count() > ANSWER_PREVIEW,
        "has_tool_call": !calls.is_empty(), "tool_call": calls, "stop_reason": answer.stop_reason, "usage": answer.usage})
}

fn finished(done: &ToolFinished) -> Value {
    json!({"tool_call": done.tool_call, "status": done.outcome.status, "duration_ms": done.outcome.duration_ms,
        "preview": preview(&done.outcome.llm_text, ANSWER_PREVIEW)})
}

fn ended(turn: &TurnFinished) -> Vec<(&'static str, Value)> {
    let mut records = Vec::new();
    if !turn.text.is_empty() {
        records.push(("final_text", json!({"text": preview(&turn.text, ANSWER_PREVIEW)})));
    }
    records.push(("stop_reason", json!({"reason": turn.reason, "steps": turn.steps, "tool_calls": turn.tool_calls, "error": turn.error})));
    records
}

/// The `audit.jsonl` record of a security-relevant event: who, what, why, when, trace id.
pub(crate) fn audit(cursor: u64, event: &Event) -> Option<Value> {
    let (what, why) = match &event.body {
        EventBody::SessionCreated(s) => (
            json!({"title": s.title, "workdir": s.workdir, "model": s.model, "mode": s.mode}),
            Value::Null,
        ),
        // Only the author and the source of an import are known. Its lines are unverified, so the audit file omits them.
        EventBody::SessionImported(i) => (
            json!({"from": i.from, "source": i.source, "sha256": i.sum, "events": i.events}),
            Value::Null,
        ),
        EventBody::SessionUpdated(change) => (json!(change), Value::Null),
        EventBody::SessionClosed(closed) => (Value::Null, json!(closed.reason)),
        EventBody::SessionPaused(paused) => (Value::Null, json!(paused.reason)),
        EventBody::SessionResumed(resumed) => (Value::Null, json!(resumed.reason)),
        EventBody::InputAccepted(input) => (
            json!({"input": input.input, "delivery": input.delivery}),
            Value::Null,
        ),
        EventBody::VerdictGiven(given) => (
            json!({"tool_call": given.tool_call, "verdict": given.verdict.kind}),
            json!({"rule": given.verdict.rule, "reason": given.verdict.reason}),
        ),
        EventBody::ApprovalAsked(ask) => (json!({"approval": ask.approval, "title": ask.title}), Value::Null),
        EventBody::ApprovalEscalated(e) => (json!({"approval": e.approval, "level": e.level}), Value::Null),
        EventBody::ApprovalDecided(d) => (
            json!({"approval": d.approval, "decision": d.decision, "scope": d.scope}),
            json!(d.message),
        ),
        EventBody::ToolStarted(tool) => (
            json!({"tool_call": tool.tool_call, "title": tool.title, "effect": tool.effect, "sandbox": tool.sandbox}),
            Value::Null,
        ),
        EventBody::ToolFinished(done) => (
            json!({"tool_call": done.tool_call, "status": done.outcome.status}),
            Value::Null,
        ),
        EventBody::TurnFinished(turn) => (
            json!({"steps": turn.steps, "tool_calls": turn.tool_calls}),
            json!(turn.reason),
        ),
        EventBody::TransferStarted(transfer) => (json!(transfer), Value::Null),
        EventBody::TransferFinished(done) => (
            json!({"started": done.started, "files": done.files, "commit": done.commit}),
            json!(done.error),
        ),
        EventBody::RuleAdded(rule) => (json!({"rule": rule.rule}), json!({"approval": rule.approval})),
        EventBody::RuleRemoved(rule) => (json!({"rule": rule.rule}), Value::Null),
        EventBody::SessionRecovered(recovered) => (json!(recovered.closed), Value::Null),
        _ => return None,
    };
    Some(
        json!({"at": event.at, "who": event.by, "session": event.session, "seq": event.seq, "event": event.body.kind(),
        "what": what, "why": why, "trace_id": event.turn, "cursor": cursor}),
    )
}

fn text(content: &[Block]) -> String {
    let texts = content.iter().filter_map(|block| match block {
        Block::Text { text } => Some(text.as_str()),
        _ => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}

fn preview(text: &str, chars: usize) -> String {
    match text.char_indices().nth(chars) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use agentd_protocol::{
        EVENT_VERSION, Principal, Role, SessionId, SessionPaused, Stamp, Timestamp, Verdict, VerdictGiven,
    };

    fn event(body: EventBody) -> Event {
        let at = Timestamp(1_763_629_200_123);
        Event {
            v: EVENT_VERSION,
            session: SessionId::NIL,
            seq: 3,
            at,
            by: Principal::user("ana"),
            turn: None,
            body,
        }
    }

    #[test]
    fn an_audit_line_records_who_what_why_and_when() {
        let line = audit(
            7,
            &event(
                SessionPaused {
                    reason: "lunch".into(),
                }
                .into(),
            ),
        )
        .unwrap();
        let wanted = json!({"at": "2025-11-20T09:00:00.123Z", "who": "user:ana", "session": SessionId::NIL, "seq": 3,
            "event": "session.paused", "what": null, "why": "lunch", "trace_id": null, "cursor": 7});
        assert_eq!(line, wanted);
    }

    #[test]
    fn a_denial_is_traced_and_an_allowance_is_not() {
        let mut stamp = Stamp::new(Timestamp(1), 1);
        let given = |kind| {
            let verdict = Verdict {
                kind,
                rule: "Bash(sudo:*)".into(),
                reason: "no".into(),
            };
            event(
                VerdictGiven {
                    tool_call: stamp.tool_call(),
                    verdict,
                }
                .into(),
            )
        };
        let [denied, allowed] = [VerdictKind::Deny, VerdictKind::Allow].map(given);
        assert_eq!(trace(&denied, Some(2))[0]["event"], "policy_deny_cmd");
        assert_eq!(trace(&denied, Some(2))[0]["step"], 2);
        assert_eq!(trace(&allowed, Some(2)), Vec::<Value>::new());
    }

    #[test]
    fn a_classified_intent_is_traced_with_its_reason() {
        let found = json!({"type": "intent.classified", "label": "CODING_TASK", "confidence": 0.9, "reason": "fix",
            "planning": true, "source": "heuristics"});
        let records = trace(&event(serde_json::from_value(found).unwrap()), Some(1));
        let data = json!({"label": "CODING_TASK", "confidence": 0.9, "reason": "fix", "planning": true,
            "source": "heuristics"});
        assert_eq!(
            (records.len(), &records[0]["event"]),
            (1, &json!("intent_classified"))
        );
        assert_eq!(records[0]["data"], data);
    }

    #[test]
    fn a_stage_gives_one_record() {
        let done = StageDone {
            at: Timestamp(1_763_629_200_123),
            session: SessionId::NIL,
            turn: None,
            step: 2,
            tool_call: agentd_protocol::ToolCallId::NIL,
            stage: agentd_actor_kit::CallStage::PreHook,
            outcome: "deny".into(),
            ms: Some(5),
        };
        let data = json!({"tool_call": agentd_protocol::ToolCallId::NIL, "stage": "pre_hook", "outcome": "deny", "ms": 5});
        let wanted = json!({"at": "2025-11-20T09:00:00.123Z", "trace_id": null, "session": SessionId::NIL, "step": 2,
            "event": "stage_complete", "data": data});
        assert_eq!(stage(&done), wanted);
    }

    #[test]
    fn a_request_record_has_address_settings_and_last_messages() {
        let message = |role, text: String| {
            let content = vec![Block::text(text)];
            Arc::new(Message { role, content })
        };
        let sent = Traced::Request(Box::new(RequestSent {
            at: Timestamp(1_763_629_200_123),
            session: SessionId::NIL,
            turn: None,
            step: 2,
            call: agentd_protocol::CallId::NIL,
            attempt: 1,
            api_mode: "openai-chat".into(),
            base_url: "http://me:secret@127.0.0.1:1/v1?key=secret".into(),
            model: "m".into(),
            temperature: Some(0.2),
            max_tokens: 8_192,
            messages: 12,
            last: vec![
                message(Role::User, "go ".repeat(100)),
                message(Role::Assistant, "on".into()),
            ],
        }));
        let record = traced(&sent);
        assert_eq!(record["event"], "llm_request_sent");
        let last = json!([{"role": "user", "preview": format!("{}go…", "go ".repeat(66))}, {"role": "assistant", "preview": "on"}]);
        let wanted = json!({"call": agentd_protocol::CallId::NIL, "attempt": 1, "model": "m", "api_mode": "openai-chat",
            "base_url": "http://127.0.0.1:1/v1", "temperature": 0.2, "max_tokens": 8_192, "messages_count": 12,
            "last_messages": last});
        assert_eq!(record["data"], wanted);
    }

    #[test]
    fn a_preview_is_cut_at_a_character_boundary() {
        assert_eq!(preview("日本語", 2), "日本…");
        assert_eq!(preview("日本", 2), "日本");
    }
}
