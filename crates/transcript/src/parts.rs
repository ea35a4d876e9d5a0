//! The contents of the window and their approximate cost, so that people can see where the tokens go.

use crate::estimate;
use crate::prune::CLEARED;
use crate::transcript::{NOTE_MARK, Transcript};
use agentd_protocol::{Block, Message, Role, Seq};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// The kind of content in a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PartKind {
    /// The part that a provider counts in addition to the conversation: the system prompt and the tools.
    Frame,
    /// The summary of compacted messages, with the files shown after it.
    Summary,
    /// Text from people.
    Said,
    /// Notes from agentd.
    Notes,
    /// Text from the model.
    Answers,
    /// The model's thinking.
    Thinking,
    /// The model's tool calls.
    Calls,
    /// Results of tool calls.
    Results,
    /// Results that have been cleared.
    Cleared,
}

impl PartKind {
    /// The name for programs.
    #[must_use]
    pub const fn key(self) -> &'static str {
        match self {
            Self::Frame => "system",
            Self::Summary => "summary",
            Self::Said => "said",
            Self::Notes => "notes",
            Self::Answers => "answers",
            Self::Thinking => "thinking",
            Self::Calls => "calls",
            Self::Results => "results",
            Self::Cleared => "cleared",
        }
    }

    /// The name for people.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Frame => "system prompt and tools",
            Self::Summary => "summary",
            Self::Said => "messages of people",
            Self::Notes => "notes of agentd",
            Self::Answers => "answers",
            Self::Thinking => "thinking",
            Self::Calls => "tool calls",
            Self::Results => "tool results",
            Self::Cleared => "cleared tool results",
        }
    }
}

/// One part of the window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    /// The kind of content.
    pub kind: PartKind,
    /// The number of items.
    pub items: usize,
    /// The approximate number of tokens.
    pub tokens: u64,
    /// How many of them the provider has in its cache.
    pub cached: u64,
}

/// One block of the window.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// The event that sealed its message; of an open step, the last event so far.
    pub seq: Seq,
    /// The kind of content.
    pub kind: PartKind,
    /// The tool of a call or a result; otherwise empty.
    pub tool: String,
    /// The approximate number of tokens.
    pub tokens: u64,
}

impl Transcript {
    /// All blocks of the conversation with their kinds, in its order; those of the open step have no seq yet.
    fn blocks(&self) -> impl Iterator<Item = (PartKind, Option<Seq>, &Block)> {
        let sealed = self.messages.iter().zip(&self.seqs).enumerate();
        let sealed = sealed.flat_map(|(at, (message, seq))| {
            let summary = at == 0 && self.summary.is_some();
            message.content.iter().map(move |block| {
                let kind = if summary {
                    PartKind::Summary
                } else {
                    kind_of(message, block)
                };
                (kind, Some(*seq), block)
            })
        });
        sealed.chain(self.step.blocks().map(|block| (PartKind::Results, None, block)))
    }

    /// The parts of the next request, largest first. Together they amount to about [`Self::estimate_tokens`]. Messages
    /// sealed up to the event `cached_up_to` are in the provider's cache; 0: none is.
    #[must_use]
    pub fn parts(&self, cached_up_to: Seq) -> Vec<Part> {
        let mut sums: BTreeMap<PartKind, (usize, u64, u64)> = BTreeMap::new();
        let mut add = |kind, tokens, cached: bool| {
            let (items, sum, in_cache) = sums.entry(kind).or_default();
            *items += 1;
            *sum += tokens;
            *in_cache += if cached { tokens } else { 0 };
        };
        for (kind, seq, block) in self.blocks() {
            let cached = seq.is_some_and(|seq| seq <= cached_up_to);
            add(kind, estimate::of_block(block), cached);
        }
        let guessed: u64 = sums.values().map(|(_, tokens, _)| tokens).sum();
        let mut parts: Vec<Part> = sums
            .into_iter()
            .map(|(kind, (items, tokens, cached))| Part {
                kind,
                items,
                tokens,
                cached,
            })
            .collect();
        if self.counted() && self.tokens > guessed {
            parts.push(Part {
                kind: PartKind::Frame,
                items: 1,
                tokens: self.tokens - guessed,
                cached: if cached_up_to > 0 {
                    self.tokens - guessed
                } else {
                    0
                },
            });
        }
        parts.sort_by_key(|part| (Reverse(part.tokens), part.kind));
        parts
    }

    /// The largest items, at most `most`, largest first. `head` is the last event so far.
    #[must_use]
    pub fn largest(&self, most: usize, head: Seq) -> Vec<Item> {
        let mut tools = BTreeMap::new();
        let mut items: Vec<Item> = Vec::new();
        for (kind, seq, block) in self.blocks() {
            let tool = match block {
                Block::ToolUse { id, name, .. } => {
                    tools.insert(id.as_str(), name.as_str());
                    name.as_str()
                }
                Block::ToolResult { tool_use_id, .. } => {
                    tools.get(tool_use_id.as_str()).copied().unwrap_or_default()
                }
                Block::Text { .. } | Block::Image { .. } | Block::Thinking { .. } | Block::Unknown => "",
            };
            items.push(Item {
                seq: seq.unwrap_or(head),
                kind,
                tool: tool.to_owned(),
                tokens: estimate::of_block(block),
            });
        }
        items.sort_by_key(|item| (Reverse(item.tokens), item.seq));
        items.truncate(most);
        items
    }
}

fn kind_of(message: &Message, block: &Block) -> PartKind {
    match block {
        Block::Text { text } if text.starts_with(NOTE_MARK) => PartKind::Notes,
        Block::Text { .. } | Block::Image { .. } | Block::Unknown => match message.role {
            Role::User => PartKind::Said,
            Role::Assistant => PartKind::Answers,
        },
        Block::Thinking { .. } => PartKind::Thinking,
        Block::ToolUse { .. } => PartKind::Calls,
        Block::ToolResult { content, .. } if content == CLEARED => PartKind::Cleared,
        Block::ToolResult { .. } => PartKind::Results,
    }
}
