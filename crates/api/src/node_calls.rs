//! `node.*`, `tool.list`: methods about the daemon itself.

use crate::api::{Api, READ, StopRequest, fault_of};
use crate::dispatch::answer;
use crate::sight::Caller;
use agentd_actor_kit::{GateMsg, Read, SupervisorMsg, SupervisorStats};
use agentd_file_work::{Hanging, hanging};
use agentd_protocol::{Fault, HangingFiles, NodeStatus, ServerRow, StoreCheck, ToolRow};
use agentd_store::Filter;
use agentd_tools::ToolEntry;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

/// The time limit for a check of the whole store.
const CHECK: Duration = Duration::from_secs(30);

fn files(hanging: &Hanging) -> HangingFiles {
    let who: BTreeSet<String> = hanging.calls.iter().map(|call| call.requester.clone()).collect();
    HangingFiles {
        mount: hanging.mount.display().to_string(),
        silent_ms: hanging
            .silent
            .map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX)),
        calls: hanging.calls.len() as u64,
        who: who.into_iter().collect(),
    }
}

impl Api {
    /// A limited caller gets only information about the sessions that it sees.
    pub(crate) async fn status(&self, who: &Caller) -> Result<NodeStatus, Fault> {
        let stats = self.stats().await?;
        let (hot, sessions, hanging) = match who.limits() {
            None => (
                stats.hot,
                self.read(|done| Read::Count { done }).await?,
                hanging().iter().map(files).collect(),
            ),
            Some(_) => {
                let (hot, sessions) = self.counted(who).await?;
                (hot, sessions, Vec::new())
            }
        };
        let facts = &self.parts.facts;
        Ok(NodeStatus {
            node: facts.node.clone(),
            version: facts.version.clone(),
            pid: facts.pid,
            started_at: facts.started_at,
            draining: stats.draining,
            socket: facts.socket.clone(),
            http: facts.http.clone(),
            store: facts.store.clone(),
            data_dir: facts.data_dir.clone(),
            model: self.parts.view.default_model(),
            sandbox: facts.sandbox.clone(),
            hot,
            sessions,
            connections: self.connections(),
            restarts: self.parts.view.restarts(),
            hanging,
        })
    }

    /// How many sessions the caller sees: those with an actor, and all.
    async fn counted(&self, who: &Caller) -> Result<(u64, u64), Fault> {
        let overlay = self.overlay().await?;
        let mut filter = Filter {
            all: true,
            ..Filter::default()
        };
        let (mut hot, mut all) = (0, 0);
        loop {
            let rows = self.rows(who, filter.clone()).await?;
            let Some(last) = rows.last().map(|row| row.summary.session) else {
                return Ok((hot, all));
            };
            for row in rows.iter().filter(|row| who.sees(&row.summary.labels)) {
                all += 1;
                hot += u64::from(overlay.contains_key(&row.summary.session));
            }
            filter.after = Some(last.into());
        }
    }

    /// The tool servers. A limited caller sees the shared ones: the others name working directories of other sessions.
    pub(crate) fn servers(&self, who: &Caller) -> Vec<ServerRow> {
        let mut rows = self.parts.view.servers();
        rows.retain(|row| who.limits().is_none() || row.workdir.is_none());
        rows
    }

    /// Whether the daemon takes new work: its actors and its store answer, and it is not draining.
    ///
    /// # Errors
    /// The reason why it does not.
    pub async fn ready(&self) -> Result<(), Fault> {
        self.read(|done| Read::Count { done }).await?;
        if self.stats().await?.draining {
            return Err(Fault::unavailable("draining", "the daemon is draining"));
        }
        Ok(())
    }

