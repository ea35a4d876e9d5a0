//! `[model]`, `[providers.*]`, `[models.*]`, `[retry]`: whom to ask, and how often.

use agentd_protocol::Price;
use serde::{Deserialize, Serialize};

/// `[model]`: which model a session gets when it names none.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ModelChoice {
    /// A name under `[models]`, or `auto`.
    pub default: String,
}

impl Default for ModelChoice {
    fn default() -> Self {
        Self {
            default: "auto".to_owned(),
        }
    }
}

/// The protocol a provider speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Dialect {
    /// Anthropic Messages.
    Anthropic,
    /// OpenAI Chat Completions and the many servers that speak it.
    #[default]
    OpenaiChat,
    /// OpenAI Responses.
    OpenaiResponses,
    /// Google Gemini.
    Gemini,
    /// The raw completion endpoint of llama.cpp.
    LlamaCompletion,
    /// Ollama's own chat protocol.
    Ollama,
    /// A file of turns; nothing is sent anywhere.
    Scripted,
}

/// `[providers.NAME]`: a server that runs models.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ProviderConfig {
    /// The protocol it speaks.
    pub dialect: Dialect,
    /// Where it is; empty for the scripted dialect.
    pub base_url: String,
    /// The keys; several rotate.
    pub credentials: Vec<Credential>,
    /// Model calls at the same time.
    pub max_concurrent: u32,
}

impl Default for ProviderConfig {
    fn default() -> Self {
        Self {
            dialect: Dialect::default(),
            base_url: String::new(),
            credentials: Vec::new(),
            max_concurrent: 64,
        }
    }
}

/// A named key and where it comes from: exactly one of `env`, `file`, `exec`. The key itself is never here.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Credential {
    /// What logs and events call it.
    pub name: String,
    /// The environment variable that holds it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub env: Option<String>,
    /// The file that holds it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The command that prints it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exec: Option<Vec<String>>,
}

/// Where a key comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CredentialSource<'a> {
    /// An environment variable.
    Env(&'a str),
    /// A file; surrounding white space does not count.
    File(&'a str),
    /// The output of a command.
    Exec(&'a [String]),
}

impl Credential {
    /// Where the key comes from; `None` unless exactly one source is given.
    #[must_use]
    pub fn source(&self) -> Option<CredentialSource<'_>> {
        match (&self.env, &self.file, &self.exec) {
            (Some(env), None, None) => Some(CredentialSource::Env(env)),
            (None, Some(file), None) => Some(CredentialSource::File(file)),
            (None, None, Some(exec)) => Some(CredentialSource::Exec(exec)),
            _ => None,
        }
    }
}

/// How a model is told about tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ToolProtocol {
    /// The provider's own tool calls.
    #[default]
    Native,
    /// Tool calls as JSON in the text, results as user messages.
    JsonText,
}

/// `[models.NAME]`: a model of a provider.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ModelConfig {
    /// A name under `[providers]`.
    pub provider: String,
    /// What the provider calls it; for the scripted dialect a file of turns, or `builtin`.
    pub model: String,
    /// Tokens of input and output together.
    pub context_window: u64,
    /// Tokens of one answer.
    pub max_output: u32,
    /// How it is told about tools.
    pub tool_protocol: ToolProtocol,
    /// Names under `[models]` to try when this one has no capacity.
    pub fallbacks: Vec<String>,
    /// US dollars per million tokens; absent: cost is not counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub price: Option<Price>,
}

impl Default for ModelConfig {
    fn default() -> Self {
        Self {
            provider: String::new(),
            model: String::new(),
            context_window: 128_000,
            max_output: 8_192,
            tool_protocol: ToolProtocol::default(),
            fallbacks: Vec::new(),
            price: None,
        }
    }
}

/// `[retry]`: how often a failed model call is tried again, and the deadlines of one attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RetryConfig {
    /// Attempts after the first.
    pub max_retries: u32,
    /// The first wait; each next is twice as long.
    pub base_ms: u64,
    /// The longest wait.
    pub cap_ms: u64,
    /// To connect.
    pub connect_ms: u64,
    /// To the first byte of an answer.
    pub first_byte_ms: u64,
    /// Between two signs of progress.
    pub idle_ms: u64,
    /// For the whole answer.
    pub total_ms: u64,
}

impl Default for RetryConfig {
    fn default() -> Self {
        Self {
            max_retries: 5,
            base_ms: 1_000,
            cap_ms: 30_000,
            connect_ms: 10_000,
            first_byte_ms: 120_000,
            idle_ms: 60_000,
            total_ms: 1_800_000,
        }
    }
}
