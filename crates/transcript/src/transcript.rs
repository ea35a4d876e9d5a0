//! The transcript: the fold from events to messages.

use crate::calibrate::Rates;
use crate::estimate;
use crate::step::StepCalls;
use agentd_protocol::{
    AttachedFile, Block, Event, EventBody, FailureClass, InputId, Message, ModelFailed, ModelFinished,
    ModelStarted, Role, Seq,
};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The prefix by which the model tells agentd's text from a person's; the base prompt explains it.
pub(crate) const NOTE_MARK: &str = "[agentd] ";

/// Stands in for a missing first message: providers require a conversation to begin with the user.
const NO_BEGINNING: &str = "The beginning of this conversation is missing.";

/// The conversation of one session so far.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Transcript {
    pub(crate) messages: Vec<Arc<Message>>,
    /// The position in the log at which each message was sealed.
    pub(crate) seqs: Vec<Seq>,
    /// The summary in the first message that replaces earlier messages.
    pub(crate) summary: Option<String>,
    pub(crate) generation: u64,
    /// Accepted inputs that have not joined yet.
    pub(crate) inputs: BTreeMap<InputId, Vec<Block>>,
    /// Notes that join at the next request.
    pub(crate) notes: Vec<Block>,
    pub(crate) step: StepCalls,
    pub(crate) tokens: u64,
    /// Whether `tokens` is based on the provider's own count.
    pub(crate) counted: bool,
    pub(crate) rate: Rates,
    /// Files that are shown after the summary.
    pub(crate) attached: Vec<AttachedFile>,
    /// Messages that were dropped after the first one, and whether the first one says so.
    pub(crate) left_out: u64,
    pub(crate) noted: bool,
    /// The ids of all calls so far.
    pub(crate) used: BTreeSet<String>,
    /// Whether the last event belonged to an imported log.
    pub(crate) quoting: bool,
}

