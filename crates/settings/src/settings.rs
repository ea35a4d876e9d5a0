//! All settings together.

use crate::agents::AgentsConfig;
use crate::daemon::{ControlConfig, LimitsConfig, LogConfig, NodeConfig};
use crate::fleet::FleetConfig;
use crate::hooks::HooksConfig;
use crate::http::HttpConfig;
use crate::index::IndexConfig;
use crate::mcp::McpConfig;
use crate::models::{ModelChoice, ModelConfig, ProviderConfig, RetryConfig, SchedulerConfig};
use crate::sandbox::SandboxConfig;
use crate::session::{BudgetConfig, ContextConfig, LoopConfig, PermissionConfig, ToolsConfig};
use crate::side_calls::SideCallsConfig;
use crate::store::StoreConfig;
use crate::workspace::WorkspaceConfig;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The whole configuration, one field per section.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
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
