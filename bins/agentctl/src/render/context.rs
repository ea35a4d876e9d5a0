//! The context window of a session's model, by part.

use crate::cache_bill::CacheBill;
use crate::render::amount::{clock_time, dollars, tokens};
use crate::render::paint::Paint;
use agentd_protocol::{SessionId, Summary, Timestamp};
use agentd_transcript::Transcript;
use serde::Serialize;

/// The window and its parts.
#[derive(Debug, Serialize)]
pub(crate) struct ContextDetail {
    session: SessionId,
    model: String,
    /// Size of the window in tokens, if known.
    window: Option<u64>,
    /// The approximate number of tokens in the next request.
    tokens: u64,
    /// Whether the provider counted them; otherwise it is an estimate without the system prompt and the tools.
    counted: bool,
    messages: usize,
    /// The approximate number of these tokens that the provider has in its cache.
    cached: u64,
    cache: CacheBill,
    parts: Vec<PartRow>,
}

/// One part of the window.
#[derive(Debug, Serialize)]
struct PartRow {
    part: &'static str,
    items: usize,
    tokens: u64,
    cached: u64,
}

impl ContextDetail {
    pub(crate) fn new(
        row: &Summary,
        window: Option<u64>,
        transcript: &Transcript,
        cache: CacheBill,
        now: Timestamp,
    ) -> Self {
        let upto = cache.cached_up_to(&row.model, now);
        let parts = transcript.parts(upto).into_iter().map(|part| PartRow {
            part: part.kind.as_str(),
            items: part.items,
            tokens: part.tokens,
            cached: part.cached,
        });
        let parts: Vec<PartRow> = parts.collect();
        Self {
            session: row.session,
            model: row.model.clone(),
            window,
            tokens: transcript.estimate_tokens(),
            counted: transcript.counted(),
            messages: transcript.messages().len(),
            cached: parts.iter().map(|part| part.cached).sum(),
            cache,
            parts,
        }
    }

    /// The text for people.
    pub(crate) fn text(&self, paint: Paint) -> String {
        let of = match self.window {
            Some(window) => {
                let percent = self.tokens.saturating_mul(100) / window.max(1);
                format!(" of {} ({percent} %)", tokens(window))
            }
            None => String::new(),
        };
        let mut text = format!(
            "{}  about {} tokens{of} in {} messages, {}\n",
            paint.bold(&self.session.short()),
            tokens(self.tokens),
            self.messages,
            self.model,
        );
        for PartRow {
            part,
            items,
            tokens: cost,
            cached,
        } in &self.parts
        {
            let cached = match *cached {
                0 => String::new(),
                some if some == *cost => "  (cached)".to_owned(),
                some => format!("  ({} cached)", tokens(some)),
            };
            text.push_str(&format!("  {:>8}  {items:>5}  {part}{cached}\n", tokens(*cost)));
        }
        text.push_str(&self.cache_lines());
        if !self.counted {
            text.push_str(
                "  estimate without the system prompt and the tools: the provider has not counted yet\n",
            );
        }
        text
    }

    /// What is cached, what the cache saved, and what broke the prefix.
    fn cache_lines(&self) -> String {
        let mut text = format!(
            "  cache: {} of these tokens; it has saved {}\n",
            tokens(self.cached),
            dollars(self.cache.saved_usd)
        );
        for broken in &self.cache.broken {
            let cost = broken
                .cost_usd
                .map_or_else(String::new, |usd| format!(", {}", dollars(usd)));
            text.push_str(&format!(
                "  cache broken at {} (event {}): {}: {} tokens again{cost}\n",
                clock_time(broken.at),
                broken.seq,
                broken.why,
                tokens(broken.tokens)
            ));
        }
        text
    }
}
