//! Model dialects over HTTP: request encoding, stream decoding, classification of failures.
//!
//! Only this crate knows the providers' protocols. Encoders and decoders are pure; [`call`] is the only I/O. Retries,
//! fallbacks and budgets are decided elsewhere; a call here is one attempt.
//!
//! Invariants held here: a key is kept in a [`Secret`] that never prints it, and is cut out of every error text (I8); an
//! answer counts only after its terminal marker, so no tool runs from a partial answer (I4); every read has a deadline
//! and every buffer a bound, so a stuck server delays only its own call (I6).
//!
//! Flow: messages -> [`EncodedHistory`] -> [`RequestBody`] -> [`call`] -> SSE bytes -> [`ModelEvent`]s -> [`ModelReply`].

mod address;
mod anthropic;
mod body;
mod call;
mod capabilities;
mod chat;
mod classify;
mod completion;
mod counting;
mod decoder;
pub mod demo;
mod dialect;
mod embed;
mod error;
mod fields;
mod frame;
mod gemini;
mod halves;
mod http;
mod json_text;
mod lines;
mod names;
mod ollama;
mod pacing;
mod probe;
mod rates;
mod record;
mod registry;
mod repair;
mod reply;
mod resolve;
mod responses;
mod retry_after;
mod room;
mod script;
mod scripted;
mod secret;
mod spec;
mod sse;
mod text_calls;
mod thinking;
mod thoughts;

pub use agentd_settings::Dialect;
pub use body::{
    EncodedHistory, Params, Prefix, Prompt, RequestBody, ToolChoice, ToolDef, encode_message, encode_prefix,
    encode_suffix,
};
pub use call::{Called, Request, Sink, call};
pub use capabilities::Capabilities;
pub use classify::{classify, classify_stream_error};
pub use counting::{Counted, count_tokens, may_count};
pub use decoder::{Decoder, Progress};
pub use embed::EmbedClient;
pub use error::{Advice, ModelError, ProviderError};
pub use http::{client_with_certificate, http_client};
pub use probe::{LocalServer, local_servers, probe_local};
pub use rates::{Gauge, Rates};
pub use record::record;
pub use registry::{Registry, Unusable};
pub use reply::{ModelEvent, ModelReply};
pub use resolve::{Lookup, resolve};
pub use room::set_answers_bytes;
pub use script::{Script, ScriptedCall, ScriptedConversation, ScriptedFailure, ScriptedTurn};
pub use secret::Secret;
pub use spec::{Adjust, Compat, Credential, Deadlines, ModelSpec};
pub use thinking::thinking_tokens;
