//! Decodes the bytes of an answer into events and one final reply. Pure: no I/O, no clock.

use crate::classify::classify_stream_error;
use crate::dialect::{Framing, Reader, codec};
use crate::error::ModelError;
use crate::frame;
use crate::halves::Halves;
use crate::lines::LineDecoder;
use crate::repair::repair;
use crate::reply::{ModelEvent, ModelReply};
use crate::room::{Held, ROOM};
use crate::spec::{ModelSpec, dialect_name};
use crate::sse::{SseDecoder, SseEvent, SseItem};
use crate::text_calls::{Hold, Mode, lift};
use agentd_protocol::{Block, FailureClass, Price, StopReason, Usage};
use serde_json::Value;

/// The longest answer in bytes on the wire.
pub(crate) const MAX_ANSWER: usize = 64 << 20;
/// The marker that ends a stream at OpenAI. Gateways add it to every dialect.
const DONE: &str = "[DONE]";
/// The most blocks of one answer, tool calls included.
pub(crate) const MAX_BLOCKS: usize = 4_096;

/// How much progress a chunk of bytes made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Progress {
    /// None yet: an incomplete line.
    Nothing,
    /// The server is alive (a comment, a ping), but the answer did not grow.
    Alive,
    /// The answer grew.
    Moved,
}

/// The final result of a dialect's reader.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) content: Vec<Block>,
    pub(crate) stop_reason: StopReason,
    pub(crate) usage: Usage,
    /// The cost that the provider itself reports.
    pub(crate) cost_usd: Option<f64>,
    pub(crate) model: String,
    pub(crate) id: Option<String>,
}

impl Outcome {
    /// Drops calls without a name and arguments: some servers send one with a plain answer.
    fn drop_empty_calls(&mut self) {
        let is_call = |block: &Block| matches!(block, Block::ToolUse { .. });
        let before = self.content.len();
        self.content.retain(|block| !is_empty_call(block));
        let dropped = self.content.len() < before;
        if dropped && self.stop_reason == StopReason::ToolUse && !self.content.iter().any(is_call) {
            self.stop_reason = StopReason::EndTurn;
        }
    }
}

fn is_empty_call(block: &Block) -> bool {
    match block {
        Block::ToolUse { name, input, .. } => {
            name.trim().is_empty() && input.as_object().is_some_and(serde_json::Map::is_empty)
        }
        _ => false,
    }
}

/// Decodes one answer.
#[derive(Debug)]
pub struct Decoder {
    frames: Frames,
    reader: Box<dyn Reader>,
    /// The names of the offered tools.
    tools: Vec<String>,
    /// What a call in the text means.
    mode: Mode,
    halves: Halves,
    hold: Hold,
    price: Option<Price>,
    model: String,
    taken: usize,
    held: Held,
}

/// Not the provider's fault: the call is retried, and other answers will have ended by then.
pub(crate) fn crowded(most: u64) -> ModelError {
    let what = "the answers of all sessions together are larger than limits.answers_bytes";
    ModelError::transient(format!("{what} ({most} bytes)"))
}

/// Splits bytes into frames.
#[derive(Debug)]
enum Frames {
    Events(SseDecoder),
    Lines(LineDecoder),
}

impl Frames {
    fn feed(&mut self, bytes: &[u8], items: &mut Vec<SseItem>) -> Result<(), ModelError> {
        match self {
            Self::Events(sse) => sse.feed(bytes, items).map_err(|_| too_long()),
            Self::Lines(lines) => lines.feed(bytes, items).map_err(|_| too_long()),
        }
    }

    fn finish(&mut self, items: &mut Vec<SseItem>) -> Result<(), ModelError> {
        match self {
            Self::Events(sse) => sse.finish(items).map_err(|_| too_long()),
            Self::Lines(lines) => lines.finish(items).map_err(|_| too_long()),
        }
    }
}

impl Decoder {
    /// A decoder for an answer of this model; `tools` are the names of the tools that the model was offered.
    ///
    /// # Errors
    /// When the dialect does not use HTTP.
    pub fn new(spec: &ModelSpec, tools: &[String]) -> Result<Self, ModelError> {
        let Some(codec) = codec(spec.dialect) else {
            let what = format!(
                "the dialect {} does not support streaming",
                dialect_name(spec.dialect)
            );
            return Err(ModelError::new(FailureClass::InvalidRequest, what));
        };
        let frames = match codec.framing() {
            Framing::Events => Frames::Events(SseDecoder::new(SseDecoder::DEFAULT_LIMIT)),
            Framing::Lines => Frames::Lines(LineDecoder::new(SseDecoder::DEFAULT_LIMIT)),
        };
        let mode = Mode::of(spec.tool_protocol, spec.capabilities.text_calls);
        Ok(Self {
            frames,
            reader: codec.reader_of(spec),
            tools: tools.to_vec(),
            mode,
            halves: Halves::default(),
            hold: Hold::new(mode, tools),
            price: spec.price,
            model: spec.model.clone(),
            taken: 0,
            held: ROOM.hold(),
        })
    }

    #[cfg(test)]
    pub(crate) fn within(mut self, room: &'static crate::room::Room) -> Self {
        self.held = room.hold();
        self
    }

