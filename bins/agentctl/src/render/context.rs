//! The context window of a session's model, by part.

use crate::render::{Paint, clock_time, dollars, tokens};
use agentd_protocol::{ContextPart, ContextShown};

/// The text for people.
pub(crate) fn context_text(shown: &ContextShown, paint: Paint) -> String {
    let of = match shown.window {
        Some(window) => {
            let percent = shown.tokens.saturating_mul(100) / window.max(1);
            format!(" of {} ({percent} %)", tokens(window))
        }
        None => String::new(),
    };
    let mut text = format!(
        "{}  about {} tokens{of} in {} messages, {}\n",
        paint.bold(&shown.session.short()),
        tokens(shown.tokens),
        shown.messages,
        shown.model,
    );
    for ContextPart {
        part,
        items,
        tokens: cost,
        cached,
        ..
    } in &shown.parts
    {
        let cached = match *cached {
            0 => String::new(),
            some if some == *cost => "  (cached)".to_owned(),
            some => format!("  ({} cached)", tokens(some)),
        };
        text.push_str(&format!("  {:>8}  {items:>5}  {part}{cached}\n", tokens(*cost)));
    }
    text.push_str(&cache_lines(shown));
    if !shown.counted {
        text.push_str(
            "  estimate without the system prompt and the tools: the provider has not counted yet\n",
        );
    }
    text
}

/// The cached tokens, the savings, and the requests that broke the prefix.
fn cache_lines(shown: &ContextShown) -> String {
    let mut text = format!(
        "  cache: {} of these tokens; it has saved {}\n",
        tokens(shown.cached),
        dollars(shown.cache.saved_usd)
    );
    for broken in &shown.cache.broken {
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
