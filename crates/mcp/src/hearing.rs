//! Handles unsolicited messages of a server. The SDK answers its requests as for a client without capabilities: no
//! sampling, no roots, and questions to the user are declined.

use crate::call::{Heard, OnProgress};
use crate::cleaning::words;
use rmcp::model::{
    ClientCapabilities, ClientConfig, Implementation, ProgressNotificationParam, ProgressToken,
    ProtocolVersion,
};
use rmcp::service::NotificationContext;
use rmcp::{ClientHandler, RoleClient};
use std::collections::HashMap;
use std::sync::Arc;
use tokio::sync::{Mutex, watch};

/// The progress receivers, by call.
pub(crate) type Routes = HashMap<ProgressToken, OnProgress>;

/// The message handler of one connection; clones share its state.
#[derive(Debug, Clone)]
pub(crate) struct Hearing {
    pub(crate) routes: Arc<Mutex<Routes>>,
    /// How often the server reported a change of its tools.
    pub(crate) changes: Arc<watch::Sender<u64>>,
    /// The same count over all servers.
    all_changes: Arc<watch::Sender<u64>>,
}

impl Hearing {
    pub(crate) fn new(all_changes: Arc<watch::Sender<u64>>) -> Self {
        Self {
            routes: Arc::default(),
            changes: Arc::new(watch::Sender::new(0)),
            all_changes,
        }
    }
}

impl ClientHandler for Hearing {
    fn get_info(&self) -> ClientConfig {
        let us = Implementation::new("agentd", env!("CARGO_PKG_VERSION"));
        // The newest version that starts with `initialize`; an older server answers with its own.
        ClientConfig::new(ClientCapabilities::default(), us)
            .with_protocol_version(ProtocolVersion::V_2025_11_25)
    }

    async fn on_progress(&self, said: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        let route = self.routes.lock().await.get(&said.progress_token).cloned();
        if let Some(route) = route {
            route.report(Heard {
                progress: said.progress,
                total: said.total,
                message: words(said.message.as_deref().unwrap_or_default()),
            });
        }
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.changes.send_modify(|count| *count += 1);
        self.all_changes.send_modify(|count| *count += 1);
    }
}
