//! `workspace.list` and `workspace.prune`.

use crate::api::Api;
use crate::sight::Caller;
use crate::workspaces::fault_of_workspace;
use agentd_protocol::{
    Fault, RunState, SessionId, WorkspaceKept, WorkspaceListParams, WorkspacePruneParams, WorkspacePruned,
    WorkspaceRow,
};
use agentd_store::Row;
use agentd_workspace::{Record, WorkspaceError};
use std::collections::BTreeSet;
use std::time::Duration;

/// How long measuring one workspace may take.
const MEASURE_WITHIN: Duration = Duration::from_secs(60);
/// How long all measuring may take; the rest of the rows are not measured.
const ALL_WITHIN: Duration = Duration::from_secs(600);
const DAY_MS: u64 = 86_400_000;
/// The most sessions that one call names.
const MAX_SESSIONS: usize = 1_000;

impl Api {
    pub(crate) async fn list_workspaces(
        &self,
        params: WorkspaceListParams,
    ) -> Result<Vec<WorkspaceRow>, Fault> {
        let listing = self.parts.workspaces.list().await.map_err(fault_of_workspace)?;
        let until = tokio::time::Instant::now() + ALL_WITHIN;
        let mut rows = Vec::new();
        for record in listing.records {
            let of = self.parts.backend.row(record.session).await?;
            let mut row = row(&record, of.as_ref());
            if params.measure && tokio::time::Instant::now() < until {
                let all = &self.parts.workspaces;
                if let Ok(usage) = all.usage(record.session, MEASURE_WITHIN).await {
                    (row.bytes, row.files) = (Some(usage.bytes), Some(usage.entries));
                }
                row.unfetched = all.unfetched(&record, MEASURE_WITHIN).await;
            }
            rows.push(row);
        }
        Ok(rows)
    }

    pub(crate) async fn prune_workspaces(
        &self,
        who: &Caller,
        params: WorkspacePruneParams,
    ) -> Result<WorkspacePruned, Fault> {
        if params.sessions.len() > MAX_SESSIONS {
            let message = format!("at most {MAX_SESSIONS} sessions can be named at once");
            return Err(Fault::invalid("too_many_sessions", message));
        }
        let listing = self.parts.workspaces.list().await.map_err(fault_of_workspace)?;
        let mut named = BTreeSet::new();
        for text in &params.sessions {
            named.insert(self.owner_of(who, text, &listing.records).await?);
        }
        let mut pruned = WorkspacePruned::default();
        for record in listing.records {
            if !named.is_empty() && !named.contains(&record.session) {
                continue;
            }
            let of = self.parts.backend.row(record.session).await?;
            match self.keeps(&params, &record, of.as_ref()).await {
                None => pruned.removed.push(row(&record, of.as_ref())),
                Some(reason) if !named.is_empty() || !reason.is_empty() => pruned.kept.push(WorkspaceKept {
                    session: record.session,
                    reason,
                }),
                Some(_) => {}
            }
        }
        if !params.dry_run && !pruned.removed.is_empty() {
            tracing::info!(by = %who, removed = pruned.removed.len(), "workspaces pruned");
        }
        Ok(pruned)
    }

    /// The session that a text names, which may be gone while its workspace is still here.
    async fn owner_of(&self, who: &Caller, text: &str, records: &[Record]) -> Result<SessionId, Fault> {
        match self.session(who, text).await {
            Ok(seen) => Ok(*seen),
            Err(fault) => {
                let mut matching = records.iter().map(|record| record.session).filter(|session| {
                    let full = session.to_string();
                    text.len() >= 4 && (full.starts_with(text) || full.replace('-', "").ends_with(text))
                });
                match (matching.next(), matching.next()) {
                    (Some(only), None) => Ok(only),
                    _ => Err(fault),
                }
            }
        }
    }

    /// Removes a workspace, unless there is a reason to keep it. An empty reason is none worth telling.
    async fn keeps(
        &self,
        params: &WorkspacePruneParams,
        record: &Record,
        of: Option<&Row>,
    ) -> Option<String> {
        if let Some(row) = of {
            let state = row.summary.status.state;
            if state != RunState::Closed {
                let named = !params.sessions.is_empty();
                return Some(if named {
                    format!("its session is {state}: close it first")
                } else {
                    String::new()
                });
            }
            let age = self.parts.clock.now().since_ms(row.summary.updated_at);
            if params.days.is_some_and(|days| age < u64::from(days) * DAY_MS) {
                return Some(String::new());
            }
        }
        let all = &self.parts.workspaces;
        if params.dry_run {
            let unfetched = all.unfetched(record, MEASURE_WITHIN).await;
            return unfetched
                .filter(|_| !params.force)
                .map(|what| format!("work was not fetched: {what}"));
        }
        match all.remove(record.session, params.force).await {
            Ok(_) => None,
            Err(WorkspaceError::NotFetched { what, .. }) => Some(format!("work was not fetched: {what}")),
            Err(error) => Some(error.to_string()),
        }
    }
}

fn row(record: &Record, of: Option<&Row>) -> WorkspaceRow {
    WorkspaceRow {
        session: record.session,
        name: of.map(|row| row.summary.name.clone()),
        state: of.map_or_else(|| "gone".to_owned(), |row| row.summary.status.state.to_string()),
        made_at: record.at,
        workspace: record.workspace.clone(),
        bytes: None,
        files: None,
        unfetched: None,
    }
}
