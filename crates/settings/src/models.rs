//! `[model]`, `[providers.*]`, `[models.*]`, `[retry]`: the models to call, and the retries.

use crate::settings::Settings;
use agentd_protocol::{Price, ThinkingLevel, ToolProtocol};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// `[model]`: the model of a session that names none.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelChoice {
    /// A name under `[models]`, or `auto`.
    pub default: String,
}

/// The protocol a provider speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Dialect {
    /// Anthropic Messages.
    Anthropic,
    /// OpenAI Chat Completions, which many other servers support.
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
    /// A file of turns; sends nothing.
    Scripted,
}

/// `[providers.NAME]`: a server that runs models.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ProviderConfig {
    /// The protocol it speaks.
    pub dialect: Dialect,
    /// The base URL; empty for the scripted dialect.
    pub base_url: String,
    /// The API keys. agentd rotates among several.
    pub credentials: Vec<Credential>,
    /// Concurrent model calls, over all credentials.
    pub max_concurrent: u32,
    /// Additional request headers.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// Whether to stream answers; false for servers that cannot.
    pub stream: bool,
    /// The rate limits of one credential, per minute.
    pub rates: RatesConfig,
    /// How this server differs from others of its dialect. Absent values are derived from its address.
    #[serde(skip_serializing_if = "is_default")]
    pub compat: CompatConfig,
}

/// How a person gives a daemon with these settings a model: the end of a message that there is none.
#[must_use]
pub fn ways_to_a_model(settings: &Settings) -> String {
    let credentials = settings
        .providers
        .values()
        .flat_map(|provider| &provider.credentials);
    let keys: BTreeSet<&str> = credentials.filter_map(|key| key.env.as_deref()).collect();
    let keys = keys.into_iter().collect::<Vec<_>>().join(" or ");
    let set = if keys.is_empty() {
        keys
    } else {
        format!("set {keys} for agentd, ")
    };
    format!(
        "{set}start Ollama or llama-server, or describe a model under [providers] and [models] in \
         ~/.config/agentd/config.toml; then restart agentd. `agentctl demo` needs no model"
    )
}

/// `[providers.NAME.rates]`: what one credential may use per minute. 0: learned from the server's answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RatesConfig {
    /// Requests.
    pub requests: u64,
    /// Input tokens.
    pub input_tokens: u64,
    /// Output tokens.
    pub output_tokens: u64,
}

/// How a server of the chat dialect takes the thinking level.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ThinkingSwitch {
    /// Not at all.
    None,
    /// `reasoning_effort`.
    ReasoningEffort,
    /// `reasoning: { effort }`.
    Reasoning,
    /// `thinking: { type }`.
    Thinking,
    /// `enable_thinking`.
    EnableThinking,
    /// `chat_template_kwargs: { enable_thinking }`.
    ChatTemplate,
}

/// `[providers.NAME.compat]`: absent values are derived from the dialect and the address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CompatConfig {
    /// It takes the output limit as `max_completion_tokens`, not as `max_tokens`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_completion_tokens: Option<bool>,
    /// It expects reasoning back in the field in which it sent it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replay_reasoning: Option<bool>,
    /// It caches prompts on request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt_cache: Option<bool>,
    /// It keeps a cached prompt for an hour on request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt_cache_1h: Option<bool>,
    /// It reports token counts at the end of a stream if `stream_options` requests them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage_in_stream: Option<bool>,
    /// It supports the role `developer`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub developer_role: Option<bool>,
    /// It supports `tool_choice`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_choice: Option<bool>,
    /// It requires tool call ids of exactly nine letters and digits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub short_tool_ids: Option<bool>,
    /// It takes the key in the header `api-key`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_key_header: Option<bool>,
    /// How it takes the thinking level.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thinking: Option<ThinkingSwitch>,
}

impl Default for ProviderConfig {
    fn default() -> Self {
        Self {
            dialect: Dialect::default(),
            base_url: String::new(),
            credentials: Vec::new(),
            max_concurrent: 64,
            headers: BTreeMap::new(),
            stream: true,
            rates: RatesConfig::default(),
            compat: CompatConfig::default(),
        }
    }
}

/// A named API key and its source: exactly one of `env`, `file`, `exec`. This type never holds the key itself.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Credential {
    /// Its name in logs and events.
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

