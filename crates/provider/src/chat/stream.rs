//! Streamed answers of Chat Completions.

use crate::chat::calls::Calls;
use crate::chat::reasoning::{Reasoning, Words};
use crate::decoder::{Outcome, Progress};
use crate::dialect::Reader;
use crate::error::ModelError;
use crate::fields::{number, text};
use crate::reply::ModelEvent;
use crate::thoughts::{Piece, Thoughts, split_closed};
use agentd_protocol::{Block, FailureClass, StopReason, Usage};
use serde_json::Value;

/// The finish reasons of an answer that the output limit cut off.
const CUT: [&str; 3] = ["length", "max_output_tokens", "max_tokens"];

/// The finish reasons of an answer that a filter ended, as gateways write them.
const FILTERS: [&str; 7] = [
    "content_filter",
    "content_filtered",
    "safety",
    "blocklist",
    "prohibited_content",
    "guardrail_intervened",
    "refusal",
];

/// Reads the chunks of one answer.
#[derive(Debug, Default)]
pub(crate) struct ChatStream {
    id: String,
    model: String,
    words: Words,
    thoughts: Thoughts,
    reasoning: Reasoning,
    calls: Calls,
    next_block: u32,
    finish: Option<String>,
    refused: bool,
    usage: Usage,
    cost_usd: Option<f64>,
    ended: bool,
}

impl Reader for ChatStream {
    fn is_complete(&self) -> bool {
        self.ended
    }

    fn done(&mut self) {
        self.ended = true;
    }

    fn whole(&mut self, body: Value, events: &mut Vec<ModelEvent>) -> Result<(), ModelError> {
        let choice = body.pointer("/choices/0");
        let message = choice.is_some_and(|choice| choice.get("message").is_some_and(Value::is_object));
        // A filter may leave nothing but the reason.
        let ending = choice.map_or("", |choice| text(choice, "finish_reason"));
        if !message && !is_filter(ending) {
            self.count(body.get("usage"));
            return Err(ModelError::transient("the server's response contains no answer"));
        }
        self.frame("", body, events)?;
        // The end of the body ends the answer; a model may have nothing to say.
        self.ended = true;
        self.finish.get_or_insert_with(|| "stop".to_owned());
        Ok(())
    }

    fn usage(&self) -> Usage {
        self.usage
    }

    fn finish(self: Box<Self>) -> Result<Outcome, ModelError> {
        self.into_outcome()
    }

    /// Takes one chunk.
    fn frame(&mut self, _: &str, frame: Value, events: &mut Vec<ModelEvent>) -> Result<Progress, ModelError> {
        let (frame, pieces) = (&frame, events.len());
        // Groq reports usage here, too, and for some models only here.
        self.count(frame.pointer("/x_groq/usage"));
        self.count(frame.get("usage"));
        let choices = frame.get("choices").and_then(Value::as_array);
        let first = choices.and_then(|all| {
            all.iter()
                .find(|choice| number(choice, "/index").unwrap_or(0) == 0)
        });
        self.name(frame, first)?;
        let Some(choice) = first else {
            return Ok(Progress::Moved);
        };
        self.count(choice.get("usage"));
        let details = self.reasoning.details();
        match (
            choice.get("delta").filter(|delta| delta.is_object()),
            choice.get("message"),
        ) {
            (Some(delta), _) => self.delta(delta, false, events)?,
            (None, Some(message)) => self.delta(message, true, events)?,
            (None, None) => {}
        }
        let grew = events.len() > pieces || self.reasoning.details() > details;
        match choice.get("finish_reason").and_then(Value::as_str) {
            Some("insufficient_system_resource") => Err(ModelError::new(
                FailureClass::Overloaded,
                "the provider ran out of resources",
            )),
            Some("error") => Err(ModelError::transient(
                "the provider ended the answer with an error",
            )),
            Some(reason) if !reason.is_empty() => {
                // OpenRouter reports `tool_calls` for a truncated answer and keeps the real reason here.
                let cut = CUT.contains(&text(choice, "native_finish_reason").to_lowercase().as_str());
                self.finish = Some(if cut { CUT[0] } else { reason }.to_owned());
                Ok(Progress::Moved)
            }
            // Some servers send empty deltas as a keep-alive.
            _ if !grew => Ok(Progress::Alive),
            _ => Ok(Progress::Moved),
        }
    }
}

impl ChatStream {
    /// A chunk of a different answer after the end of this one means that two streams were mixed up.
    fn name(&mut self, frame: &Value, choice: Option<&Value>) -> Result<(), ModelError> {
        let id = text(frame, "id");
        if self.id.is_empty() {
            id.clone_into(&mut self.id);
        }
        if self.model.is_empty() {
            text(frame, "model").clone_into(&mut self.model);
        }
        let speaks = choice
            .and_then(|choice| choice.get("delta"))
            .is_some_and(says_something);
        if self.finish.is_some() && speaks && !id.is_empty() && id != self.id {
            return Err(ModelError::transient("the stream contains two answers"));
        }
        Ok(())
    }

    fn delta(&mut self, delta: &Value, whole: bool, events: &mut Vec<ModelEvent>) -> Result<(), ModelError> {
        self.reasoning.take(delta, whole, &mut self.next_block, events)?;
        match delta.get("content") {
            Some(Value::String(piece)) => self.hear(piece, events),
            Some(Value::Array(parts)) => parts.iter().for_each(|part| self.part(part, events)),
            _ => {}
        }
        let refusal = text(delta, "refusal");
        self.refused |= !refusal.is_empty();
        self.say(refusal, events);
        for fragment in delta
            .get("tool_calls")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
        {
            self.calls.take(fragment, &mut self.next_block, events)?;
        }
        // The older format, which allows a single call.
        if let Some(call) = delta.get("function_call").filter(|call| call.is_object()) {
            self.calls.take(call, &mut self.next_block, events)?;
        }
        Ok(())
    }