impl Transcript {
    /// An empty conversation.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Folds one event. Events must come in the order of the log.
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "most events say nothing to the model"
    )]
    pub fn apply(&mut self, event: &Event) {
        match &event.body {
            EventBody::ImportedEvent(imported) => return self.quote(&imported.event, event.seq),
            _ => self.end_quote(),
        }
        match &event.body {
            EventBody::InputAccepted(accepted) => {
                self.inputs.insert(accepted.input, accepted.content.clone());
            }
            EventBody::InputCancelled(cancelled) => {
                self.inputs.remove(&cancelled.input);
            }
            EventBody::NoteInjected(note) => {
                let block = Block::text(format!("{NOTE_MARK}{}", note.text));
                self.count(std::slice::from_ref(&block));
                self.notes.push(block);
            }
            EventBody::ModelStarted(started) => self.join(started, event.seq),
            EventBody::ModelFinished(finished) => self.answer(finished, event.seq),
            EventBody::ModelFailed(failed) => self.keep_partial(failed, event.seq),
            EventBody::ToolProposed(proposed) => self.step.place(proposed.tool_call, proposed.index),
            EventBody::ToolFinished(finished) => {
                let tokens = self.step.finish(finished).map_or(0, estimate::of_blocks);
                self.add(tokens);
            }
            EventBody::ContextCompacted(compacted) => self.compact(compacted),
            EventBody::ContextPruned(pruned) => self.prune(pruned.to_seq),
            EventBody::ContextTrimmed(trimmed) => self.trim(trimmed.to_seq),
            EventBody::ContextTruncated(truncated) => {
                self.truncate(usize::try_from(truncated.max_result_bytes).unwrap_or(usize::MAX));
            }
            _ => {}
        }
    }

    /// The sealed messages. The list only grows, and its content never changes while [`Self::generation`] stays the same.
    #[must_use]
    pub fn messages(&self) -> &[Arc<Message>] {
        &self.messages
    }

    /// The content of an input that has not joined.
    #[must_use]
    pub fn waiting(&self, input: InputId) -> &[Block] {
        self.inputs.get(&input).map_or(&[], Vec::as_slice)
    }

    /// Changes only when a sealed message had to change; anything encoded before is then invalid.
    #[must_use]
    pub const fn generation(&self) -> u64 {
        self.generation
    }

    /// The approximate token count, including what will join at the next request, but without inputs that only wait.
    /// After an answer it is based on the provider's count, so the system prompt and tools are included.
    #[must_use]
    pub const fn estimate_tokens(&self) -> u64 {
        self.tokens
    }

    /// The approximate token count of waiting inputs.
    #[must_use]
    pub fn waiting_tokens(&self) -> u64 {
        let guess = self
            .inputs
            .values()
            .map(|blocks| estimate::of_blocks(blocks))
            .sum();
        self.rate.of(guess)
    }

    /// Whether a provider counted the conversation, so that the estimate includes the system prompt and the tools.
    #[must_use]
    pub const fn counted(&self) -> bool {
        self.counted
    }

    /// Seals what the next request adds: results in call order, then notes, then inputs.
    fn join(&mut self, started: &ModelStarted, seq: Seq) {
        self.rate.asks(&started.model);
        self.join_inputs(&started.inputs, seq);
    }

    pub(crate) fn join_inputs(&mut self, inputs: &[InputId], seq: Seq) {
        let mut content = std::mem::take(&mut self.step).seal();
        content.append(&mut self.notes);
        for input in inputs {
            let Some(blocks) = self.inputs.remove(input) else {
                continue;
            };
            self.count(&blocks);
            content.extend(blocks);
        }
        self.push(Role::User, content, seq);
    }

    fn answer(&mut self, finished: &ModelFinished, seq: Seq) {
        let usage = &finished.usage;
        let prompt = usage
            .input
            .saturating_add(usage.cache_read)
            .saturating_add(usage.cache_write);
        let counted = (prompt > 0).then_some((prompt, usage.output));
        self.say(finished.content.clone(), counted, seq);
    }

    /// Adds an answer, with the provider's count of the request and the answer if available.
    pub(crate) fn say(&mut self, mut content: Vec<Block>, counted: Option<(u64, u64)>, seq: Seq) {
        self.close_step(seq);
        content.retain(|block| self.is_new(block));
        if let Some((prompt, output)) = counted {
            self.rate.counted(prompt, output);
            self.tokens = prompt.saturating_add(output);
            self.counted = true;
        } else {
            self.count(&content);
        }
        self.step = StepCalls::of(&content);
        self.push(Role::Assistant, content, seq);
    }

    /// Keeps a cancelled answer as far as people saw it; other failures leave nothing.
    pub(crate) fn keep_partial(&mut self, failed: &ModelFailed, seq: Seq) {
        let (FailureClass::Cancelled, Some(text)) = (failed.class, &failed.partial) else {
            return;
        };
        self.close_step(seq);
        let content = vec![Block::text(text.clone())];
        self.count(&content);
        self.push(Role::Assistant, content, seq);
    }

    /// A cut or hand-made log may have an answer where results were due: substitutes are inserted before it.
    pub(crate) fn close_step(&mut self, seq: Seq) {
        if !self.step.is_empty() {
            let content = std::mem::take(&mut self.step).seal();
            self.push(Role::User, content, seq);
        }
    }

    /// Drops duplicates: two calls with one id could not be told apart, so the first one counts.
    fn is_new(&mut self, block: &Block) -> bool {
        match block {
            Block::ToolUse { id, .. } => self.used.insert(id.clone()),
            // Only a request carries results, and they are created here.
            Block::ToolResult { .. } => false,
            _ => true,
        }
    }

    fn push(&mut self, role: Role, content: Vec<Block>, seq: Seq) {
        if !content.iter().any(says_something) {
            return;
        }
        if self.messages.is_empty() && role == Role::Assistant {
            let content = vec![Block::text(format!("{NOTE_MARK}{NO_BEGINNING}"))];
            self.seal(Role::User, content, seq);
        }
        self.seal(role, content, seq);
    }

    fn seal(&mut self, role: Role, content: Vec<Block>, seq: Seq) {
        self.messages.push(Arc::new(Message { role, content }));
        self.seqs.push(seq);
    }

    pub(crate) fn count(&mut self, blocks: &[Block]) {
        self.add(estimate::of_blocks(blocks));
    }

    pub(crate) fn add(&mut self, guess: u64) {
        self.rate.added(guess);
        self.tokens = self.tokens.saturating_add(self.rate.of(guess));
    }
}

/// Whether a block is more than white space, which some providers reject as a message.
fn says_something(block: &Block) -> bool {
    match block {
        Block::Text { text } => !text.trim().is_empty(),
        Block::Image { .. } | Block::Thinking { .. } | Block::ToolUse { .. } | Block::ToolResult { .. } => {
            true
        }
        Block::Unknown => false,
    }
}

#[cfg(test)]
mod tests;
