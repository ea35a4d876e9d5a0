//! Answers of Gemini. There is no terminal marker: an answer is complete when the bytes end after a finish reason.

use crate::classify::{classify_stream_error, of_call};
use crate::decoder::{Outcome, Progress, check_blocks};
use crate::dialect::Reader;
use crate::error::ModelError;
use crate::fields::{number, text};
use crate::gemini::parts::Parts;
use crate::reply::ModelEvent;
use agentd_protocol::{FailureClass, StopReason, Usage};
use serde_json::Value;

/// Reads the chunks of one answer.
#[derive(Debug, Default)]
pub(crate) struct GeminiStream {
    id: String,
    model: String,
    parts: Parts,
    counts: Counts,
    /// The last finish reason counts: some answers continue after the first.
    stop: Option<StopReason>,
    /// Why the provider blocked the prompt.
    blocked: Option<String>,
    /// A gateway sent `[DONE]`.
    done: bool,
}

/// The reported token counts; a later chunk may omit those of an earlier one.
#[derive(Debug, Default)]
struct Counts {
    prompt: u64,
    cached: u64,
    tool_prompt: u64,
    answer: u64,
    thoughts: u64,
}

impl Reader for GeminiStream {
    /// The answer may continue after a finish reason, so only the end of the bytes completes it, or a gateway's
    /// `[DONE]`.
    fn is_complete(&self) -> bool {
        self.done
    }

    fn done(&mut self) {
        self.done = true;
    }

    fn frame(&mut self, _: &str, frame: Value, events: &mut Vec<ModelEvent>) -> Result<Progress, ModelError> {
        self.chunk(frame, events)?;
        Ok(Progress::Moved)
    }

    /// Takes one answer, or the array of chunks that a stream without `alt=sse` consists of.
    fn whole(&mut self, body: Value, events: &mut Vec<ModelEvent>) -> Result<(), ModelError> {
        match body {
            Value::Array(chunks) => chunks.into_iter().try_for_each(|chunk| self.chunk(chunk, events)),
            body => self.chunk(body, events),
        }
    }

    fn usage(&self) -> Usage {
        self.counts.usage()
    }

    fn finish(self: Box<Self>) -> Result<Outcome, ModelError> {
        self.into_outcome()
    }
}

impl GeminiStream {
    fn chunk(&mut self, mut chunk: Value, events: &mut Vec<ModelEvent>) -> Result<(), ModelError> {
        if chunk.get("error").is_some_and(|error| !error.is_null()) {
            return Err(classify_stream_error(&chunk));
        }
        self.name(&chunk)?;
        self.counts.take(chunk.get("usageMetadata"));
        if let Some(reason) = chunk
            .pointer("/promptFeedback/blockReason")
            .and_then(Value::as_str)
        {
            self.blocked = Some(reason.to_owned());
        }
        let candidates = chunk.get_mut("candidates").and_then(Value::as_array_mut);
        let first = candidates.and_then(|all| {
            all.iter_mut()
                .find(|candidate| number(candidate, "/index").unwrap_or(0) == 0)
        });
        let Some(candidate) = first else { return Ok(()) };
        let mut parts = candidate.pointer_mut("/content/parts").map(Value::take);
        for part in parts.iter_mut().filter_map(Value::as_array_mut).flatten() {
            if part.pointer("/functionCall/partialArgs").is_some() {
                return Err(ModelError::transient(
                    "the server sent a tool call in pieces, but agentd did not request that",
                ));
            }
            self.parts.take(part.take(), events);
        }
        check_blocks(self.parts.len())?;
        match text(candidate, "finishReason") {
            "" => {}
            reason => self.stop = Some(stop_reason(reason, text(candidate, "finishMessage"))?),
        }
        Ok(())
    }

    fn name(&mut self, chunk: &Value) -> Result<(), ModelError> {
        let id = text(chunk, "responseId");
        if !self.id.is_empty() && !id.is_empty() && id != self.id {
            return Err(ModelError::transient("the stream contains two answers"));
        }
        for (slot, key) in [(&mut self.id, "responseId"), (&mut self.model, "modelVersion")] {
            if slot.is_empty() {
                text(chunk, key).clone_into(slot);
            }
        }
        Ok(())
    }

    fn into_outcome(self) -> Result<Outcome, ModelError> {
        let Some(stop) = self.stop else {
            return Err(match self.blocked {
                Some(reason) => ModelError::new(
                    FailureClass::ContentFilter,
                    format!("the provider blocked the prompt: {reason}"),
                ),
                None => ModelError::transient("the stream ended before the end of the answer"),
            });
        };
        let stop_reason = match stop {
            // The protocol has no finish reason for tool calls.
            StopReason::EndTurn | StopReason::Other if self.parts.has_calls() => StopReason::ToolUse,
            other => other,
        };
        Ok(Outcome {
            content: self.parts.into_blocks(),
            stop_reason,
            usage: self.counts.usage(),
            cost_usd: None,
            model: self.model,
            id: Some(self.id).filter(|id| !id.is_empty()),
        })
    }
}

impl Counts {
    fn take(&mut self, usage: Option<&Value>) {
        let Some(usage) = usage else { return };
        for (slot, pointer) in [
            (&mut self.prompt, "/promptTokenCount"),
            (&mut self.cached, "/cachedContentTokenCount"),
            (&mut self.tool_prompt, "/toolUsePromptTokenCount"),
            (&mut self.answer, "/candidatesTokenCount"),
            (&mut self.thoughts, "/thoughtsTokenCount"),
        ] {
            *slot = number(usage, pointer).unwrap_or(*slot);
        }
    }

    /// The prompt count includes cached tokens and excludes what the server's tools read.
    fn usage(&self) -> Usage {
        Usage {
            input: self
                .prompt
                .saturating_sub(self.cached)
                .saturating_add(self.tool_prompt),
            output: self.answer.saturating_add(self.thoughts),
            cache_read: self.cached,
            cache_write: 0,
            cache_write_1h: 0,
            reasoning: self.thoughts,
        }
    }
}

/// Finish reasons that are the model's fault, not the conversation's: the same request can succeed.
const STUMBLES: [&str; 5] = [
    "MALFORMED_FUNCTION_CALL",
    "MALFORMED_RESPONSE",
    "UNEXPECTED_TOOL_CALL",
    "TOO_MANY_TOOL_CALLS",
    "MISSING_THOUGHT_SIGNATURE",
];

fn stop_reason(reason: &str, said: &str) -> Result<StopReason, ModelError> {
    Ok(match reason {
        "STOP" => StopReason::EndTurn,
        "MAX_TOKENS" => StopReason::MaxTokens,
        "SAFETY" | "RECITATION" | "BLOCKLIST" | "PROHIBITED_CONTENT" | "SPII" | "LANGUAGE"
        | "MODEL_ARMOR" => StopReason::ContentFilter,
        image if image.starts_with("IMAGE_") => StopReason::ContentFilter,
        stumble if STUMBLES.contains(&stumble) => {
            let what = format!("the model produced an invalid answer: {stumble} {said}");
            return Err(ModelError {
                advice: Some(of_call(said)),
                ..ModelError::new(FailureClass::InvalidRequest, what.trim_end())
            });
        }
        _ => StopReason::Other,
    })
}
