//! A fully resolved model, ready to be called.

use crate::capabilities::Capabilities;
use crate::script::Script;
use crate::secret::Secret;
use agentd_protocol::{Price, RequestPart, ThinkingLevel, ToolProtocol, Usage};
use agentd_settings::{CapabilitiesConfig, CompatConfig, Dialect, RetryConfig, ThinkingSwitch};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// A key, with the name that logs and events use for it.
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
    /// For the connection.
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

/// The differences between servers of one dialect.
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a fact about a server on its own, not a state of one thing"
)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Compat {
    /// The output limit is called `max_completion_tokens`, as at OpenAI itself; other servers call it `max_tokens`.
    pub max_completion_tokens: bool,
    /// Reasoning is sent back in the field where it arrived; OpenAI itself refuses unknown fields.
    pub replay_reasoning: bool,
    /// The server caches prompts at explicit marks: Anthropic's protocol, and Claude behind a chat gateway. In the
    /// Responses dialect: it takes a cache key.
    pub prompt_cache: bool,
    /// The server keeps a cached prompt for an hour if its marks say so.
    pub prompt_cache_1h: bool,
    /// The server reports token counts at the end of a stream if `stream_options` requests them.
    pub usage_in_stream: bool,
    /// The server knows the role `developer`.
    pub developer_role: bool,
    /// The server accepts `tool_choice`.
    pub tool_choice: bool,
    /// Tool call ids have exactly nine letters and digits, as Mistral requires.
    pub short_tool_ids: bool,
    /// The key is sent in the header `api-key`, as Azure requires, not in `authorization`.
    pub api_key_header: bool,
    /// How the chat dialect tells the server how hard to think.
    pub thinking: ThinkingSwitch,
}

/// Whether an address serves OpenAI's own models: OpenAI itself, or deployments at Azure.
pub(crate) fn is_openai(base_url: &str) -> bool {
    ["//api.openai.com", ".openai.azure.com"]
        .iter()
        .any(|host| base_url.contains(host))
}

impl Compat {
    /// The known differences of a server, by its dialect, its address and the model, overridden by the configuration.
    #[must_use]
    pub fn of(dialect: Dialect, base_url: &str, model: &str, config: &CompatConfig) -> Self {
        let at = |host: &str| base_url.contains(host);
        let openai = is_openai(base_url);
        let known = Self {
            max_completion_tokens: openai,
            replay_reasoning: !openai || dialect != Dialect::OpenaiChat,
            // By capability, not by host: gateways pass marks on or ignore them. One that refuses them teaches it.
            prompt_cache: match dialect {
                Dialect::Anthropic => true,
                Dialect::OpenaiChat => model.to_ascii_lowercase().contains("claude"),
                _ => false,
            },
            // By host: a gateway may pass the request on to a server that bills an hour and keeps less.
            prompt_cache_1h: dialect == Dialect::Anthropic && at("//api.anthropic.com"),
            usage_in_stream: true,
            developer_role: false,
            tool_choice: true,
            short_tool_ids: at("mistral.ai"),
            api_key_header: at(".azure.com"),
            thinking: match dialect {
                Dialect::OpenaiChat if at("openrouter.ai") => ThinkingSwitch::Reasoning,
                Dialect::OpenaiChat if at("deepseek.com") || at("z.ai") => ThinkingSwitch::Thinking,
                Dialect::OpenaiChat if at("dashscope") => ThinkingSwitch::EnableThinking,
                _ => ThinkingSwitch::ReasoningEffort,
            },
        };
        Self {
            max_completion_tokens: config
                .max_completion_tokens
                .unwrap_or(known.max_completion_tokens),
            replay_reasoning: config.replay_reasoning.unwrap_or(known.replay_reasoning),
            prompt_cache: config.prompt_cache.unwrap_or(known.prompt_cache),
            prompt_cache_1h: config.prompt_cache_1h.unwrap_or(known.prompt_cache_1h),
            usage_in_stream: config.usage_in_stream.unwrap_or(known.usage_in_stream),
            developer_role: config.developer_role.unwrap_or(known.developer_role),
            tool_choice: config.tool_choice.unwrap_or(known.tool_choice),
            short_tool_ids: config.short_tool_ids.unwrap_or(known.short_tool_ids),
            api_key_header: config.api_key_header.unwrap_or(known.api_key_header),
            thinking: config.thinking.unwrap_or(known.thinking),
        }
    }
}

/// A resolved model: its server, its keys, its limits.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelSpec {
    /// The name under `[models]`.
    pub name: String,
    /// The name under `[providers]`.
    pub provider: String,
    /// The protocol.
    pub dialect: Dialect,
    /// The server's base URL, without a trailing slash.
    pub base_url: String,
    /// The provider's name for the model.
    pub model: String,
    /// In tokens, input and output together.
    pub context_window: u64,
    /// In tokens per answer.
    pub max_output: u32,
    /// US dollars per million tokens; absent: cost is not counted.
    pub price: Option<Price>,
    /// How tools are described to it.
    pub tool_protocol: ToolProtocol,
    /// Configured names of models to try when this one has no capacity.
    pub fallbacks: Vec<String>,
    /// The keys; the first one is used, or several rotate. Empty for servers that need none.
    pub credentials: Vec<Credential>,
    /// Additional request headers.
    pub headers: Vec<(String, String)>,
    /// The deadlines of one attempt.
    pub deadlines: Deadlines,
    /// The provider's limit of concurrent calls.
    pub max_concurrent: u32,
    /// The differences of the server from others of its dialect.
    pub compat: Compat,
    /// The capabilities of the model.
    pub capabilities: Capabilities,
    /// The cache marks of this request ask for an hour.
    pub cache_hour: bool,
    /// The sampling temperature; absent: not sent. Already cleared if the model refuses it.
    pub temperature: Option<f64>,
    /// How hard it should think; absent: not sent.
    pub thinking: Option<ThinkingLevel>,
    /// Answers are streamed.
    pub stream: bool,
    /// A script file that records its answers.
    pub record: Option<PathBuf>,
    /// The script, for the scripted dialect.
    pub script: Option<Arc<Script>>,
}

