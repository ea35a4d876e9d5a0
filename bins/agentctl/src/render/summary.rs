//! What an event says, in one line.

use crate::render::amount::{span, tokens, word};
use crate::render::live::text_of;
use crate::render::transcript::{input_text, model_failed, turn_finished};
use agentd_protocol::{EventBody, SessionRecovered};

/// What an event says, in one line.
pub(crate) fn summary(body: &EventBody) -> String {
    match body {
        EventBody::SessionCreated(e) => format!("created: {} ({}, {})", e.title, e.model, e.workdir),
        EventBody::SessionUpdated(_) => "settings changed".to_owned(),
        EventBody::SessionPaused(e) => format!("paused: {}", e.reason),
        EventBody::SessionResumed(e) => format!("resumed: {}", e.reason),
        EventBody::SessionClosed(e) => format!("closed: {}", e.reason),
        EventBody::SessionRecovered(e) => recovered(e),
        EventBody::SessionMoved(e) => format!("moved to node {}", e.node),
        EventBody::SessionImported(e) => format!("imported from {}", e.from),
        EventBody::InputAccepted(e) => input_text(&e.content),
        EventBody::InputCancelled(e) => format!("taken back: {}", e.input.short()),
        EventBody::NoteInjected(e) => format!("{}: {}", word(&e.kind), e.text),
        EventBody::ContextCompacted(e) => {
            format!(
                "compacted: {} to {} tokens",
                tokens(e.tokens_before),
                tokens(e.tokens_after)
            )
        }
        EventBody::LimitReached(e) => format!("{} at {}: {}", word(&e.limit), e.value, e.action),
        EventBody::WarningRaised(e) => format!("{}: {}", e.code, e.message),
        EventBody::RuleAdded(e) => format!("rule added: {}", e.rule),
        EventBody::RuleRemoved(e) => format!("rule removed: {}", e.rule),
        body @ (EventBody::TurnStarted(_)
        | EventBody::ModelStarted(_)
        | EventBody::ModelFinished(_)
        | EventBody::ModelFailed(_)
        | EventBody::ToolProposed(_)
        | EventBody::VerdictGiven(_)
        | EventBody::ApprovalAsked(_)
        | EventBody::ApprovalDecided(_)
        | EventBody::ToolStarted(_)
        | EventBody::ToolFinished(_)
        | EventBody::TurnFinished(_)
        | EventBody::Unknown) => in_turn(body),
    }
}

/// Events inside a turn.
fn in_turn(body: &EventBody) -> String {
    if let EventBody::ModelStarted(e) = body {
        format!(
            "step {} of {}, attempt {}: {}",
            e.step, e.max_steps, e.attempt, e.model
        )
    } else if let EventBody::ModelFinished(e) = body {
        text_of(&e.content)
    } else if let EventBody::ModelFailed(e) = body {
        model_failed(e).text
    } else if let EventBody::ToolProposed(e) = body {
        format!("{} {}", e.name, e.input)
    } else if let EventBody::VerdictGiven(e) = body {
        format!(
            "{} by {}: {}",
            word(&e.verdict.kind),
            e.verdict.rule,
            e.verdict.reason
        )
    } else if let EventBody::ApprovalAsked(e) = body {
        e.title.clone()
    } else if let EventBody::ApprovalDecided(e) = body {
        word(&e.decision)
    } else if let EventBody::ToolStarted(e) = body {
        e.title.clone()
    } else if let EventBody::ToolFinished(e) = body {
        format!("{} ({})", word(&e.outcome.status), span(e.outcome.duration_ms))
    } else if let EventBody::TurnFinished(e) = body {
        turn_finished(e).text
    } else if let EventBody::TurnStarted(_) = body {
        "started".to_owned()
    } else {
        "of a newer version".to_owned()
    }
}

fn recovered(event: &SessionRecovered) -> String {
    if event.closed.is_empty() {
        return "recovered after a restart: nothing was open".to_owned();
    }
    let closed: Vec<String> = event
        .closed
        .iter()
        .map(|one| format!("{} {}", one.what, one.how))
        .collect();
    format!("recovered after a restart: {}", closed.join(", "))
}
