//! Checks of recorded answers: model answers must decode alike at all chunk sizes, errors must be classified.

use crate::cassette::{Exchange, Then};
use crate::evidence::Evidence;
use crate::report::Verdict;
use agentd_protocol::{Block, FailureClass, StopReason};
use agentd_provider::{Decoder, Dialect, ModelError, ModelEvent, ModelReply, ModelSpec, Script, classify};
use std::sync::Arc;

/// The chunk sizes in bytes for a stream; the last is the whole stream.
const CUTS: [usize; 3] = [1, 7, usize::MAX];

/// The decoded result of an exchange, with the pieces that a viewer would have seen.
pub(crate) type Decoded = Result<(ModelReply, Vec<ModelEvent>), ModelError>;

/// A model spec with what the decoding of a dialect's answers needs.
pub(crate) fn plain_spec(dialect: Dialect) -> ModelSpec {
    ModelSpec {
        dialect,
        ..ModelSpec::scripted("recorded", Arc::new(Script::default()))
    }
}

/// Checks the answer of a model exchange.
pub(crate) fn check(dialect: Dialect, exchange: &Exchange) -> Verdict {
    let then = &exchange.then;
    if !(200..300).contains(&then.status) {
        return check_error(then);
    }
    let spec = plain_spec(dialect);
    let whole = decode(&spec, then, usize::MAX);
    if then.is_stream() {
        for cut in CUTS {
            let again = decode(&spec, then, cut);
            if text_of(&again) != text_of(&whole) || fate(&again) != fate(&whole) {
                return Verdict::Failed(format!(
                    "cut into pieces of {cut} bytes it decodes to something else"
                ));
            }
        }
    }
    let evidence = Evidence::of(then);
    let problem = match &whole {
        // For Responses, the finished items are authoritative, not the deltas before them.
        Ok((reply, events)) => {
            let grown = then.is_stream() && dialect != Dialect::OpenaiResponses;
            complaint(reply, events, &evidence, grown)
        }
        Err(error) => unexpected(error, &evidence),
    };
    problem.map_or(Verdict::Passed, Verdict::Failed)
}

/// Decodes an answer in chunks of a size; one that was not streamed is decoded whole.
pub(crate) fn decode(spec: &ModelSpec, then: &Then, cut: usize) -> Decoded {
    let mut decoder = Decoder::new(spec, &[])?;
    let mut events = Vec::new();
    if !then.is_stream() {
        let reply = decoder.whole(then.bytes(), &mut events)?;
        return Ok((reply, events));
    }
    for chunk in then.bytes().chunks(cut) {
        decoder.feed(chunk, &mut events)?;
    }
    let reply = decoder.finish(&mut events)?;
    Ok((reply, events))
}

fn fate(decoded: &Decoded) -> Result<&ModelReply, &ModelError> {
    decoded.as_ref().map(|(reply, _)| reply)
}

/// The text that a viewer saw, independent of the chunk size.
fn text_of(decoded: &Decoded) -> Vec<(u32, String)> {
    let mut seen: Vec<(u32, String)> = Vec::new();
    for event in decoded.iter().flat_map(|(_, events)| events) {
        let (ModelEvent::TextDelta { block, text }
        | ModelEvent::ThinkingDelta { block, text }
        | ModelEvent::ToolStart { block, name: text }
        | ModelEvent::ToolInputDelta { block, text }) = event;
        match seen.last_mut().filter(|(last, _)| last == block) {
            Some((_, words)) => words.push_str(text),
            None => seen.push((*block, text.clone())),
        }
    }
    seen
}

/// Checks an answer: it has calls exactly if it stopped for them, the calls are complete, tokens are counted, and the
/// deltas add up to the final text.
fn complaint(reply: &ModelReply, events: &[ModelEvent], evidence: &Evidence, grown: bool) -> Option<String> {
    let calls = reply
        .content
        .iter()
        .filter(|block| matches!(block, Block::ToolUse { .. }))
        .count();
    let cut_off = matches!(
        reply.stop_reason,
        StopReason::MaxTokens
            | StopReason::ContextWindow
            | StopReason::ContentFilter
            | StopReason::Refusal
            | StopReason::PauseTurn
            | StopReason::StopSequence
            | StopReason::Other
    );
    if (calls > 0) != (reply.stop_reason == StopReason::ToolUse) && !(calls > 0 && cut_off) {
        return Some(format!(
            "{calls} calls, but it stopped for {:?}",
            reply.stop_reason
        ));
    }
    if let Some(call) = reply.content.iter().find(|block| !is_whole(block)) {
        return Some(format!("a call is neither whole nor kept as text: {call:?}"));
    }
    if evidence.output_tokens > 0 && reply.usage.output == 0 {
        return Some(format!(
            "{} output tokens were told and none counted",
            evidence.output_tokens
        ));
    }
    let said: String = reply.content.iter().filter_map(words).collect();
    let seen: String = events.iter().filter_map(shown).collect();
    (grown && said != seen).then(|| {
        format!(
            "a viewer saw {} bytes of text, it says {}",
            seen.len(),
            said.len()
        )
    })
}

