//! A model as it is called: everything resolved, nothing to look up.

use crate::capabilities::Capabilities;
use crate::script::Script;
use crate::secret::Secret;
use agentd_protocol::{Price, RequestPart, ThinkingLevel, ToolProtocol, Usage};
use agentd_settings::{CapabilitiesConfig, CompatConfig, Dialect, RetryConfig, ThinkingSwitch};
use std::path::PathBuf;
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
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a fact about a server on its own, not a state of one thing"
)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Compat {
    /// The output limit is called `max_completion_tokens`, as at OpenAI itself; everybody else has `max_tokens`.
    pub max_completion_tokens: bool,
    /// Reasoning is sent back under the field it came in; OpenAI itself refuses unknown fields.
    pub replay_reasoning: bool,
    /// The server caches prompts where it is told to.
    pub prompt_cache: bool,
    /// The server counts tokens at the end of a stream when `stream_options` asks for it.
    pub usage_in_stream: bool,
    /// The server knows the role `developer`.
    pub developer_role: bool,
    /// The server takes `tool_choice`.
    pub tool_choice: bool,
    /// Tool call ids have exactly nine letters and digits, as Mistral wants them.
    pub short_tool_ids: bool,
    /// The key goes into the header `api-key`, as Azure wants it, and not into `authorization`.
    pub api_key_header: bool,
    /// How the server is told how hard to think, in the chat dialect.
    pub thinking: ThinkingSwitch,
}

/// Whether OpenAI's own models are at an address: at OpenAI itself, or as deployments at Azure.
pub(crate) fn is_openai(base_url: &str) -> bool {
    ["//api.openai.com", ".openai.azure.com"]
        .iter()
        .any(|host| base_url.contains(host))
}

impl Compat {
    /// What is known about a server by its dialect and address, with what the configuration says over it.
    #[must_use]
    pub fn of(dialect: Dialect, base_url: &str, config: &CompatConfig) -> Self {
        let at = |host: &str| base_url.contains(host);
        let openai = is_openai(base_url);
        let known = Self {
            max_completion_tokens: openai,
            replay_reasoning: !openai || dialect != Dialect::OpenaiChat,
            prompt_cache: dialect == Dialect::Anthropic && at("anthropic.com"),
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
            usage_in_stream: config.usage_in_stream.unwrap_or(known.usage_in_stream),
            developer_role: config.developer_role.unwrap_or(known.developer_role),
            tool_choice: config.tool_choice.unwrap_or(known.tool_choice),
            short_tool_ids: config.short_tool_ids.unwrap_or(known.short_tool_ids),
            api_key_header: config.api_key_header.unwrap_or(known.api_key_header),
            thinking: config.thinking.unwrap_or(known.thinking),
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
    /// What the model can do.
    pub capabilities: Capabilities,
    /// How freely it chooses its words; absent: nothing is said. Already empty where the model refuses it.
    pub temperature: Option<f64>,
    /// How hard it is asked to think; absent: nothing is said.
    pub thinking: Option<ThinkingLevel>,
    /// Answers are asked for in pieces.
    pub stream: bool,
    /// A script file to which its answers are added.
    pub record: Option<PathBuf>,
    /// The turns, for the scripted dialect.
    pub script: Option<Arc<Script>>,
}

impl ModelSpec {
    /// The credential of a name; without a name, or where it is unknown, the first.
    #[must_use]
    pub fn credential(&self, name: Option<&str>) -> Option<&Credential> {
        let named = name.and_then(|name| self.credentials.iter().find(|credential| credential.name == name));
        named.or_else(|| self.credentials.first())
    }

    /// The same model as one session wants it, without what the server was found to refuse.
    #[must_use]
    pub fn adjusted(&self, adjust: &Adjust) -> Self {
        let mut spec = self.clone();
        spec.thinking = adjust.thinking.or(spec.thinking);
        // A raw completion has no calls of its own, whatever a session wishes.
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
            }
        }
        spec
    }

    /// Takes over a window that is smaller than the configured one. An answer that could fill it would leave no room for
    /// the question.
    pub(crate) fn fit_into(&mut self, window: u64) {
        if window < self.context_window {
            self.context_window = window;
            let half = u32::try_from(window / 2).unwrap_or(u32::MAX).max(1);
            self.max_output = self.max_output.min(half);
        }
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
            compat: Compat::of(Dialect::Scripted, "", &CompatConfig::default()),
            capabilities: Capabilities::of(Dialect::Scripted, "", &CapabilitiesConfig::default()),
            temperature: None,
            thinking: None,
            stream: true,
            record: None,
            script: Some(script),
        }
    }
}

/// What one session asks of a model beyond its configuration, and what its server was found to refuse.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Adjust {
    /// How hard it is asked to think.
    pub thinking: Option<ThinkingLevel>,
    /// How it is told about tools.
    pub tool_protocol: Option<ToolProtocol>,
    /// What is left out of its requests.
    pub without: Vec<RequestPart>,
    /// The window that the server told, in tokens.
    pub window: Option<u64>,
    /// Tokens of one answer at most.
    pub max_output: Option<u32>,
}

/// What the encoded messages of a conversation depend on, besides the conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HistoryKey {
    name: String,
    tool_protocol: ToolProtocol,
    replay_reasoning: bool,
}

impl HistoryKey {
    pub(crate) fn of(spec: &ModelSpec) -> Self {
        Self {
            name: spec.name.clone(),
            tool_protocol: spec.tool_protocol,
            replay_reasoning: spec.compat.replay_reasoning,
        }
    }

    pub(crate) fn is_of(&self, spec: &ModelSpec) -> bool {
        self.name == spec.name
            && self.tool_protocol == spec.tool_protocol
            && self.replay_reasoning == spec.compat.replay_reasoning
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
