//! The context window of a session's model: what the next request has, and what the provider's cache gave.

use crate::event::Seq;
use crate::ids::SessionId;
use crate::stamp::Timestamp;
use serde::{Deserialize, Serialize};

/// Answer of `session.context`: the conversation of the next request, by part. Token counts are approximate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ContextShown {
    /// The session.
    pub session: SessionId,
    /// The model's configured name.
    pub model: String,
    /// The size of its window in tokens; absent: unknown.
    pub window: Option<u64>,
    /// The tokens of the next request.
    pub tokens: u64,
    /// Whether they are based on a count of the provider; otherwise the system prompt and the tools are not included.
    pub counted: bool,
    /// The number of messages.
    pub messages: usize,
    /// How many of the tokens the provider has in its cache.
    pub cached: u64,
    /// The effect of the cache so far.
    pub cache: CacheEffect,
    /// The parts, largest first.
    pub parts: Vec<ContextPart>,
    /// The largest items of the conversation, at most 50, largest first.
    pub largest: Vec<ContextItem>,
}

/// Everything of one kind in the window.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ContextPart {
    /// The kind: `system`, `summary`, `said`, `notes`, `answers`, `thinking`, `calls`, `results` or `cleared`.
    pub kind: String,
    /// Its name for people.
    pub part: String,
    /// The number of items.
    pub items: usize,
    /// Their tokens.
    pub tokens: u64,
    /// How many of the tokens the provider has in its cache.
    pub cached: u64,
}

/// One item of the window.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ContextItem {
    /// The event with which its message was complete.
    pub seq: Seq,
    /// The kind, as in [`ContextPart`].
    pub kind: String,
    /// The tool of a call or a result; otherwise empty.
    pub tool: String,
    /// Its tokens.
    pub tokens: u64,
}

/// The effect of the provider's prompt cache on a session.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct CacheEffect {
    /// The savings compared with uncached input, as far as prices are known.
    pub saved_usd: f64,
    /// Requests that had to send a cached prefix again.
    pub broken: Vec<CacheBroken>,
}

/// A request that found less than half of the prefix in the cache.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct CacheBroken {
    /// Its `model.started`.
    pub seq: Seq,
    /// When it was sent.
    pub at: Timestamp,
    /// The likely reason, for people.
    pub why: String,
    /// Tokens that were in the cache and were not read.
    pub tokens: u64,
    /// The extra cost of writing them again instead of reading them, if the price is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
}
