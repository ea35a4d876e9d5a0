//! A model as it is called: everything resolved, nothing to look up.

use crate::script::Script;
use crate::secret::Secret;
use agentd_protocol::{Price, Usage};
use agentd_settings::{Dialect, RetryConfig, ToolProtocol};
use std::sync::Arc;
use std::time::Duration;

/// A key with the name that logs and events call it by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Credential {
    /// Its name.
    pub name: String,
    /// Where the key was found, for people: the variable or the file.
    pub found_in: String,
    /// The key.
    pub secret: Secret,
}

/// The deadlines of one attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deadlines {
    /// To connect.
    pub connect: Duration,
    /// From the start to the first sign of an answer.
    pub first_byte: Duration,
    /// Between two signs of progress.
    pub idle: Duration,
    /// For the whole attempt.
    pub total: Duration,
}

impl Default for Deadlines {
    fn default() -> Self {
        Self::from(&RetryConfig::default())
    }
}

impl From<&RetryConfig> for Deadlines {
    fn from(retry: &RetryConfig) -> Self {
        Self {
            connect: Duration::from_millis(retry.connect_ms),
            first_byte: Duration::from_millis(retry.first_byte_ms),
            idle: Duration::from_millis(retry.idle_ms),
            total: Duration::from_millis(retry.total_ms),
        }
    }
}

/// Where servers of one dialect differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Compat {
    /// The output limit is called `max_completion_tokens`, as at OpenAI itself; everybody else has `max_tokens`.
    pub max_completion_tokens: bool,
    /// Reasoning is sent back under the field it came in; OpenAI itself refuses unknown fields.
    pub replay_reasoning: bool,
    /// The server caches prompts where it is told to.
    pub prompt_cache: bool,
}

impl Compat {
    /// What is known about a server by its dialect and address.
    #[must_use]
    pub fn of(dialect: Dialect, base_url: &str) -> Self {
        let openai = base_url.contains("//api.openai.com");
        Self {
            max_completion_tokens: openai,
            replay_reasoning: !openai,
            prompt_cache: dialect == Dialect::Anthropic && base_url.contains("anthropic.com"),
        }
    }
}

/// A resolved model: whom to ask, with which key, within which limits.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelSpec {
    /// The name under `[models]`.
    pub name: String,
    /// The name under `[providers]`.
    pub provider: String,
    /// The protocol.
    pub dialect: Dialect,
    /// Where the server is, without a slash at the end.
    pub base_url: String,
    /// What the provider calls it.
    pub model: String,
    /// Tokens of input and output together.
    pub context_window: u64,
    /// Tokens of one answer.
    pub max_output: u32,
    /// US dollars per million tokens; absent: cost is not counted.
    pub price: Option<Price>,
    /// How it is told about tools.
    pub tool_protocol: ToolProtocol,
    /// Configured names to try when this one has no capacity.
    pub fallbacks: Vec<String>,
    /// The keys; the first is used, several may rotate. Empty for servers that need none.
    pub credentials: Vec<Credential>,
    /// Further request headers.
    pub headers: Vec<(String, String)>,
    /// The deadlines of one attempt.
    pub deadlines: Deadlines,
    /// Calls at the same time at its provider.
    pub max_concurrent: u32,
    /// Where the server differs from others of its dialect.
    pub compat: Compat,
    /// The turns, for the scripted dialect.
    pub script: Option<Arc<Script>>,
}

impl ModelSpec {
    /// The credential that is used.
    #[must_use]
    pub fn credential(&self) -> Option<&Credential> {
        self.credentials.first()
    }

    /// What a call cost, when the price is known.
    #[must_use]
    pub fn cost(&self, usage: &Usage) -> Option<f64> {
        self.price.map(|price| price.cost(usage))
    }

    /// A scripted model: no server, no key, no cost.
    #[must_use]
    pub fn scripted(name: &str, script: Arc<Script>) -> Self {
        Self {
            name: name.to_owned(),
            provider: "scripted".to_owned(),
            dialect: Dialect::Scripted,
            base_url: String::new(),
            model: name.to_owned(),
            context_window: 200_000,
            max_output: 8_192,
            price: None,
            tool_protocol: ToolProtocol::Native,
            fallbacks: Vec::new(),
            credentials: Vec::new(),
            headers: Vec::new(),
            deadlines: Deadlines::default(),
            max_concurrent: 64,
            compat: Compat::of(Dialect::Scripted, ""),
            script: Some(script),
        }
    }
}

/// The dialect's name, as the configuration spells it.
pub(crate) const fn dialect_name(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Anthropic => "anthropic",
        Dialect::OpenaiChat => "openai-chat",
        Dialect::OpenaiResponses => "openai-responses",
        Dialect::Gemini => "gemini",
        Dialect::LlamaCompletion => "llama-completion",
        Dialect::Ollama => "ollama",
        Dialect::Scripted => "scripted",
    }
}
