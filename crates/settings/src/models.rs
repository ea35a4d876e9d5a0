//! `[model]`, `[providers.*]`, `[models.*]`, `[retry]`: whom to ask, and how often.

use agentd_protocol::{Price, ThinkingLevel, ToolProtocol};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

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
    /// Model calls at the same time, over all credentials.
    pub max_concurrent: u32,
    /// Further request headers.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// Ask for answers in pieces; false for servers that cannot.
    pub stream: bool,
    /// What one credential may use in a minute.
    pub rates: RatesConfig,
    /// Where this server differs from others of its dialect; what is absent is known from its address.
    #[serde(skip_serializing_if = "is_default")]
    pub compat: CompatConfig,
}

/// `[providers.NAME.rates]`: what one credential may use in a minute. 0: learned from what the server says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RatesConfig {
    /// Requests.
    pub requests: u64,
    /// Tokens sent.
    pub input_tokens: u64,
    /// Tokens answered.
    pub output_tokens: u64,
}

/// How a server of the chat dialect is told how hard to think.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ThinkingSwitch {
    /// It cannot be told.
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

/// `[providers.NAME.compat]`: what is absent is known from the dialect and the address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CompatConfig {
    /// The output limit is called `max_completion_tokens` and not `max_tokens`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_completion_tokens: Option<bool>,
    /// Reasoning goes back under the field it came in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replay_reasoning: Option<bool>,
    /// It caches prompts where it is told to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt_cache: Option<bool>,
    /// It counts tokens at the end of a stream when `stream_options` asks for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage_in_stream: Option<bool>,
    /// It knows the role `developer`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub developer_role: Option<bool>,
    /// It takes `tool_choice`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_choice: Option<bool>,
    /// Tool call ids have exactly nine letters and digits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub short_tool_ids: Option<bool>,
    /// The key goes into the header `api-key`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_key_header: Option<bool>,
    /// How it is told how hard to think.
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
    /// How freely it chooses its words; absent: its own default. Left out where the model refuses it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// How hard it is asked to think; absent: its own default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thinking: Option<ThinkingLevel>,
    /// A script file to which its answers are added, as turns that the scripted dialect can play. Empty: none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub record: String,
    /// What the model can do; what is absent comes from the shipped list of models.
    #[serde(skip_serializing_if = "is_default")]
    pub capabilities: CapabilitiesConfig,
}

/// How a model is asked to think.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ThinkingForm {
    /// It cannot be asked.
    None,
    /// By a level of effort, as newer models take it.
    Effort,
    /// By a number of tokens.
    Budget,
    /// By itself, with a level of effort beside it.
    Adaptive,
    /// On or off.
    Switch,
}

/// `[models.NAME.capabilities]`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CapabilitiesConfig {
    /// It sees images.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub images: Option<bool>,
    /// How it is asked to think.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thinking: Option<ThinkingForm>,
    /// Levels that it takes; others become the nearest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thinking_levels: Option<Vec<ThinkingLevel>>,
    /// It takes a temperature.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature: Option<bool>,
    /// It can be held to a JSON Schema.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub structured_output: Option<bool>,
    /// The shortest prompt that its provider caches, in tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_cache_tokens: Option<u64>,
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

/// `[scheduler]`: who goes first where many sessions want one provider.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SchedulerConfig {
    /// The label whose values share a provider by weight; empty: all sessions are one group.
    pub share_by: String,
    /// The weight of each value of that label; others have 1.
    pub weights: BTreeMap<String, f64>,
    /// The label that says `interactive` or `background`; without it a headless or child session is background.
    pub lane_by: String,
    /// Failures of a provider in a row that open its circuit.
    pub circuit_failures: u32,
    /// The first pause of an open circuit; each next is twice as long, up to `circuit_cap_ms`.
    pub circuit_ms: u64,
    /// The longest pause of an open circuit.
    pub circuit_cap_ms: u64,
    /// The first cooldown of a credential that was refused, growing fivefold up to `cooldown_cap_ms`; and the longest after a
    /// rate limit that names no wait.
    pub cooldown_ms: u64,
    /// The longest cooldown.
    pub cooldown_cap_ms: u64,
    /// The first cooldown of a credential without quota or money; it doubles up to `quota_cooldown_cap_ms`.
    pub quota_cooldown_ms: u64,
    /// The longest of those.
    pub quota_cooldown_cap_ms: u64,
    /// Calls that wait at one provider.
    pub max_waiting: u32,
}

impl Default for SchedulerConfig {
    fn default() -> Self {
        Self {
            share_by: "team".to_owned(),
            weights: BTreeMap::new(),
            lane_by: "lane".to_owned(),
            circuit_failures: 5,
            circuit_ms: 1_000,
            circuit_cap_ms: 60_000,
            cooldown_ms: 60_000,
            cooldown_cap_ms: 3_600_000,
            quota_cooldown_ms: 18_000_000,
            quota_cooldown_cap_ms: 86_400_000,
            max_waiting: 65_536,
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
    /// A session waits at most this long for a rate limit, a quota or a credential before its turn ends.
    pub park_ms: u64,
    /// To connect.
    pub connect_ms: u64,
    /// To the first byte of an answer.
    pub first_byte_ms: u64,
    /// Between two signs of progress.
    pub idle_ms: u64,
    /// For the whole answer.
    pub total_ms: u64,
    /// The files of keys are looked at this often; 0: only at a reload.
    pub key_files_ms: u64,
}

impl Default for RetryConfig {
    fn default() -> Self {
        Self {
            max_retries: 5,
            base_ms: 1_000,
            cap_ms: 30_000,
            park_ms: 86_400_000,
            connect_ms: 10_000,
            first_byte_ms: 120_000,
            idle_ms: 60_000,
            total_ms: 1_800_000,
            key_files_ms: 5_000,
        }
    }
}