impl ModelSpec {
    /// The credential with this name; the first one if there is no name or it is unknown.
    #[must_use]
    pub fn credential(&self, name: Option<&str>) -> Option<&Credential> {
        let named = name.and_then(|name| self.credentials.iter().find(|credential| credential.name == name));
        named.or_else(|| self.credentials.first())
    }

    /// The model as adjusted for one session, without the request parts that the server refused.
    #[must_use]
    pub fn adjusted(&self, adjust: &Adjust) -> Self {
        let mut spec = self.clone();
        spec.thinking = adjust.thinking.or(spec.thinking);
        // A raw completion has no native tool calls, whatever the session requests.
        if spec.dialect != Dialect::LlamaCompletion {
            spec.tool_protocol = adjust.tool_protocol.unwrap_or(spec.tool_protocol);
        }
        let most = adjust.max_output.unwrap_or(u32::MAX);
        spec.max_output = spec.max_output.min(most);
        adjust.window.into_iter().for_each(|window| spec.fit_into(window));
        for part in &adjust.without {
            match part {
                RequestPart::Temperature => spec.temperature = None,
                RequestPart::Reasoning => spec.compat.replay_reasoning = false,
                RequestPart::ThinkingLevel => spec.thinking = None,
                RequestPart::CacheMarks => spec.compat.prompt_cache = false,
                RequestPart::CacheHour => spec.compat.prompt_cache_1h = false,
                RequestPart::Images => spec.capabilities.images = false,
                RequestPart::StreamOptions => spec.compat.usage_in_stream = false,
                RequestPart::LimitName => {
                    spec.compat.max_completion_tokens = !self.compat.max_completion_tokens;
                }
                RequestPart::ToolChoice => spec.compat.tool_choice = false,
                RequestPart::DeveloperRole => spec.compat.developer_role = false,
            }
        }
        spec.cache_hour = adjust.cache_hour && spec.caches_for_an_hour();
        spec
    }

    /// Applies a window that is smaller than the configured one. The output limit shrinks, too, because an answer that
    /// could fill the window would leave no room for the input.
    pub(crate) fn fit_into(&mut self, window: u64) {
        if window < self.context_window {
            self.context_window = window;
            let half = u32::try_from(window / 2).unwrap_or(u32::MAX).max(1);
            self.max_output = self.max_output.min(half);
        }
    }

    /// Whether its server can be asked to keep a cached prompt for an hour.
    #[must_use]
    pub const fn caches_for_an_hour(&self) -> bool {
        self.compat.prompt_cache && self.compat.prompt_cache_1h
    }

    /// The cost of a call, if the price is known.
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
            compat: Compat::of(Dialect::Scripted, "", "", &CompatConfig::default()),
            capabilities: Capabilities::of(Dialect::Scripted, "", &CapabilitiesConfig::default()),
            cache_hour: false,
            temperature: None,
            thinking: None,
            stream: true,
            record: None,
            script: Some(script),
        }
    }
}

/// The adjustments of one session to the configured model, and what the server refused so far.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Adjust {
    /// How hard the model should think.
    pub thinking: Option<ThinkingLevel>,
    /// How tools are described to it.
    pub tool_protocol: Option<ToolProtocol>,
    /// The request parts to omit.
    pub without: Vec<RequestPart>,
    /// The context window that the server reported, in tokens.
    pub window: Option<u64>,
    /// The most tokens per answer.
    pub max_output: Option<u32>,
    /// The provider should keep the prompt cached for an hour.
    pub cache_hour: bool,
}

/// Everything apart from the conversation that affects its encoding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HistoryKey {
    name: String,
    tool_protocol: ToolProtocol,
    replay_reasoning: bool,
    prompt_cache: bool,
    images: bool,
}

impl HistoryKey {
    pub(crate) fn of(spec: &ModelSpec) -> Self {
        Self {
            name: spec.name.clone(),
            tool_protocol: spec.tool_protocol,
            replay_reasoning: spec.compat.replay_reasoning,
            prompt_cache: spec.compat.prompt_cache,
            images: spec.capabilities.images,
        }
    }

    pub(crate) fn is_of(&self, spec: &ModelSpec) -> bool {
        self.name == spec.name
            && self.tool_protocol == spec.tool_protocol
            && self.replay_reasoning == spec.compat.replay_reasoning
            && self.prompt_cache == spec.compat.prompt_cache
            && self.images == spec.capabilities.images
    }
}

/// The dialect's name in the configuration.
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