    /// An overview for troubleshooting. A part that does not answer is replaced by its error.
    pub(crate) async fn diagnostics(&self, who: &Caller) -> Result<Value, Fault> {
        let status = said(self.status(who).await);
        let supervisor = said(self.stats().await.map(|stats| {
            json!({ "hot": stats.hot, "timed": stats.timed, "crashes": stats.crashes, "draining": stats.draining })
        }));
        let states = said(self.overlay().await.map(|overlay| {
            let mut states = BTreeMap::<&str, u64>::new();
            for live in overlay.values() {
                *states.entry(live.status.state.as_str()).or_default() += 1;
            }
            states
        }));
        let rules = self
            .parts
            .gate
            .call(READ, |done| GateMsg::Rules { done })
            .await
            .map_err(fault_of);
        let models = self.parts.view.models().await;
        Ok(json!({
            "status": status,
            "actors": self.parts.view.actors().await,
            "indexes": self.parts.view.indexes().await,
            "supervisor": supervisor,
            "hot_states": states,
            "models": models,
            "store": serde_json::to_value(self.parts.backend.metrics()).unwrap_or_default(),
            "rules": said(rules),
        }))
    }

    /// The settings that the daemon runs with.
    pub(crate) fn config(&self) -> Result<Value, Fault> {
        answer(&self.loaded().shown())
    }

    /// Checks the store for damage, one check at a time: it reads everything, and continues when its caller is gone.
    pub(crate) async fn check_store(&self) -> Result<Value, Fault> {
        let Ok(only) = Arc::clone(&self.checking).try_acquire_owned() else {
            let fault = Fault::busy("checking", "another check of the store is already running");
            return Err(fault.hint("try again when that check has ended"));
        };
        let backend = Arc::clone(&self.parts.backend);
        let look = tokio::spawn(async move {
            let found = backend.check().await;
            drop(only);
            found
        });
        match tokio::time::timeout(CHECK, look).await {
            Ok(Ok(found)) => {
                let found = found?;
                answer(&StoreCheck {
                    problems: found.problems,
                    warnings: found.warnings,
                    sessions: found.sessions,
                    events: found.events,
                    bytes: found.bytes,
                })
            }
            Ok(Err(error)) => Err(Fault::internal("check_failed", error.to_string())),
            Err(_) => {
                let what = format!("the check of the store did not end within {} s", CHECK.as_secs());
                Err(Fault::timeout("check_slow", what))
            }
        }
    }

    /// Reloads the configuration, with the keys and rules that it names.
    pub(crate) async fn reload(&self, who: &Caller) -> Result<Value, Fault> {
        answer(&self.parts.reload.reload(who).await?)
    }

    pub(crate) fn stop(&self, who: &Caller, request: StopRequest) -> Result<Value, Fault> {
        tracing::info!(by = %who, ?request, "asked to stop");
        // A full queue already holds such a request.
        match self.parts.stop.try_send(request) {
            Ok(()) | Err(tokio::sync::mpsc::error::TrySendError::Full(_)) => Ok(json!({})),
            Err(tokio::sync::mpsc::error::TrySendError::Closed(_)) => {
                Err(Fault::unavailable("stopping", "the daemon is already stopping"))
            }
        }
    }

    pub(crate) fn tools(&self) -> Vec<ToolRow> {
        let row = |spec: &agentd_tools::ToolSpec| ToolRow {
            name: spec.name.clone().into_owned(),
            aliases: spec.aliases.iter().map(|alias| (*alias).to_owned()).collect(),
            effect: spec.effect,
            description: spec.description.to_owned(),
            schema: spec.schema.clone(),
        };
        let servers = self.parts.view.server_tools();
        let builtin = self.parts.registry.specs();
        builtin
            .chain(servers.iter().map(ToolEntry::spec))
            .map(row)
            .collect()
    }

    async fn stats(&self) -> Result<SupervisorStats, Fault> {
        self.parts
            .supervisor
            .call(READ, |done| SupervisorMsg::Stats { done })
            .await
            .map_err(fault_of)
    }
}

fn said<T: serde::Serialize>(part: Result<T, Fault>) -> Value {
    let value = match part {
        Ok(part) => serde_json::to_value(part),
        Err(fault) => serde_json::to_value(fault),
    };
    value.unwrap_or(Value::Null)
}
