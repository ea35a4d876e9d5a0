//! Answers of a raw completion.

use crate::decoder::{Outcome, Progress};
use crate::dialect::Reader;
use crate::error::ModelError;
use crate::fields::{number, text};
use crate::reply::ModelEvent;
use crate::thoughts::{Piece, Thoughts, split_opened};
use agentd_protocol::{Block, StopReason, Usage};
use serde_json::Value;

/// Reads the frames of one answer.
#[derive(Debug, Default)]
pub(crate) struct CompletionStream {
    window: u64,
    model: String,
    thoughts: Thoughts,
    thinking: String,
    text: String,
    /// The prompt ended inside the reasoning.
    opened: bool,
    usage: Usage,
    stop: Option<StopReason>,
}

impl Reader for CompletionStream {
    fn is_complete(&self) -> bool {
        self.stop.is_some()
    }

    fn whole(&mut self, body: Value, events: &mut Vec<ModelEvent>) -> Result<(), ModelError> {
        if !body.get("content").is_some_and(Value::is_string) {
            return Err(ModelError::transient("the server's response contains no answer"));
        }
        self.frame("", body, events)?;
        Ok(())
    }

    fn frame(&mut self, _: &str, frame: Value, events: &mut Vec<ModelEvent>) -> Result<Progress, ModelError> {
        for piece in self.thoughts.feed(text(&frame, "content")) {
            self.take(piece, events);
        }
        if frame.get("stop") == Some(&Value::Bool(true)) {
            self.end(&frame);
        }
        // A piece counts when it arrives, because it may be held back until it is clear whether it is a mark.
        let grew = !text(&frame, "content").is_empty() || frame.get("prompt_progress").is_some();
        Ok(if grew || self.stop.is_some() {
            Progress::Moved
        } else {
            Progress::Alive
        })
    }

    fn usage(&self) -> Usage {
        self.usage
    }

    fn finish(mut self: Box<Self>) -> Result<Outcome, ModelError> {
        if let Some(piece) = self.thoughts.end() {
            self.take(piece, &mut Vec::new());
        }
        let Some(stop_reason) = self.stop else {
            return Err(ModelError::transient(
                "the stream ended before the end of the answer",
            ));
        };
        Ok(Outcome {
            content: self.blocks(),
            stop_reason,
            usage: self.usage,
            cost_usd: None,
            model: self.model,
            id: None,
        })
    }
}

impl CompletionStream {
    /// A reader for a model with a window of this many tokens.
    pub(crate) fn new(window: u64) -> Self {
        Self {
            window,
            ..Self::default()
        }
    }

    fn take(&mut self, piece: Piece, events: &mut Vec<ModelEvent>) {
        let block = u32::from(!self.thinking.is_empty());
        match piece {
            Piece::Thought(text) => {
                self.thinking.push_str(&text);
                events.push(ModelEvent::ThinkingDelta { block: 0, text });
            }
            Piece::Said(text) => {
                let text = if self.text.is_empty() {
                    text.trim_start().to_owned()
                } else {
                    text
                };
                if !text.is_empty() {
                    self.text.push_str(&text);
                    events.push(ModelEvent::TextDelta { block, text });
                }
            }
        }
    }

    fn blocks(&self) -> Vec<Block> {
        let (thinking, said) = if self.opened && self.thinking.is_empty() {
            split_opened(&self.text)
        } else {
            (self.thinking.as_str(), self.text.as_str())
        };
        let thinking = Some(thinking.trim())
            .filter(|text| !text.is_empty())
            .map(|text| Block::Thinking {
                text: text.to_owned(),
                raw: None,
            });
        let said = Some(said).filter(|text| !text.trim().is_empty()).map(Block::text);
        thinking.into_iter().chain(said).collect()
    }

    fn end(&mut self, frame: &Value) {
        text(frame, "model").clone_into(&mut self.model);
        self.opened = text(frame, "prompt").trim_end().ends_with("<think>");
        self.count(frame);
        self.stop = Some(self.stop_reason(frame));
    }

    /// `tokens_cached` is the cache size after the answer, not before: cache hits are the prompt less the tokens processed.
    fn count(&mut self, frame: &Value) {
        let read = number(frame, "/timings/prompt_n").unwrap_or_default();
        let prompt = number(frame, "/tokens_evaluated").unwrap_or(read);
        let cached = number(frame, "/timings/cache_n").unwrap_or_else(|| match read {
            0 => 0,
            read => prompt.saturating_sub(read),
        });
        let cached = cached.min(prompt);
        self.usage = Usage {
            input: prompt.saturating_sub(cached),
            output: number(frame, "/tokens_predicted")
                .or_else(|| number(frame, "/timings/predicted_n"))
                .unwrap_or_default(),
            cache_read: cached,
            ..Usage::default()
        };
    }

    fn stop_reason(&self, frame: &Value) -> StopReason {
        let is = |name: &str| frame.get(name) == Some(&Value::Bool(true));
        let used = self.usage.input + self.usage.cache_read + self.usage.output;
        let full = self.window > 0 && used >= self.window;
        match text(frame, "stop_type") {
            // The server dropped a part of the conversation, so this answers a different question.
            _ if is("truncated") => StopReason::ContextWindow,
            "limit" if full => StopReason::ContextWindow,
            "limit" => StopReason::MaxTokens,
            "word" => StopReason::StopSequence,
            // Older servers have a separate field for each reason.
            "" if is("stopped_limit") => StopReason::MaxTokens,
            _ => StopReason::EndTurn,
        }
    }
}
