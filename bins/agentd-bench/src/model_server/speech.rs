//! The stream formats: how a step looks in each dialect.

mod completion;
mod gemini;
mod messages;
mod ollama;
mod open_ai;
mod responses;

use super::plan::{Plan, Step, words_of};
use bytes::Bytes;
use serde_json::{Value, json};
use std::time::{SystemTime, UNIX_EPOCH};

/// The dialect of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Speech {
    Anthropic,
    OpenAi,
    Responses,
    Gemini,
    Ollama,
    Completion,
}

impl Speech {
    /// Selects the dialect by the request path.
    pub(super) fn of(path: &str) -> Option<Self> {
        match path {
            "/v1/messages" => Some(Self::Anthropic),
            "/v1/chat/completions" => Some(Self::OpenAi),
            "/v1/responses" => Some(Self::Responses),
            "/api/chat" => Some(Self::Ollama),
            "/completion" => Some(Self::Completion),
            gemini if gemini.ends_with(":streamGenerateContent") => Some(Self::Gemini),
            _ => None,
        }
    }

    /// The text that a request contains for each earlier model answer, and whether it occurs once per call instead.
    pub(super) const fn mark(self) -> Option<(&'static [u8], bool)> {
        match self {
            Self::Anthropic | Self::OpenAi | Self::Ollama => Some((b"\"role\":\"assistant\"", false)),
            Self::Responses => Some((b"\"type\":\"function_call\"", true)),
            Self::Gemini => Some((b"\"role\":\"model\"", false)),
            Self::Completion => None,
        }
    }

    /// The content type of the stream.
    pub(super) const fn content_type(self) -> &'static str {
        match self {
            Self::Ollama => "application/x-ndjson",
            _ => "text/event-stream",
        }
    }

    /// The stream's chunks, one per event.
    pub(super) fn chunks(self, step: &Step) -> Vec<Bytes> {
        let events = match self {
            Self::Anthropic => messages::events(step),
            Self::OpenAi => open_ai::events(step),
            Self::Responses => responses::events(step),
            Self::Gemini => gemini::events(step),
            Self::Ollama => ollama::events(step),
            Self::Completion => completion::events(step),
        };
        let mut chunks: Vec<Bytes> = events.iter().map(|event| self.frame(event)).collect();
        if self == Self::OpenAi && !step.hang() {
            chunks.push(Bytes::from_static(b"data: [DONE]\n\n"));
        }
        chunks
    }

    fn frame(self, event: &Value) -> Bytes {
        match self {
            Self::Anthropic | Self::Responses => {
                let kind = event.get("type").and_then(Value::as_str).unwrap_or_default();
                Bytes::from(format!("event: {kind}\ndata: {event}\n\n"))
            }
            Self::OpenAi | Self::Gemini | Self::Completion => Bytes::from(format!("data: {event}\n\n")),
            Self::Ollama => Bytes::from(format!("{event}\n")),
        }
    }

    /// The body of an error answer.
    pub(super) fn error(self, status: u16) -> String {
        let kind = match status {
            401 => "authentication_error",
            429 => "rate_limit_error",
            529 => "overloaded_error",
            _ => "api_error",
        };
        match self {
            Self::Anthropic => json!({"type": "error", "error": {"type": kind, "message": "as planned"}}),
            Self::Gemini => {
                json!({"error": {"code": status, "message": "as planned", "status": "UNAVAILABLE"}})
            }
            Self::Ollama => json!({"error": "as planned"}),
            _ => json!({"error": {"type": kind, "message": "as planned"}}),
        }
        .to_string()
    }
}

/// Imitates the template endpoint of llama.cpp: turns messages into a prompt with the plan and its progress.
pub(super) fn template(body: &[u8]) -> String {
    let done = Plan::read(body).done(body, Speech::OpenAi);
    json!({ "prompt": format!("plan:{}; done:{done};", words_of(body)) }).to_string()
}

/// Replaces `@now` in a text with the current time.
#[expect(
    clippy::disallowed_methods,
    reason = "two processes of one machine compare it"
)]
fn said(text: &str) -> String {
    if !text.contains("@now") {
        return text.to_owned();
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    text.replace("@now", &now.as_micros().to_string())
}

fn words(text: &str) -> Vec<String> {
    said(text).split_inclusive(' ').map(str::to_owned).collect()
}
