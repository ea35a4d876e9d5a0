//! Answers of Ollama's own protocol: one JSON object per line, the last of which has the token counts.

use crate::decoder::{Outcome, Progress, check_blocks};
use crate::dialect::Reader;
use crate::error::ModelError;
use crate::fields::{number, parse_arguments, text};
use crate::reply::ModelEvent;
use crate::thoughts::{Piece, Thoughts};
use agentd_protocol::{Block, StopReason, Usage};
use serde_json::{Value, json};

/// Reads the lines of one answer.
#[derive(Debug, Default)]
pub(crate) struct OllamaStream {
    window: u64,
    model: String,
    text: String,
    text_block: Option<u32>,
    thoughts: Thoughts,
    thinking: String,
    thinking_block: Option<u32>,
    calls: Vec<Block>,
    blocks: u32,
    usage: Usage,
    done: Option<String>,
}

impl Reader for OllamaStream {
    fn is_complete(&self) -> bool {
        self.done.is_some()
    }

    fn whole(&mut self, body: Value, events: &mut Vec<ModelEvent>) -> Result<(), ModelError> {
        self.frame("", body, events)?;
        if self.done.is_none() {
            return Err(ModelError::transient("the server's response contains no answer"));
        }
        Ok(())
    }

    fn frame(&mut self, _: &str, frame: Value, events: &mut Vec<ModelEvent>) -> Result<Progress, ModelError> {
        if self.model.is_empty() {
            text(&frame, "model").clone_into(&mut self.model);
        }
        let pieces = events.len();
        let message = frame.get("message").unwrap_or(&Value::Null);
        self.think(text(message, "thinking"), events);
        for piece in self.thoughts.feed(text(message, "content")) {
            self.take(piece, events);
        }
        let calls = message.get("tool_calls").and_then(Value::as_array);
        for call in calls.into_iter().flatten() {
            self.call(call, events)?;
        }
        if frame.get("done") == Some(&Value::Bool(true)) {
            self.end(&frame);
        }
        Ok(if events.len() > pieces || self.done.is_some() {
            Progress::Moved
        } else {
            Progress::Alive
        })
    }

    fn usage(&self) -> Usage {
        self.usage
    }

    fn finish(self: Box<Self>) -> Result<Outcome, ModelError> {
        self.into_outcome()
    }
}

impl OllamaStream {
    /// A reader for a model with a window of this many tokens.
    pub(crate) fn new(window: u64) -> Self {
        Self {
            window,
            ..Self::default()
        }
    }

    fn take(&mut self, piece: Piece, events: &mut Vec<ModelEvent>) {
        match piece {
            Piece::Thought(text) => self.think(&text, events),
            Piece::Said(text) => self.say(&text, events),
        }
    }

    fn say(&mut self, piece: &str, events: &mut Vec<ModelEvent>) {
        if !piece.is_empty() {
            self.text.push_str(piece);
            events.push(ModelEvent::TextDelta {
                block: number_of(&mut self.text_block, &mut self.blocks),
                text: piece.to_owned(),
            });
        }
    }

    fn think(&mut self, piece: &str, events: &mut Vec<ModelEvent>) {
        if !piece.is_empty() {
            self.thinking.push_str(piece);
            events.push(ModelEvent::ThinkingDelta {
                block: number_of(&mut self.thinking_block, &mut self.blocks),
                text: piece.to_owned(),
            });
        }
    }

    /// A call arrives whole; only newer servers give it an id.
    fn call(&mut self, call: &Value, events: &mut Vec<ModelEvent>) -> Result<(), ModelError> {
        check_blocks(self.calls.len().saturating_add(1))?;
        let function = call.get("function").unwrap_or(&Value::Null);
        let block = number_of(&mut None, &mut self.blocks);
        let name = text(function, "name").to_owned();
        let input = match function.get("arguments") {
            Some(object @ Value::Object(_)) => object.clone(),
            Some(Value::String(text)) => parse_arguments(text),
            None | Some(Value::Null) => json!({}),
            Some(other) => Value::String(other.to_string()),
        };
        events.push(ModelEvent::ToolStart {
            block,
            name: name.clone(),
        });
        events.push(ModelEvent::ToolInputDelta {
            block,
            text: input.to_string(),
        });
        let id = match text(call, "id") {
            "" => format!("call_{}", self.calls.len().saturating_add(1)),
            id => id.to_owned(),
        };
        self.calls.push(Block::ToolUse { id, name, input });
        Ok(())
    }

    fn end(&mut self, frame: &Value) {
        self.done = Some(text(frame, "done_reason").to_owned());
        self.usage = Usage {
            input: number(frame, "/prompt_eval_count").unwrap_or_default(),
            output: number(frame, "/eval_count").unwrap_or_default(),
            ..Usage::default()
        };
    }

    fn into_outcome(mut self) -> Result<Outcome, ModelError> {
        if let Some(piece) = self.thoughts.end() {
            self.take(piece, &mut Vec::new());
        }
        let Some(done) = &self.done else {
            return Err(ModelError::transient(
                "the stream ended before the end of the answer",
            ));
        };
        let empty = self.text.is_empty() && self.thinking.is_empty() && self.calls.is_empty();
        if empty && matches!(done.as_str(), "load" | "unload") {
            return Err(ModelError::transient(
                "the server loaded the model and did not answer",
            ));
        }
        let stop_reason = self.stop_reason(done);
        let mut content = Vec::new();
        if !self.thinking.is_empty() {
            content.push(Block::Thinking {
                raw: Some(json!({ "thinking": self.thinking }).to_string()),
                text: self.thinking,
            });
        }
        if !self.text.is_empty() {
            content.push(Block::text(self.text));
        }
        content.extend(self.calls);
        Ok(Outcome {
            content,
            stop_reason,
            usage: self.usage,
            cost_usd: None,
            model: self.model,
            id: None,
        })
    }

    /// Separates an answer cut off by the full window from one cut off by its own limit: the former cannot be continued.
    /// The counts reveal it. They do not reveal a silently truncated prompt, because they leave out what the server had
    /// cached, so the request forbids truncation.
    fn stop_reason(&self, done: &str) -> StopReason {
        let used = self.usage.input.saturating_add(self.usage.output);
        match done {
            "length" if self.window > 0 && used >= self.window => StopReason::ContextWindow,
            "length" => StopReason::MaxTokens,
            _ if !self.calls.is_empty() => StopReason::ToolUse,
            _ => StopReason::EndTurn,
        }
    }
}

/// The number of a block; the first use allocates the next free one.
fn number_of(own: &mut Option<u32>, next: &mut u32) -> u32 {
    *own.get_or_insert_with(|| {
        let block = *next;
        *next = next.saturating_add(1);
        block
    })
}
