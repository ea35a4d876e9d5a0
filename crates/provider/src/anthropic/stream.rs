//! Streamed answers of the Messages protocol.

use crate::decoder::{Outcome, Progress, check_blocks};
use crate::dialect::Reader;
use crate::error::ModelError;
use crate::fields::{number, parse_arguments, text};
use crate::reply::ModelEvent;
use agentd_protocol::{Block, StopReason, Usage};
use serde_json::{Value, json};

/// A block that is still growing.
#[derive(Debug)]
struct Part {
    index: u64,
    /// The block as it started; unknown fields are kept.
    start: Value,
    /// Its text, thinking or arguments so far.
    grown: String,
    signature: String,
}

/// Reads the events of one answer.
#[derive(Debug, Default)]
pub(crate) struct AnthropicStream {
    id: Option<String>,
    model: String,
    parts: Vec<Part>,
    usage: Usage,
    stop: Option<StopReason>,
    complete: bool,
}

impl Reader for AnthropicStream {
    fn is_complete(&self) -> bool {
        self.complete
    }

    fn whole(&mut self, mut body: Value, events: &mut Vec<ModelEvent>) -> Result<(), ModelError> {
        let content = match body.get_mut("content").map(Value::take) {
            Some(Value::Array(content)) => content,
            // A refusal may have no content.
            Some(Value::Null) | None if text(&body, "stop_reason") == "refusal" => Vec::new(),
            _ => return Err(ModelError::transient("the server's response contains no answer")),
        };
        self.begin_all(content, events)?;
        self.start(&body)?;
        self.complete = true;
        Ok(())
    }

    /// Takes one event. Its kind is in the data; the event name is only a fallback.
    fn frame(
        &mut self,
        name: &str,
        mut frame: Value,
        events: &mut Vec<ModelEvent>,
    ) -> Result<Progress, ModelError> {
        let kind = match text(&frame, "type") {
            "" => name.to_owned(),
            kind => kind.to_owned(),
        };
        match kind.as_str() {
            "message_start" => {
                let mut message = frame.get_mut("message").map(Value::take).unwrap_or_default();
                let content = message.get_mut("content").map(Value::take);
                self.start(&message)?;
                // Gateways that cannot stream put the whole answer here. A repeated start event repeats it, too.
                if let (Some(Value::Array(content)), true) = (content, self.parts.is_empty()) {
                    self.begin_all(content, events)?;
                }
            }
            "content_block_start" => {
                let block = frame
                    .get_mut("content_block")
                    .map(Value::take)
                    .unwrap_or_default();
                self.begin(number(&frame, "/index").unwrap_or_default(), block, events)?;
            }
            "content_block_delta" => self.grow(&frame, events),
            "message_delta" => {
                if let Some(reason) = frame.pointer("/delta/stop_reason").and_then(Value::as_str) {
                    self.stop = Some(stop_reason(reason));
                }
                self.count(frame.get("usage"));
            }
            "message_stop" => self.complete = true,
            "content_block_stop" => {}
            // A ping shows that the server is alive; events of newer versions are ignored.
            _ => return Ok(Progress::Alive),
        }
        Ok(Progress::Moved)
    }

    fn usage(&self) -> Usage {
        self.usage
    }

    fn finish(self: Box<Self>) -> Result<Outcome, ModelError> {
        self.into_outcome()
    }
}

impl AnthropicStream {
    /// Reads the metadata of the message.
    fn start(&mut self, message: &Value) -> Result<(), ModelError> {
        let id = text(message, "id");
        if self.id.as_deref().is_some_and(|known| known != id) {
            return Err(ModelError::transient("the stream contains two answers"));
        }
        self.id = Some(id.to_owned());
        text(message, "model").clone_into(&mut self.model);
        self.count(message.get("usage"));
        if let Some(reason) = message.get("stop_reason").and_then(Value::as_str) {
            self.stop = Some(stop_reason(reason));
        }
        Ok(())
    }

    fn begin_all(&mut self, content: Vec<Value>, events: &mut Vec<ModelEvent>) -> Result<(), ModelError> {
        (0..)
            .zip(content)
            .try_for_each(|(index, block)| self.begin(index, block, events))
    }

    /// Later counts replace earlier ones; a missing count keeps the earlier one.
    fn count(&mut self, usage: Option<&Value>) {
        let Some(usage) = usage else { return };
        let put = |slot: &mut u64, pointer: &str| {
            if let Some(count) = number(usage, pointer) {
                *slot = count;
            }
        };
        put(&mut self.usage.input, "/input_tokens");
        put(&mut self.usage.output, "/output_tokens");
        put(&mut self.usage.cache_read, "/cache_read_input_tokens");
        put(&mut self.usage.cache_write, "/cache_creation_input_tokens");
        put(
            &mut self.usage.cache_write_1h,
            "/cache_creation/ephemeral_1h_input_tokens",
        );
        put(
            &mut self.usage.reasoning,
            "/output_tokens_details/thinking_tokens",
        );
    }

