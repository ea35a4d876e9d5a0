//! Single events as lines: what failed, what was decided, how a turn ended.

use crate::amount::{clock_time, count, dollars, span, tokens, word};
use crate::live::text_of;
use crate::transcript::{Line, Tag};
use agentd_protocol::{
    ApprovalDecided, ApprovalEscalated, Basis, Block, Decision, ModelFailed, Principal, Remedy, RequestItem,
    Scope, Timestamp, TurnFinished,
};

/// An input's text, and its images by their types.
pub fn input_text(content: &[Block]) -> String {
    let mut text = text_of(content);
    for block in content {
        if let Block::Image { media_type, .. } = block {
            text.push_str(&format!(" [image: {media_type}]"));
        }
    }
    text
}

/// A failed attempt; `at` is its time, `None` if the time is already shown next to it.
pub fn model_failed(failed: &ModelFailed, at: Option<Timestamp>) -> Line {
    let what = format!("{}: {}", word(&failed.class), failed.message);
    let Some(next) = failed.retry_at else {
        return Line::new(Tag::Bad, "model", what);
    };
    let clock = clock_time(next);
    let when = match at {
        Some(at) => format!("retries in {} ({clock})", span(next.since_ms(at))),
        None => format!("retries at {clock}"),
    };
    let how = failed.remedy.as_ref().map(differently).unwrap_or_default();
    let attempt = failed.attempt;
    Line::new(
        Tag::Note,
        "model",
        format!("{what}; attempt {attempt} failed, {when}{how}"),
    )
}

/// The change that the next attempt makes.
fn differently(remedy: &Remedy) -> String {
    match remedy {
        Remedy::Rotate { credential } => format!(" with credential {credential}"),
        Remedy::Think { level } => format!(" with thinking {}", level.as_str()),
        Remedy::Without { part } => format!(" without the {}", word(part).replace('_', " ")),
        Remedy::LeaveOut { items, .. } => format!(" without {}", RequestItem::in_words(items)),
        Remedy::Fallback { model } => format!(" with model {model}"),
        Remedy::Compact => " after the conversation is compacted".to_owned(),
        Remedy::TruncateResults => " after long tool results are cut".to_owned(),
        Remedy::Park => "; the session is parked until then".to_owned(),
    }
}

/// A question that was not answered in time.
pub(crate) fn late_line(late: &ApprovalEscalated) -> Line {
    let text = format!(
        "no answer in time  [approval {}, level {}]",
        late.approval.short(),
        late.level
    );
    Line::new(Tag::Ask, "ask", text)
}

/// The answer to a question.
pub(crate) fn decided_line(decided: &ApprovalDecided, by: &Principal) -> Line {
    let tag = match decided.decision {
        Decision::Allow | Decision::Answer => Tag::Done,
        Decision::Deny | Decision::Expired => Tag::Bad,
        Decision::Withdrawn => Tag::Note,
    };
    let how = decided_how(decided.decision);
    Line::new(tag, "answer", format!("{how} {}", decided_by(decided, by)))
}

/// The outcome of a question.
pub const fn decided_how(decision: Decision) -> &'static str {
    match decision {
        Decision::Allow => "allowed",
        Decision::Deny => "denied",
        Decision::Answer => "answered",
        Decision::Expired => "expired",
        Decision::Withdrawn => "withdrawn",
    }
}

/// Who decided, the scope of the decision, and its message.
pub fn decided_by(decided: &ApprovalDecided, by: &Principal) -> String {
    let mut text = format!("by {by}");
    if decided.basis == Some(Basis::Policy) {
        text.push_str(", by policy");
    }
    if decided.scope != Scope::Once {
        let everywhere = if decided.everywhere { ", everywhere" } else { "" };
        text.push_str(&format!(" ({}{everywhere})", word(&decided.scope)));
    }
    for words in [&decided.answer, &decided.message].into_iter().flatten() {
        text.push_str(&format!(": {words}"));
    }
    text
}

/// How a turn ended, and what it cost.
pub fn turn_finished(turn: &TurnFinished) -> Line {
    let ok = turn.reason == agentd_protocol::EndReason::Completed;
    let cancelled = turn.reason == agentd_protocol::EndReason::Cancelled;
    let how = match &turn.error {
        // Who cancelled, on the same line; the message has nothing else to add.
        Some(error) if cancelled && error.message.starts_with("cancelled") => error.message.clone(),
        Some(error) if cancelled => format!("cancelled ({})", error.message),
        _ => word(&turn.reason),
    };
    let text = format!(
        "{how}: {}, {}, {} tokens, {}",
        count(u64::from(turn.steps), "step"),
        count(u64::from(turn.tool_calls), "tool call"),
        tokens(turn.usage.total()),
        dollars(turn.cost_usd)
    );
    let mut line = Line::new(if ok { Tag::Mark } else { Tag::Bad }, "turn", text);
    let error = turn.error.iter().filter(|_| !cancelled);
    line.below = error
        .map(|error| format!("{}: {}", error.class, error.message))
        .collect();
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_failed_attempt_shows_the_time_until_the_next() {
        let failed: ModelFailed = serde_json::from_value(json!({
            "call": agentd_protocol::CallId::NIL, "attempt": 2, "class": "rate_limited", "message": "slow down",
            "retry_at": Timestamp(1_763_636_412_000), "remedy": {"kind": "fallback", "model": "small"}
        }))
        .unwrap();
        let text = model_failed(&failed, Some(Timestamp(1_763_636_400_000))).text;
        assert_eq!(
            text,
            "rate_limited: slow down; attempt 2 failed, retries in 12.0s (11:00:12Z) with model small"
        );
        let text = model_failed(&failed, None).text;
        assert!(
            text.ends_with("failed, retries at 11:00:12Z with model small"),
            "{text}"
        );
        let last = ModelFailed {
            retry_at: None,
            ..failed
        };
        assert_eq!(model_failed(&last, None).text, "rate_limited: slow down");
    }
}