    /// One part of a content array, as Mistral sends it.
    fn part(&mut self, part: &Value, events: &mut Vec<ModelEvent>) {
        match part.get("thinking") {
            Some(thinking) if text(part, "type") == "thinking" => {
                self.reasoning.take_part(thinking, &mut self.next_block, events);
            }
            _ => self.hear(text(part, "text"), events),
        }
    }

    /// Takes text that may begin with reasoning.
    fn hear(&mut self, piece: &str, events: &mut Vec<ModelEvent>) {
        if piece.is_empty() {
            return;
        }
        for piece in self.thoughts.feed(piece) {
            self.take(piece, events);
        }
    }

    fn take(&mut self, piece: Piece, events: &mut Vec<ModelEvent>) {
        match piece {
            Piece::Thought(text) => self.reasoning.think(&text, &mut self.next_block, events),
            Piece::Said(text) => self.say(&text, events),
        }
    }

    fn say(&mut self, piece: &str, events: &mut Vec<ModelEvent>) {
        if !piece.is_empty() {
            let block = self.words.grow(piece, &mut self.next_block);
            events.push(ModelEvent::TextDelta {
                block,
                text: piece.to_owned(),
            });
        }
    }

    /// The last usage counts, wherever it appears in the stream.
    fn count(&mut self, usage: Option<&Value>) {
        let Some(usage) = usage.filter(|usage| usage.is_object()) else {
            return;
        };
        let of = |pointer: &str| number(usage, pointer);
        let prompt = of("/prompt_tokens").unwrap_or_default();
        let mut output = of("/completion_tokens").unwrap_or_default();
        let cache_read = of("/prompt_tokens_details/cached_tokens")
            .or_else(|| of("/prompt_cache_hit_tokens"))
            .unwrap_or_default();
        let cache_write = of("/prompt_tokens_details/cache_write_tokens").unwrap_or_default();
        let reasoning = of("/completion_tokens_details/reasoning_tokens").unwrap_or_default();
        // xAI counts reasoning separately from the completion, all others include it; the total tells which.
        if reasoning > 0
            && of("/total_tokens") == Some(prompt.saturating_add(output).saturating_add(reasoning))
        {
            output = output.saturating_add(reasoning);
        }
        let input = prompt.saturating_sub(cache_read).saturating_sub(cache_write);
        self.usage = Usage {
            input,
            output,
            cache_read,
            cache_write,
            cache_write_1h: 0,
            reasoning,
        };
        self.cost_usd = usage.get("cost").and_then(Value::as_f64).or(self.cost_usd);
    }

    /// The answer, if `[DONE]` or a finish reason has arrived.
    fn into_outcome(mut self) -> Result<Outcome, ModelError> {
        if let Some(piece) = self.thoughts.end() {
            self.take(piece, &mut Vec::new());
        }
        if let Some((thinking, said)) = split_closed(&self.words.text).filter(|_| self.reasoning.is_empty()) {
            let said = said.to_owned();
            self.reasoning.think(thinking, &mut 0, &mut Vec::new());
            self.words.text = said;
        }
        let empty = self.words.text.is_empty() && self.reasoning.is_empty() && self.calls.is_empty();
        if self.finish.is_none() && (!self.ended || empty) {
            return Err(ModelError::transient(
                "the stream ended before the end of the answer",
            ));
        }
        let stop_reason = self.stop_reason();
        let mut content = Vec::new();
        content.extend(self.reasoning.into_block());
        content.extend(
            Some(self.words.text)
                .filter(|text| !text.is_empty())
                .map(Block::text),
        );
        content.extend(self.calls.into_blocks());
        Ok(Outcome {
            content,
            stop_reason,
            usage: self.usage,
            cost_usd: self.cost_usd,
            model: self.model,
            id: Some(self.id).filter(|id| !id.is_empty()),
        })
    }

    fn stop_reason(&self) -> StopReason {
        let said = match self.finish.as_deref() {
            Some("length" | "max_tokens") => StopReason::MaxTokens,
            Some(reason) if is_filter(reason) => StopReason::ContentFilter,
            Some("model_context_window_exceeded") => StopReason::ContextWindow,
            _ if self.refused => StopReason::Refusal,
            Some("tool_calls" | "function_call") => StopReason::ToolUse,
            Some("stop" | "eos" | "end_turn") | None => StopReason::EndTurn,
            Some(_) => StopReason::Other,
        };
        match said {
            // Some servers report a stop although they call tools, or the other way round.
            StopReason::EndTurn | StopReason::Other if !self.calls.is_empty() => StopReason::ToolUse,
            StopReason::ToolUse if self.calls.is_empty() => StopReason::EndTurn,
            other => other,
        }
    }
}

/// Whether a finish reason says that a policy of the provider ended the answer.
fn is_filter(reason: &str) -> bool {
    FILTERS.iter().any(|filter| reason.eq_ignore_ascii_case(filter))
}

fn says_something(delta: &Value) -> bool {
    !text(delta, "content").is_empty() || delta.get("tool_calls").is_some_and(Value::is_array)
}
