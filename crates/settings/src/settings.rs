//! All settings together, and the shipped file that documents them.

use crate::agents::AgentsConfig;
use crate::daemon::{ControlConfig, LimitsConfig, LogConfig, NodeConfig};
use crate::fleet::FleetConfig;
use crate::hooks::HooksConfig;
use crate::http::HttpConfig;
use crate::index::IndexConfig;
use crate::mcp::McpConfig;
use crate::models::{
    Credential, Dialect, ModelChoice, ModelConfig, ProviderConfig, RetryConfig, SchedulerConfig,
};
use crate::sandbox::SandboxConfig;
use crate::session::{BudgetConfig, ContextConfig, LoopConfig, PermissionConfig, ToolsConfig};
use crate::side_calls::SideCallsConfig;
use crate::store::StoreConfig;
use crate::workspace::WorkspaceConfig;
use agentd_protocol::Price;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The shipped configuration file: every key, its default, and what it does. It is the lowest layer.
pub const SHIPPED: &str = include_str!("../../../config/agentd.toml");

/// The whole configuration, one field per section.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// `[store]`.
    pub store: StoreConfig,
    /// `[model]`.
    pub model: ModelChoice,
    /// `[providers.*]`.
    pub providers: BTreeMap<String, ProviderConfig>,
    /// `[models.*]`.
    pub models: BTreeMap<String, ModelConfig>,
    /// `[loop]`.
    pub r#loop: LoopConfig,
    /// `[retry]`.
    pub retry: RetryConfig,
    /// `[scheduler]`.
    pub scheduler: SchedulerConfig,
    /// `[tools]`.
    pub tools: ToolsConfig,
    /// `[index]`.
    pub index: IndexConfig,
    /// `[workspace]`.
    pub workspace: WorkspaceConfig,
    /// `[context]`.
    pub context: ContextConfig,
    /// `[side_calls]`.
    pub side_calls: SideCallsConfig,
    /// `[permission]`.
    pub permission: PermissionConfig,
    /// `[sandbox]`.
    pub sandbox: SandboxConfig,
    /// `[hooks]`.
    pub hooks: HooksConfig,
    /// `[mcp]`.
    pub mcp: McpConfig,
    /// `[agents]`.
    pub agents: AgentsConfig,
    /// `[budget]`.
    pub budget: BudgetConfig,
    /// `[control]`.
    pub control: ControlConfig,
    /// `[http]`.
    pub http: HttpConfig,
    /// `[limits]`.
    pub limits: LimitsConfig,
    /// `[log]`.
    pub log: LogConfig,
    /// `[node]`.
    pub node: NodeConfig,
    /// `[fleet]`.
    pub fleet: FleetConfig,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            store: StoreConfig::default(),
            model: ModelChoice::default(),
            providers: providers(),
            models: models(),
            r#loop: LoopConfig::default(),
            retry: RetryConfig::default(),
            scheduler: SchedulerConfig::default(),
            tools: ToolsConfig::default(),
            index: IndexConfig::default(),
            workspace: WorkspaceConfig::default(),
            context: ContextConfig::default(),
            side_calls: SideCallsConfig::default(),
            permission: PermissionConfig::default(),
            sandbox: SandboxConfig::default(),
            hooks: HooksConfig::default(),
            mcp: McpConfig::default(),
            agents: AgentsConfig::default(),
            budget: BudgetConfig::default(),
            control: ControlConfig::default(),
            http: HttpConfig::default(),
            limits: LimitsConfig::default(),
            log: LogConfig::default(),
            node: NodeConfig::default(),
            fleet: FleetConfig::default(),
        }
    }
}

fn provider(dialect: Dialect, base_url: &str, key: Option<&str>, max_concurrent: u32) -> ProviderConfig {
    let credentials = key
        .map(|env| Credential {
            name: "main".to_owned(),
            env: Some(env.to_owned()),
            file: None,
            exec: None,
        })
        .into_iter()
        .collect();
    ProviderConfig {
        dialect,
        base_url: base_url.to_owned(),
        credentials,
        max_concurrent,
        ..ProviderConfig::default()
    }
}

fn providers() -> BTreeMap<String, ProviderConfig> {
    use Dialect::{Anthropic, Gemini, Ollama, OpenaiChat, OpenaiResponses, Scripted};
    let key = Some;
    [
        (
            "anthropic",
            provider(
                Anthropic,
                "https://api.anthropic.com",
                key("ANTHROPIC_API_KEY"),
                64,
            ),
        ),
        (
            "openai",
            provider(
                OpenaiResponses,
                "https://api.openai.com/v1",
                key("OPENAI_API_KEY"),
                64,
            ),
        ),
        (
            "gemini",
            provider(
                Gemini,
                "https://generativelanguage.googleapis.com",
                key("GEMINI_API_KEY"),
                64,
            ),
        ),
        ("ollama", provider(Ollama, "http://127.0.0.1:11434", None, 2)),
        (
            "llamacpp",
            provider(OpenaiChat, "http://127.0.0.1:8080/v1", None, 2),
        ),
        ("scripted", provider(Scripted, "", None, 256)),
    ]
    .into_iter()
    .map(|(name, provider)| (name.to_owned(), provider))
    .collect()
}

fn model(provider: &str, model: &str, context_window: u64, price: Option<Price>) -> ModelConfig {
    ModelConfig {
        provider: provider.to_owned(),
        model: model.to_owned(),
        context_window,
        price,
        ..ModelConfig::default()
    }
}

fn models() -> BTreeMap<String, ModelConfig> {
    let sonnet = Price {
        input: 3.0,
        output: 15.0,
        cache_read: 0.3,
        cache_write: 3.75,
        cache_write_1h: 0.0,
    };
    let gpt = Price {
        input: 2.0,
        output: 8.0,
        cache_read: 0.5,
        cache_write: 0.0,
        cache_write_1h: 0.0,
    };
    [
        (
            "sonnet",
            model("anthropic", "claude-sonnet-5-5", 200_000, Some(sonnet)),
        ),
        ("gpt", model("openai", "gpt-4.1", 1_000_000, Some(gpt))),
        ("gemini", model("gemini", "gemini-2.5-flash", 1_000_000, None)),
        (
            "ollama",
            ModelConfig {
                max_output: 4_096,
                ..model("ollama", "qwen3", 32_768, None)
            },
        ),
        (
            "llamacpp",
            ModelConfig {
                max_output: 4_096,
                ..model("llamacpp", "default", 32_768, None)
            },
        ),
        ("scripted", model("scripted", "builtin", 200_000, None)),
    ]
    .into_iter()
    .map(|(name, model)| (name.to_owned(), model))
    .collect()
}
