//! The defaults: what the shipped file says. No struct repeats them.

use crate::agents::AgentsConfig;
use crate::daemon::{ControlConfig, LimitsConfig, LogConfig, NodeConfig};
use crate::fleet::{FleetConfig, LocalUsers};
use crate::hooks::HooksConfig;
use crate::http::HttpConfig;
use crate::index::{EmbeddingConfig, IndexConfig};
use crate::mcp::McpConfig;
use crate::models::{ModelChoice, RetryConfig, SchedulerConfig};
use crate::sandbox::SandboxConfig;
use crate::session::{ContextConfig, LoopConfig, PermissionConfig, ToolsConfig};
use crate::settings::Settings;
use crate::side_calls::SideCallsConfig;
use crate::store::StoreConfig;
use crate::web::WebConfig;
use crate::webhook::WebhookConfig;
use crate::workspace::WorkspaceConfig;
use std::sync::LazyLock;

/// The shipped configuration file: every key, its default, and what it does. It is the lowest layer.
pub const SHIPPED: &str = include_str!("../../../config/agentd.toml");

#[expect(
    clippy::expect_used,
    reason = "the file is part of the program, and a test reads it"
)]
static DEFAULTS: LazyLock<Settings> = LazyLock::new(|| {
    let read = toml::from_str(SHIPPED).map_err(|error| error.message().to_owned());
    read.expect("the shipped configuration has every key")
});

impl Default for Settings {
    fn default() -> Self {
        DEFAULTS.clone()
    }
}

/// The defaults of a section. The section must not be `#[serde(default)]`: reading the shipped file would need itself.
macro_rules! sections {
    ($($section:ident: $($field:ident).+;)+) => {
        $(impl Default for $section {
            fn default() -> Self {
                DEFAULTS.$($field).+.clone()
            }
        })+
    };
}

sections! {
    AgentsConfig: agents;
    ContextConfig: context;
    ControlConfig: control;
    EmbeddingConfig: index.embedding;
    FleetConfig: fleet;
    HooksConfig: hooks;
    HttpConfig: http;
    IndexConfig: index;
    LimitsConfig: limits;
    LocalUsers: fleet.local_users;
    LogConfig: log;
    LoopConfig: r#loop;
    McpConfig: mcp;
    ModelChoice: model;
    NodeConfig: node;
    PermissionConfig: permission;
    RetryConfig: retry;
    SandboxConfig: sandbox;
    SchedulerConfig: scheduler;
    SideCallsConfig: side_calls;
    StoreConfig: store;
    ToolsConfig: tools;
    WebConfig: tools.web;
    WebhookConfig: permission.webhook;
    WorkspaceConfig: workspace;
}