fn is_whole(block: &Block) -> bool {
    let Block::ToolUse { id, name, input } = block else {
        return true;
    };
    !id.is_empty() && !name.is_empty() && (input.is_object() || input.is_string())
}

fn words(block: &Block) -> Option<&str> {
    match block {
        Block::Text { text } => Some(text),
        _ => None,
    }
}

fn shown(event: &ModelEvent) -> Option<&str> {
    match event {
        ModelEvent::TextDelta { text, .. } => Some(text),
        _ => None,
    }
}

/// Decoding may fail only if the recording itself reports a failure or ends too early.
fn unexpected(error: &ModelError, evidence: &Evidence) -> Option<String> {
    if error.message.is_empty() {
        return Some("an error without a message".to_owned());
    }
    let early = error.class == FailureClass::Transient && !evidence.ended;
    (!evidence.failed && !early).then(|| format!("{:?}: {error}", error.class))
}

/// Checks that an error is classified: the class fits the status, and the server's message is kept.
pub(crate) fn check_error(then: &Then) -> Verdict {
    let error = classify(then.status, &then.headers(), then.bytes());
    let fits = match (then.status, error.class) {
        (_, FailureClass::Internal | FailureClass::Cancelled) => false,
        (401, class) => class == FailureClass::Auth,
        (402, class) => class == FailureClass::QuotaExhausted,
        (429, class) => matches!(class, FailureClass::RateLimited | FailureClass::QuotaExhausted),
        (403 | 404 | 422, class) => class != FailureClass::Transient,
        _ => true,
    };
    if !fits {
        return Verdict::Failed(format!(
            "HTTP {} is classified as {:?}: {error}",
            then.status, error.class
        ));
    }
    let bare = error.message == format!("HTTP {}", then.status);
    if bare && !then.bytes().trim_ascii().is_empty() {
        return Verdict::Failed("the error has a body, but its message is empty".to_owned());
    }
    Verdict::Passed
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cassette::{Header, When};

    fn answered(status: u16, kind: &str, body: &str) -> Exchange {
        Exchange {
            when: When {
                path: "/v1/chat/completions".into(),
                method: "POST".into(),
                body: None,
            },
            then: Then {
                status,
                header: Some(vec![Header {
                    name: "content-type".into(),
                    value: kind.into(),
                }]),
                body: Some(body.into()),
            },
        }
    }

    fn failure(exchange: &Exchange) -> Option<String> {
        match check(Dialect::OpenaiChat, exchange) {
            Verdict::Failed(why) => Some(why),
            Verdict::Passed | Verdict::Skipped(_) => None,
        }
    }

    const PIECE: &str = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"}}]}\n\n";
    const END: &str = "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}],\"usage\":{\"completion_tokens\":1}}\n\ndata: [DONE]\n\n";

    #[test]
    fn a_complete_stream_passes_and_a_cut_or_failed_one_may_fail() {
        let stream = |body: &str| failure(&answered(200, "text/event-stream", body));
        assert_eq!(stream(&format!("{PIECE}{END}")), None);
        assert_eq!(stream(PIECE), None);
        assert_eq!(
            stream(&format!("{PIECE}data: {{\"error\":{{\"message\":\"no\"}}}}\n\n")),
            None
        );
    }

    #[test]
    fn a_complete_stream_that_cannot_be_decoded_is_a_failure() {
        let broken = format!("{PIECE}data: not json\n\n{END}");
        let found = failure(&answered(200, "text/event-stream", &broken)).unwrap();
        assert!(found.starts_with("Transient: "), "{found}");
    }

    #[test]
    fn an_error_is_classified_by_its_content() {
        let error = |status, body| failure(&answered(status, "application/json", body));
        assert_eq!(error(401, r#"{"error":{"message":"bad key"}}"#), None);
        assert_eq!(error(429, "<html>slow down</html>"), None);
        assert_eq!(error(500, ""), None);
    }
}
