//! Status information that only the node as a whole has.

use crate::children::Handles;
use crate::root::Health;
use crate::tool_servers;
use agentd_actor_kit::{ModelMsg, ProviderStatus};
use agentd_api::{ActorRow, IndexRow, NodeView};
use agentd_mcp::Pool;
use agentd_protocol::{CredentialHealth, CredentialStatus, FailureClass, LastCall, ModelStatus, ServerRow};
use agentd_provider::Registry as Models;
use agentd_settings::Live;
use agentd_tools::{Remote, ToolEntry};
use async_trait::async_trait;
use futures_util::future::join_all;
use std::time::Duration;
use tokio::sync::watch;

/// How long a model client may take to report its status.
const PATIENCE: Duration = Duration::from_secs(1);

/// The node, as the API sees it.
#[derive(Debug)]
pub(crate) struct View {
    models: Live<Models>,
    handles: Handles,
    health: watch::Receiver<Health>,
    servers: Option<Pool>,
}

impl View {
    pub(crate) fn new(
        models: Live<Models>,
        handles: &Handles,
        health: &watch::Receiver<Health>,
        servers: Option<Pool>,
    ) -> Self {
        Self {
            models,
            handles: handles.clone(),
            health: health.clone(),
            servers,
        }
    }
}

/// The failed call to a model that the provider's server does not have.
fn absent(status: &ProviderStatus, model: &str) -> Option<LastCall> {
    let (_, at) = status.absent.iter().find(|(name, _)| name == model)?;
    Some(LastCall {
        at: *at,
        failed: Some(FailureClass::InvalidRequest),
    })
}

#[async_trait]
impl NodeView for View {
    async fn models(&self) -> Vec<ModelStatus> {
        let mut rows = self.models.now().rows();
        for (provider, client) in &self.handles.models {
            // A client that does not answer shows as idle; the log says that it is down.
            let Ok(status) = client.call(PATIENCE, |done| ModelMsg::Status { done }).await else {
                continue;
            };
            for row in rows.iter_mut().filter(|row| row.provider == *provider) {
                row.running = status.running;
                row.waiting = status.waiting;
                row.permits = status.permits;
                row.paused_until = status.paused_until;
                row.circuit = status.circuit;
                row.last_call = absent(&status, &row.model).or(status.last_call);
                row.untried = row.untried && status.last_call.is_none();
                row.credentials = self.credentials(provider, &row.model, &status);
            }
        }
        rows
    }

    async fn actors(&self) -> Vec<ActorRow> {
        let parts = self.health.borrow().parts.clone();
        let rows = parts
            .into_iter()
            .map(|part| crate::probe::row(&self.handles, part));
        join_all(rows).await
    }

    async fn indexes(&self) -> Vec<IndexRow> {
        crate::probe::indexes(&self.handles).await
    }

    fn default_model(&self) -> String {
        model_note(&self.models.now())
    }

    fn restarts(&self) -> u64 {
        self.health.borrow().restarts
    }

    fn servers(&self) -> Vec<ServerRow> {
        let all = self.servers.iter().flat_map(Pool::status);
        all.map(tool_servers::row).collect()
    }

    fn server_names(&self) -> Vec<String> {
        self.servers.iter().flat_map(Remote::servers).collect()
    }

    fn server_tools(&self) -> Vec<ToolEntry> {
        self.servers.iter().flat_map(Pool::known).collect()
    }
}

impl View {
    /// The status of a provider's credentials for one model. A credential that the model never used counts as healthy.
    /// A provider without credentials shows only problems.
    fn credentials(&self, provider: &str, model: &str, status: &ProviderStatus) -> Vec<CredentialStatus> {
        let used = || {
            let of_model = status.credentials.iter().filter(|(name, _)| name == model);
            of_model.map(|(_, credential)| credential.clone())
        };
        let names = self.models.now().credentials(provider);
        if names.is_empty() {
            return used()
                .filter(|credential| credential.health != CredentialHealth::Ok)
                .collect();
        }
        let fresh = |name: String| CredentialStatus {
            name,
            health: CredentialHealth::Ok,
            running: 0,
            until: None,
            class: None,
            failures: 0,
            buckets: Vec::new(),
        };
        names
            .into_iter()
            .map(|name| {
                used()
                    .find(|credential| credential.name == name)
                    .unwrap_or_else(|| fresh(name))
            })
            .collect()
    }
}

/// The default model, the reason for it, and what it lacks; or why there is none.
pub(crate) fn model_note(models: &Models) -> String {
    let (name, why) = (models.default_model(), models.default_reason());
    match models.get(name) {
        Err(_) if name.is_empty() => format!("none: {why}"),
        Ok(_) => format!("{name} ({why})"),
        Err(unusable) => format!("{name} ({why}), but it cannot be used: {}", unusable.reason),
    }
}