    fn begin(&mut self, index: u64, start: Value, events: &mut Vec<ModelEvent>) -> Result<(), ModelError> {
        check_blocks(self.parts.len().saturating_add(1))?;
        let block = u32::try_from(self.parts.len()).unwrap_or(u32::MAX);
        let grown = match text(&start, "type") {
            "text" => text(&start, "text").to_owned(),
            "thinking" => text(&start, "thinking").to_owned(),
            "tool_use" => {
                events.push(ModelEvent::ToolStart {
                    block,
                    name: text(&start, "name").to_owned(),
                });
                String::new()
            }
            _ => String::new(),
        };
        let signature = text(&start, "signature").to_owned();
        if !grown.is_empty() {
            events.push(delta(text(&start, "type"), block, grown.clone()));
        }
        self.parts.push(Part {
            index,
            start,
            grown,
            signature,
        });
        Ok(())
    }

    fn grow(&mut self, frame: &Value, events: &mut Vec<ModelEvent>) {
        let index = number(frame, "/index").unwrap_or_default();
        let delta_of = frame.get("delta").unwrap_or(&Value::Null);
        let Some((at, part)) = self
            .parts
            .iter_mut()
            .enumerate()
            .rfind(|(_, part)| part.index == index)
        else {
            return;
        };
        let (kind, piece) = match text(delta_of, "type") {
            "text_delta" => ("text", text(delta_of, "text")),
            "thinking_delta" => ("thinking", text(delta_of, "thinking")),
            "input_json_delta" => ("tool_use", text(delta_of, "partial_json")),
            "signature_delta" => {
                part.signature.push_str(text(delta_of, "signature"));
                return;
            }
            "compaction_delta" => {
                part.compact(delta_of);
                return;
            }
            _ => return,
        };
        part.grown.push_str(piece);
        if !piece.is_empty() && text(&part.start, "type") == kind {
            events.push(delta(
                kind,
                u32::try_from(at).unwrap_or(u32::MAX),
                piece.to_owned(),
            ));
        }
    }

    /// The answer, if `message_stop` has arrived.
    fn into_outcome(self) -> Result<Outcome, ModelError> {
        if !self.complete {
            return Err(ModelError::transient(
                "the stream ended before the end of the answer",
            ));
        }
        let content: Vec<Block> = self.parts.into_iter().filter_map(Part::into_block).collect();
        Ok(Outcome {
            content,
            stop_reason: self.stop.unwrap_or(StopReason::EndTurn),
            usage: self.usage,
            cost_usd: None,
            model: self.model,
            id: self.id.filter(|id| !id.is_empty()),
        })
    }
}

impl Part {
    /// Appends to the server's summary of the conversation: its text, and the encrypted form that it expects back.
    fn compact(&mut self, delta: &Value) {
        let Some(fields) = self.start.as_object_mut() else {
            return;
        };
        for key in ["content", "encrypted_content"] {
            let Some(piece) = delta.get(key).and_then(Value::as_str) else {
                continue;
            };
            let before = fields.get(key).and_then(Value::as_str).unwrap_or_default();
            let whole = [before, piece].concat();
            fields.insert(key.to_owned(), whole.into());
        }
    }

    fn into_block(self) -> Option<Block> {
        let Self {
            start,
            grown,
            signature,
            ..
        } = self;
        Some(match text(&start, "type") {
            "text" if grown.is_empty() => return None,
            "text" => Block::Text { text: grown },
            "tool_use" => Block::ToolUse {
                id: text(&start, "id").to_owned(),
                name: text(&start, "name").to_owned(),
                // Servers that do not stream arguments send the whole input in the first event.
                input: match start.get("input") {
                    Some(Value::Object(input)) if grown.is_empty() => Value::Object(input.clone()),
                    _ => parse_arguments(&grown),
                },
            },
            "thinking" => {
                let raw = json!({ "type": "thinking", "thinking": grown, "signature": signature });
                Block::Thinking {
                    text: grown,
                    raw: Some(raw.to_string()),
                }
            }
            "" => return None,
            // Redacted thinking, server tools and newer kinds: stored opaquely, sent back unchanged.
            _ => {
                let mut whole = start;
                if let (Some(map), false) = (whole.as_object_mut(), grown.is_empty()) {
                    map.insert("input".to_owned(), parse_arguments(&grown));
                }
                Block::Thinking {
                    text: String::new(),
                    raw: Some(whole.to_string()),
                }
            }
        })
    }
}

fn delta(kind: &str, block: u32, text: String) -> ModelEvent {
    match kind {
        "text" => ModelEvent::TextDelta { block, text },
        "thinking" => ModelEvent::ThinkingDelta { block, text },
        _ => ModelEvent::ToolInputDelta { block, text },
    }
}

fn stop_reason(word: &str) -> StopReason {
    match word {
        "end_turn" => StopReason::EndTurn,
        "tool_use" => StopReason::ToolUse,
        "max_tokens" => StopReason::MaxTokens,
        "stop_sequence" => StopReason::StopSequence,
        "pause_turn" => StopReason::PauseTurn,
        "refusal" => StopReason::Refusal,
        "model_context_window_exceeded" => StopReason::ContextWindow,
        _ => StopReason::Other,
    }
}