/// The source of an API key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CredentialSource<'a> {
    /// An environment variable.
    Env(&'a str),
    /// A file; surrounding white space is removed.
    File(&'a str),
    /// The output of a command.
    Exec(&'a [String]),
}

impl Credential {
    /// The source of the key; `None` unless exactly one is given.
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

/// `[models.NAME]`: a model of a provider.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ModelConfig {
    /// A name under `[providers]`.
    pub provider: String,
    /// The provider's name for it; for the scripted dialect a file of turns, or `builtin`.
    pub model: String,
    /// Input and output tokens together.
    pub context_window: u64,
    /// Maximum tokens of one answer.
    pub max_output: u32,
    /// How it receives tools and calls them.
    pub tool_protocol: ToolProtocol,
    /// Names under `[models]` to try if this one has no capacity.
    pub fallbacks: Vec<String>,
    /// US dollars per million tokens; absent: cost is not counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub price: Option<Price>,
    /// Its sampling temperature; absent: its own default. Not sent if the model refuses it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// Its thinking level; absent: its own default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thinking: Option<ThinkingLevel>,
    /// A script file that records its answers as turns for the scripted dialect. Empty: none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub record: String,
    /// The model's capabilities. Absent values come from the shipped list of models.
    #[serde(skip_serializing_if = "is_default")]
    pub capabilities: CapabilitiesConfig,
}

/// How a model takes the thinking level.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ThinkingForm {
    /// Not at all.
    None,
    /// As a level of effort, like newer models.
    Effort,
    /// As a number of tokens.
    Budget,
    /// The model decides by itself, and also takes a level of effort.
    Adaptive,
    /// On or off.
    Switch,
}

/// `[models.NAME.capabilities]`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CapabilitiesConfig {
    /// It accepts images.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub images: Option<bool>,
    /// How it takes the thinking level.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thinking: Option<ThinkingForm>,
    /// The levels that it accepts; agentd maps others to the nearest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thinking_levels: Option<Vec<ThinkingLevel>>,
    /// It accepts a temperature.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature: Option<bool>,
    /// It supports output that follows a JSON Schema.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub structured_output: Option<bool>,
    /// The shortest prompt that its provider caches, in tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_cache_tokens: Option<u64>,
    /// Calls of its template that its server left in the text are calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text_calls: Option<bool>,
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
            temperature: None,
            thinking: None,
            record: String::new(),
            capabilities: CapabilitiesConfig::default(),
        }
    }
}

/// `[scheduler]`: the order of sessions that want the same provider.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SchedulerConfig {
    /// The label whose values share a provider by weight; empty: all sessions are one group.
    pub share_by: String,
    /// The weight of each value of that label; others have 1.
    pub weights: BTreeMap<String, f64>,
    /// The label with the value `interactive` or `background`. Without it, a headless or child session is background.
    pub lane_by: String,
    /// Consecutive failures of a provider that open its circuit.
    pub circuit_failures: u32,
    /// The first pause of an open circuit; each next one is twice as long, up to `circuit_cap_ms`.
    pub circuit_ms: u64,
    /// The longest pause of an open circuit.
    pub circuit_cap_ms: u64,
    /// The first cooldown of a refused credential, growing fivefold up to `cooldown_cap_ms`. Also the longest cooldown
    /// after a rate limit without a wait time.
    pub cooldown_ms: u64,
    /// The longest cooldown.
    pub cooldown_cap_ms: u64,
    /// The first cooldown of a credential without quota or money; it doubles up to `quota_cooldown_cap_ms`.
    pub quota_cooldown_ms: u64,
    /// The longest cooldown of that kind.
    pub quota_cooldown_cap_ms: u64,
    /// Calls that may wait at one provider.
    pub max_waiting: u32,
}

/// `[retry]`: how often a failed model call is retried, and the deadlines of one attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RetryConfig {
    /// Attempts after the first.
    pub max_retries: u32,
    /// Attempts of one call to find the items that a provider refuses; 0: none is left out.
    pub max_omissions: u32,
    /// The first wait; each next one is twice as long.
    pub base_ms: u64,
    /// The longest wait.
    pub cap_ms: u64,
    /// The longest time that a session waits for a rate limit, a quota or a credential. Then its turn ends.
    pub park_ms: u64,
    /// Deadline for the connection.
    pub connect_ms: u64,
    /// Deadline for the first byte of the answer.
    pub first_byte_ms: u64,
    /// Deadline between two pieces of the answer.
    pub idle_ms: u64,
    /// Deadline for the whole answer.
    pub total_ms: u64,
    /// How often agentd checks key files for changes; 0: only at a reload.
    pub key_files_ms: u64,
}
