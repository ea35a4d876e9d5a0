//! The daemon's configuration: its types, its layers, and where each key was set.
//!
//! This crate reads only the files that the caller names; environment and flags are passed in as values. A value that
//! is unknown, of the wrong type or out of range prevents the start (I7: nothing is guessed). Output never contains the
//! passwords of URLs (I8).
//!
//! Flow: `Sources` -> `load` -> layers merged key by key -> checked -> `Loaded{settings, origins}`.

mod agents;
mod check;
mod daemon;
mod defaults;
mod duration;
mod error;
mod fleet;
mod hooks;
mod http;
mod index;
mod layer;
mod live;
mod load;
mod mcp;
mod models;
mod origin;
mod preset;
mod ranges;
mod reload;
mod rules;
mod sandbox;
mod session;
mod session_limits;
mod settings;
mod side_calls;
mod store;
mod unsupported;
mod view;
mod web;
mod webhook;
mod workspace;

pub use agentd_protocol::ToolProtocol;
pub use agents::{AgentsConfig, MapInPrompt};
pub use daemon::{ControlConfig, LimitsConfig, LogConfig, NodeConfig};
pub use defaults::SHIPPED;
pub use error::{Problem, SettingsError};
pub use fleet::{FleetConfig, LocalUsers};
pub use hooks::{HOOK_ROUNDS, HookConfig, HookFallback, HooksConfig};
pub use http::{HttpConfig, TlsFiles};
pub use index::{EmbeddingConfig, IndexConfig, Indexing};
pub use live::Live;
pub use load::{Loaded, Sources, load};
pub use mcp::{McpConfig, McpSandbox, McpScope, McpServer};
pub use models::{
    CapabilitiesConfig, CompatConfig, Credential, CredentialSource, Dialect, ModelChoice, ModelConfig,
    ProviderConfig, RatesConfig, RetryConfig, SchedulerConfig, ThinkingForm, ThinkingSwitch, ways_to_a_model,
};
pub use origin::Origin;
pub use reload::{InUse, Reload};
pub use rules::{RuleConfig, RuleExamples};
pub use sandbox::{Network, Reachable, SandboxChoice, SandboxConfig};
pub use session::{
    BudgetConfig, ContextConfig, LoopConfig, PermissionConfig, SessionBudget, Shape, ToolsConfig,
};
pub use session_limits::{AboveCeiling, CLIENT, LimitOverrides};
pub use settings::Settings;
pub use side_calls::SideCallsConfig;
pub use store::{StoreConfig, StoreKind};
pub use view::{Shown, mask_url};
pub use web::{Opened, OpenedPlace, WebConfig};
pub use webhook::{OnExpiry, WebhookConfig};
pub use workspace::{Checkpointing, Keep, WorkspaceConfig, url_is_below};

#[cfg(test)]
mod tests;
