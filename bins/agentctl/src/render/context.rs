//! The context window of a session's model, by part.

use crate::render::amount::tokens;
use crate::render::paint::Paint;
use agentd_protocol::{SessionId, Summary};
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
    parts: Vec<PartRow>,
}

/// One part of the window.
#[derive(Debug, Serialize)]
struct PartRow {
    part: &'static str,
    items: usize,
    tokens: u64,
}

impl ContextDetail {
    pub(crate) fn new(row: &Summary, window: Option<u64>, transcript: &Transcript) -> Self {
        let parts = transcript.parts().into_iter().map(|part| PartRow {
            part: part.kind.as_str(),
            items: part.items,
            tokens: part.tokens,
        });
        Self {
            session: row.session,
            model: row.model.clone(),
            window,
            tokens: transcript.estimate_tokens(),
            counted: transcript.counted(),
            messages: transcript.messages().len(),
            parts: parts.collect(),
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
        } in &self.parts
        {
            text.push_str(&format!("  {:>8}  {items:>5}  {part}\n", tokens(*cost)));
        }
        if !self.counted {
            text.push_str(
                "  estimate without the system prompt and the tools: the provider has not counted yet\n",
            );
        }
        text
    }
}
