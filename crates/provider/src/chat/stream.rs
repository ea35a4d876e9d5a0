//! Streamed answers of Chat Completions.

use crate::chat::calls::Calls;
use crate::decoder::{Outcome, Progress};
use crate::error::ModelError;
use crate::fields::{number, text};
use crate::reply::ModelEvent;
use agentd_protocol::{Block, FailureClass, StopReason, Usage};
use serde_json::{Value, json};

/// Where servers put the reasoning; the first that is not empty counts.
const REASONING_FIELDS: [&str; 3] = ["reasoning_content", "reasoning", "reasoning_text"];

/// The names of an answer that was cut off by the output limit.
const CUT: [&str; 3] = ["length", "max_output_tokens", "max_tokens"];

/// A block of words while it grows.
#[derive(Debug, Default)]
struct Words {
    block: Option<u32>,
    text: String,
}

impl Words {
    /// Appends a piece and returns the number of the block, taking a new one for the first piece.
    fn grow(&mut self, piece: &str, next_block: &mut u32) -> u32 {
        self.text.push_str(piece);
        *self.block.get_or_insert_with(|| {
            let block = *next_block;
            *next_block = next_block.saturating_add(1);
            block
        })
    }
}

/// Reads the chunks of one answer.
#[derive(Debug, Default)]
pub(crate) struct ChatStream {
    id: String,
    model: String,
    words: Words,
    reasoning: Words,
    reasoning_field: Option<&'static str>,
    reasoning_details: Vec<Value>,
    calls: Calls,
    next_block: u32,
    finish: Option<String>,
    refused: bool,
    usage: Usage,
    cost_usd: Option<f64>,
    ended: bool,
}

impl ChatStream {
    pub(crate) const fn is_complete(&self) -> bool {
        self.ended
    }

    /// `[DONE]` came.
    pub(crate) const fn end(&mut self) {
        self.ended = true;
    }

    /// Takes one chunk.
    pub(crate) fn frame(
        &mut self,
        frame: &Value,
        events: &mut Vec<ModelEvent>,
    ) -> Result<Progress, ModelError> {
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
        if let Some(delta) = choice.get("delta").or_else(|| choice.get("message")) {
            self.delta(delta, events);
        }
        match choice.get("finish_reason").and_then(Value::as_str) {
            Some("insufficient_system_resource") => Err(ModelError::new(
                FailureClass::Overloaded,
                "the provider ran out of resources",
            )),
            Some("error") => Err(ModelError::transient(
                "the provider ended the answer with an error",
            )),
            Some(reason) if !reason.is_empty() => {
                // OpenRouter calls an answer that ran into its limit `tool_calls` and keeps the truth beside it.
                let cut = CUT.contains(&text(choice, "native_finish_reason").to_lowercase().as_str());
                self.finish = Some(if cut { CUT[0] } else { reason }.to_owned());
                Ok(Progress::Moved)
            }
            _ => Ok(Progress::Moved),
        }
    }

    /// A chunk of another answer after the end of this one means that two were spliced.
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
            return Err(ModelError::transient("two answers were spliced into one stream"));
        }
        Ok(())
    }

    fn delta(&mut self, delta: &Value, events: &mut Vec<ModelEvent>) {
        let reasoning = REASONING_FIELDS
            .into_iter()
            .find(|field| !text(delta, field).is_empty());
        if let Some(field) = reasoning {
            self.reasoning_field.get_or_insert(field);
            self.think(text(delta, field), events);
        }
        if let Some(details) = delta.get("reasoning_details").and_then(Value::as_array) {
            self.reasoning_details.extend(details.iter().cloned());
        }
        match delta.get("content") {
            Some(Value::String(piece)) => self.say(piece, events),
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
            self.calls.take(fragment, &mut self.next_block, events);
        }
    }

    /// One part of content that is an array, as Mistral sends it.
    fn part(&mut self, part: &Value, events: &mut Vec<ModelEvent>) {
        match (text(part, "type"), part.get("thinking")) {
            ("thinking", Some(Value::Array(inner))) => {
                inner
                    .iter()
                    .for_each(|piece| self.think(text(piece, "text"), events));
            }
            ("thinking", Some(Value::String(piece))) => self.think(piece, events),
            _ => self.say(text(part, "text"), events),
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

    fn think(&mut self, piece: &str, events: &mut Vec<ModelEvent>) {
        if !piece.is_empty() {
            let block = self.reasoning.grow(piece, &mut self.next_block);
            events.push(ModelEvent::ThinkingDelta {
                block,
                text: piece.to_owned(),
            });
        }
    }

    /// The last usage counts, wherever in the stream it is.
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
        // xAI counts reasoning beside the completion, everybody else inside it; the total tells.
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
            reasoning,
        };
        self.cost_usd = usage.get("cost").and_then(Value::as_f64).or(self.cost_usd);
    }

    /// The answer, once `[DONE]` or a finish reason has come.
    pub(crate) fn finish(self) -> Result<Outcome, ModelError> {
        let empty = self.words.text.is_empty() && self.reasoning.text.is_empty() && self.calls.is_empty();
        if self.finish.is_none() && (!self.ended || empty) {
            return Err(ModelError::transient(
                "the stream ended before the end of the answer",
            ));
        }
        let stop_reason = self.stop_reason();
        let mut content = Vec::new();
        content.extend(thinking(
            self.reasoning.text,
            self.reasoning_field,
            &self.reasoning_details,
        ));
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
            Some("content_filter") => StopReason::ContentFilter,
            Some("model_context_window_exceeded") => StopReason::ContextWindow,
            _ if self.refused => StopReason::Refusal,
            Some("tool_calls" | "function_call") => StopReason::ToolUse,
            Some("stop" | "eos" | "end_turn") | None => StopReason::EndTurn,
            Some(_) => StopReason::Other,
        };
        match said {
            // Some servers say that they stopped and call tools all the same, and the other way round.
            StopReason::EndTurn | StopReason::Other if !self.calls.is_empty() => StopReason::ToolUse,
            StopReason::ToolUse if self.calls.is_empty() => StopReason::EndTurn,
            other => other,
        }
    }
}

fn says_something(delta: &Value) -> bool {
    !text(delta, "content").is_empty() || delta.get("tool_calls").is_some_and(Value::is_array)
}

fn thinking(text: String, field: Option<&str>, details: &[Value]) -> Option<Block> {
    if text.is_empty() && details.is_empty() {
        return None;
    }
    let mut raw = serde_json::Map::new();
    if !details.is_empty() {
        raw.insert("reasoning_details".to_owned(), json!(details));
    }
    if let Some(field) = field {
        raw.insert(field.to_owned(), json!(text));
    }
    let raw = (!raw.is_empty()).then(|| Value::Object(raw).to_string());
    Some(Block::Thinking { text, raw })
}