    /// Takes the next bytes and appends the events that they complete.
    ///
    /// # Errors
    /// When the provider reports an error, or the stream is malformed. The answer is then void.
    pub fn feed(&mut self, bytes: &[u8], events: &mut Vec<ModelEvent>) -> Result<Progress, ModelError> {
        if self.is_complete() {
            return Ok(Progress::Alive);
        }
        self.taken = self.taken.saturating_add(bytes.len());
        if self.taken > MAX_ANSWER {
            return Err(ModelError::transient("the answer is longer than 64 MiB"));
        }
        self.held.grow(self.taken).map_err(crowded)?;
        let mut items = Vec::new();
        let fed = self.frames.feed(bytes, &mut items);
        let progress = self.take(items, events)?;
        if !self.is_complete() {
            fed?;
        }
        Ok(progress)
    }

    /// Takes a complete answer that was not streamed.
    ///
    /// # Errors
    /// When it is not JSON, reports an error, or is not an answer of this dialect.
    pub fn whole(mut self, body: &[u8], events: &mut Vec<ModelEvent>) -> Result<ModelReply, ModelError> {
        self.take_whole(body, events)?;
        self.reply(events)
    }

    /// The tokens counted so far. They are spent even if the answer fails.
    #[must_use]
    pub fn usage(&self) -> Usage {
        self.reader.usage()
    }

    /// The same as [`Self::whole`], for callers that also need the usage of a failed answer.
    pub(crate) fn take_whole(&mut self, body: &[u8], events: &mut Vec<ModelEvent>) -> Result<(), ModelError> {
        let text = str::from_utf8(body)
            .map_err(|error| ModelError::transient(format!("the answer is not JSON: {error}")))?;
        let body = self.parse(text, "the answer")?;
        if is_error(&body) {
            return Err(classify_stream_error(&body));
        }
        let known = events.len();
        self.reader.whole(body, events)?;
        self.pass(events, known);
        Ok(())
    }

    /// Whether the answer is complete. Anything that follows is ignored.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.reader.is_complete()
    }

    /// Ends the stream and returns the answer, if it is complete.
    ///
    /// # Errors
    /// When the terminal marker is missing.
    pub fn finish(mut self, events: &mut Vec<ModelEvent>) -> Result<ModelReply, ModelError> {
        if !self.is_complete() {
            let mut items = Vec::new();
            self.frames.finish(&mut items)?;
            self.take(items, events)?;
        }
        self.reply(events)
    }

    fn reply(mut self, events: &mut Vec<ModelEvent>) -> Result<ModelReply, ModelError> {
        let mut outcome = self.reader.finish()?;
        check_blocks(outcome.content.len())?;
        self.halves.join_blocks(&mut outcome.content);
        outcome.drop_empty_calls();
        let mut lifted = lift(outcome.content, outcome.stop_reason, self.mode, &self.tools);
        self.hold.end(lifted.words, events);
        let repaired = repair(&mut lifted.content, lifted.stop, &self.tools);
        lifted.reading.repaired.extend(repaired);
        Ok(ModelReply {
            cost_usd: self
                .price
                .map(|price| price.cost(&outcome.usage))
                .or(outcome.cost_usd),
            content: lifted.content,
            stop_reason: lifted.stop,
            usage: outcome.usage,
            model: if outcome.model.is_empty() {
                self.model
            } else {
                outcome.model
            },
            request_id: outcome.id,
            reading: lifted.reading,
        })
    }

    /// Makes the events from `from` on fit to be seen.
    fn pass(&mut self, events: &mut Vec<ModelEvent>, from: usize) {
        self.halves
            .join_events(events.get_mut(from..).unwrap_or_default());
        self.hold.pass(events, from);
    }

    fn parse(&mut self, text: &str, what: &str) -> Result<Value, ModelError> {
        let frame = frame::parse(text)
            .map_err(|error| ModelError::transient(format!("{what} is not JSON: {error}")))?;
        if frame.halves {
            self.halves.found();
        }
        Ok(frame.value)
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
        if data.is_empty() || self.is_complete() {
            return Ok(Progress::Alive);
        }
        if data == DONE {
            self.reader.done();
            return Ok(if self.is_complete() {
                Progress::Moved
            } else {
                Progress::Alive
            });
        }
        let frame = self.parse(data, "a frame of the stream")?;
        if event.name == "error" || is_error(&frame) {
            return Err(classify_stream_error(&frame));
        }
        let known = events.len();
        let progress = self.reader.frame(&event.name, frame, events)?;
        let block = events.last().map_or(0, ModelEvent::block);
        self.pass(events, known);
        check_blocks(usize::try_from(block).unwrap_or(usize::MAX).saturating_add(1))?;
        Ok(progress)
    }
}

/// Refuses an answer with an absurd number of blocks: no client could run a million calls.
pub(crate) fn check_blocks(count: usize) -> Result<(), ModelError> {
    if count > MAX_BLOCKS {
        return Err(ModelError::transient(format!(
            "the answer has more than {MAX_BLOCKS} blocks"
        )));
    }
    Ok(())
}

fn is_error(frame: &Value) -> bool {
    frame.get("error").is_some_and(|error| !error.is_null())
}

fn too_long() -> ModelError {
    ModelError::transient("a line or an event of the stream is longer than 8 MiB")
}

#[cfg(test)]
mod tests;
