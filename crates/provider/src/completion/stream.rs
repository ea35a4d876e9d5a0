//! Answers of a raw completion.

use crate::completion::thoughts::Thoughts;
use crate::decoder::{Outcome, Progress};
use crate::dialect::Reader;
use crate::error::ModelError;
use crate::fields::{number, text};
use crate::reply::ModelEvent;
use agentd_protocol::{StopReason, Usage};
use serde_json::Value;

/// Reads the frames of one answer.
#[derive(Debug, Default)]
pub(crate) struct CompletionStream {
    window: u64,
    model: String,
    thoughts: Thoughts,
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
        self.thoughts.feed(text(&frame, "content"), events);
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

    fn finish(self: Box<Self>) -> Result<Outcome, ModelError> {
        let Some(stop_reason) = self.stop else {
            return Err(ModelError::transient(
                "the stream ended before the end of the answer",
            ));
        };
        Ok(Outcome {
            content: self.thoughts.into_blocks(self.opened),
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
