//! Bytes of an answer -> pieces, and one answer at the end. Pure: no I/O, no clock.

use crate::anthropic::AnthropicStream;
use crate::chat::ChatStream;
use crate::classify::classify_stream_error;
use crate::error::ModelError;
use crate::reply::{ModelEvent, ModelReply};
use crate::spec::{ModelSpec, dialect_name};
use crate::sse::{SseDecoder, SseEvent, SseItem};
use agentd_protocol::{Block, FailureClass, Price, StopReason, Usage};
use agentd_settings::Dialect;
use serde_json::Value;

/// The longest answer in bytes on the wire.
const MAX_ANSWER: usize = 64 << 20;

/// How much some bytes told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Progress {
    /// Nothing yet: half a line.
    Nothing,
    /// The server lives (a comment, a ping), but the answer did not grow.
    Alive,
    /// The answer grew.
    Moved,
}

/// What a dialect's stream came to.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) content: Vec<Block>,
    pub(crate) stop_reason: StopReason,
    pub(crate) usage: Usage,
    /// What the provider itself says it cost.
    pub(crate) cost_usd: Option<f64>,
    pub(crate) model: String,
    pub(crate) id: Option<String>,
}

#[derive(Debug)]
enum Stream {
    Anthropic(AnthropicStream),
    Chat(ChatStream),
}

/// Decodes one streamed answer.
#[derive(Debug)]
pub struct Decoder {
    sse: SseDecoder,
    stream: Stream,
    price: Option<Price>,
    model: String,
    taken: usize,
}

impl Decoder {
    /// A decoder for an answer of this model.
    ///
    /// # Errors
    /// When the dialect does not stream over HTTP.
    pub fn new(spec: &ModelSpec) -> Result<Self, ModelError> {
        let stream = match spec.dialect {
            Dialect::Anthropic => Stream::Anthropic(AnthropicStream::default()),
            Dialect::OpenaiChat => Stream::Chat(ChatStream::default()),
            other @ (Dialect::OpenaiResponses
            | Dialect::Gemini
            | Dialect::LlamaCompletion
            | Dialect::Ollama
            | Dialect::Scripted) => {
                let what = format!("the dialect {} cannot be streamed", dialect_name(other));
                return Err(ModelError::new(FailureClass::InvalidRequest, what));
            }
        };
        let sse = SseDecoder::new(SseDecoder::DEFAULT_LIMIT);
        Ok(Self {
            sse,
            stream,
            price: spec.price,
            model: spec.model.clone(),
            taken: 0,
        })
    }

    /// Takes the next bytes and appends the pieces that they complete.
    ///
    /// # Errors
    /// When the provider reports an error, or the stream is not what it should be. The answer is then void.
    pub fn feed(&mut self, bytes: &[u8], events: &mut Vec<ModelEvent>) -> Result<Progress, ModelError> {
        self.taken = self.taken.saturating_add(bytes.len());
        if self.taken > MAX_ANSWER {
            return Err(ModelError::transient("the answer is longer than 64 MiB"));
        }
        let mut items = Vec::new();
        self.sse.feed(bytes, &mut items).map_err(|_| too_long())?;
        self.take(items, events)
    }

    /// Whether the terminal marker has come: what follows can only be an error.
    #[must_use]
    pub const fn is_complete(&self) -> bool {
        match &self.stream {
            Stream::Anthropic(stream) => stream.is_complete(),
            Stream::Chat(stream) => stream.is_complete(),
        }
    }

    /// The bytes ended: the answer, if it is complete.
    ///
    /// # Errors
    /// When the terminal marker is missing.
    pub fn finish(mut self, events: &mut Vec<ModelEvent>) -> Result<ModelReply, ModelError> {
        let mut items = Vec::new();
        self.sse.finish(&mut items).map_err(|_| too_long())?;
        self.take(items, events)?;
        let outcome = match self.stream {
            Stream::Anthropic(stream) => stream.finish(),
            Stream::Chat(stream) => stream.finish(),
        }?;
        Ok(ModelReply {
            cost_usd: self
                .price
                .map(|price| price.cost(&outcome.usage))
                .or(outcome.cost_usd),
            content: outcome.content,
            stop_reason: outcome.stop_reason,
            usage: outcome.usage,
            model: if outcome.model.is_empty() {
                self.model
            } else {
                outcome.model
            },
            request_id: outcome.id,
        })
    }

    fn take(&mut self, items: Vec<SseItem>, events: &mut Vec<ModelEvent>) -> Result<Progress, ModelError> {
        let mut progress = Progress::Nothing;
        for item in items {
            progress = progress.max(match item {
                SseItem::Comment => Progress::Alive,
                SseItem::Event(event) => self.event(&event, events)?,
            });
        }
        Ok(progress)
    }

    fn event(&mut self, event: &SseEvent, events: &mut Vec<ModelEvent>) -> Result<Progress, ModelError> {
        let data = event.data.trim();
        if data.is_empty() {
            return Ok(Progress::Alive);
        }
        if let (Stream::Chat(stream), "[DONE]") = (&mut self.stream, data) {
            stream.end();
            return Ok(Progress::Moved);
        }
        let frame: Value = serde_json::from_str(data)
            .map_err(|error| ModelError::transient(format!("a frame of the stream is not JSON: {error}")))?;
        if event.name == "error" || frame.get("error").is_some_and(|error| !error.is_null()) {
            return Err(classify_stream_error(&frame));
        }
        match &mut self.stream {
            Stream::Anthropic(stream) => stream.frame(&event.name, frame, events),
            Stream::Chat(stream) => stream.frame(&frame, events),
        }
    }
}

fn too_long() -> ModelError {
    ModelError::transient("a line or an event of the stream is longer than 8 MiB")
}

#[cfg(test)]
mod tests;
