//! Tokens and prices.

use crate::summary::is_zero;
use serde::{Deserialize, Serialize};

/// Tokens of one or many model calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(default)]
pub struct Usage {
    /// Input tokens outside the cache.
    pub input: u64,
    /// Output tokens, reasoning included.
    pub output: u64,
    /// Input tokens read from the provider's cache.
    pub cache_read: u64,
    /// Input tokens written to the provider's cache.
    pub cache_write: u64,
    /// The part of `cache_write` that the provider keeps for an hour, at a higher price.
    #[serde(skip_serializing_if = "is_zero")]
    pub cache_write_1h: u64,
    /// Output tokens that were reasoning.
    pub reasoning: u64,
}

impl Usage {
    /// All tokens: input, cache and output.
    #[must_use]
    pub const fn total(&self) -> u64 {
        self.input
            .saturating_add(self.output)
            .saturating_add(self.cache_read)
            .saturating_add(self.cache_write)
    }

    /// The share of the input that came from the provider's cache, in percent; absent without input.
    #[must_use]
    pub const fn cached_percent(&self) -> Option<u64> {
        let input = self
            .input
            .saturating_add(self.cache_read)
            .saturating_add(self.cache_write);
        self.cache_read.saturating_mul(100).checked_div(input)
    }

    /// The sum, saturating.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self {
            input: self.input.saturating_add(other.input),
            output: self.output.saturating_add(other.output),
            cache_read: self.cache_read.saturating_add(other.cache_read),
            cache_write: self.cache_write.saturating_add(other.cache_write),
            cache_write_1h: self.cache_write_1h.saturating_add(other.cache_write_1h),
            reasoning: self.reasoning.saturating_add(other.reasoning),
        }
    }
}

/// US dollars per million tokens.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(default, deny_unknown_fields)]
pub struct Price {
    /// Fresh input.
    pub input: f64,
    /// Output.
    pub output: f64,
    /// Cache reads.
    pub cache_read: f64,
    /// Cache writes.
    pub cache_write: f64,
    /// Cache writes that are kept for an hour; 0: twice the price of fresh input, as Anthropic asks.
    #[serde(skip_serializing_if = "is_zero")]
    pub cache_write_1h: f64,
}

impl Price {
    /// Prices relative to fresh input where no price is known: the ratios of the providers that publish theirs.
    pub const RATIOS: Self = Self {
        input: 1.0,
        output: 0.0,
        cache_read: 0.1,
        cache_write: 1.25,
        cache_write_1h: 2.0,
    };

    /// The price of a million tokens that the provider caches for an hour.
    #[must_use]
    pub fn hour(&self) -> f64 {
        match self.cache_write_1h {
            unset if unset <= 0.0 => 2.0 * self.input,
            price => price,
        }
    }

    /// The savings of the prompt cache in US dollars, compared with uncached input; negative if its writes cost more.
    #[must_use]
    pub fn saved(&self, usage: &Usage) -> f64 {
        let input = usage.input.saturating_add(usage.cache_read);
        let fresh = Usage {
            input: input.saturating_add(usage.cache_write),
            cache_read: 0,
            cache_write: 0,
            cache_write_1h: 0,
            ..*usage
        };
        self.cost(&fresh) - self.cost(usage)
    }

    /// The cost of `usage` in US dollars.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "token counts stay far below 2^52")]
    pub fn cost(&self, usage: &Usage) -> f64 {
        let sum = self.input * usage.input as f64
            + self.output * usage.output as f64
            + self.cache_read * usage.cache_read as f64
            + self.cache_write * usage.cache_write.saturating_sub(usage.cache_write_1h) as f64
            + self.hour() * usage.cache_write_1h as f64;
        sum / 1e6
    }
}
