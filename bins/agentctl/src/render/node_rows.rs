//! The table rows of what a node has: models, tools, usage.

use crate::output::Row;
use crate::render::{age, dollars, one_line, tokens, word};
use agentd_protocol::{CredentialStatus, ModelStatus, ServerRow, Timestamp, ToolRow, UsageRow};
use serde::Serialize;

/// One model of `models`.
#[derive(Debug, Serialize)]
#[serde(transparent)]
pub(crate) struct ModelRow(pub(crate) ModelStatus);

impl Row for ModelRow {
    fn columns(wide: bool) -> Vec<&'static str> {
        let mut columns = vec![
            "name",
            "default",
            "provider",
            "model",
            "usable",
            "credentials",
            "note",
        ];
        if wide {
            columns.extend(["dialect", "running", "waiting", "paused"]);
        }
        columns
    }

    fn cells(&self, wide: bool, now: Timestamp) -> Vec<String> {
        let row = &self.0;
        let yes = |is: bool| if is { "yes" } else { "" }.to_owned();
        let mut cells = vec![
            row.name.clone(),
            yes(row.default),
            row.provider.clone(),
            row.model.clone(),
            if row.usable {
                "yes".to_owned()
            } else {
                "no".to_owned()
            },
            health(row, now),
            row.note.clone(),
        ];
        if wide {
            let paused = row
                .paused_until
                .map(|at| format!("for {}", age(now, at)))
                .unwrap_or_default();
            cells.extend([
                row.dialect.clone(),
                row.running.to_string(),
                row.waiting.to_string(),
                paused,
            ]);
        }
        cells
    }

    fn name(&self) -> String {
        self.0.name.clone()
    }
}

/// Each credential with what can be expected of it: `main ok, spare cooling 4m (quota_exhausted)`.
fn health(row: &ModelStatus, now: Timestamp) -> String {
    let one = |credential: &CredentialStatus| {
        let mut text = format!("{} {}", credential.name, word(&credential.health));
        if let Some(until) = credential.until {
            text.push_str(&format!(" {}", age(now, until)));
        }
        if let Some(class) = credential.class {
            text.push_str(&format!(" ({})", word(&class)));
        }
        text
    };
    row.credentials.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// One tool of `tools`.
#[derive(Debug, Serialize)]
#[serde(transparent)]
pub(crate) struct ToolListRow(pub(crate) ToolRow);

impl Row for ToolListRow {
    fn columns(_wide: bool) -> Vec<&'static str> {
        vec!["name", "effect", "aliases", "description"]
    }

    fn cells(&self, wide: bool, _now: Timestamp) -> Vec<String> {
        let row = &self.0;
        let most = if wide { 200 } else { 80 };
        let description = row.description.lines().next().unwrap_or_default();
        vec![
            row.name.clone(),
            word(&row.effect),
            row.aliases.join(", "),
            one_line(description, most),
        ]
    }

    fn name(&self) -> String {
        self.0.name.clone()
    }
}

/// One tool server of `mcp`.
#[derive(Debug, Serialize)]
#[serde(transparent)]
pub(crate) struct ServerListRow(pub(crate) ServerRow);

impl Row for ServerListRow {
    fn columns(_wide: bool) -> Vec<&'static str> {
        vec![
            "server",
            "workdir",
            "state",
            "tools",
            "busy",
            "restarts",
            "last error",
        ]
    }

    fn cells(&self, wide: bool, _now: Timestamp) -> Vec<String> {
        let row = &self.0;
        let most = if wide { 300 } else { 80 };
        vec![
            row.server.clone(),
            row.workdir.clone().unwrap_or_else(|| "-".to_owned()),
            row.state.clone(),
            row.tools.to_string(),
            row.busy.to_string(),
            row.restarts.to_string(),
            one_line(row.last_error.as_deref().unwrap_or_default(), most),
        ]
    }

    fn name(&self) -> String {
        self.0.server.clone()
    }
}

/// One group of `usage`.
#[derive(Debug, Serialize)]
#[serde(transparent)]
pub(crate) struct UsageListRow(pub(crate) UsageRow);

impl Row for UsageListRow {
    fn columns(_wide: bool) -> Vec<&'static str> {
        vec![
            "group",
            "sessions",
            "steps",
            "input",
            "output",
            "cache read",
            "cache write",
            "cost",
        ]
    }

    fn cells(&self, _wide: bool, _now: Timestamp) -> Vec<String> {
        let row = &self.0;
        vec![
            row.group.clone(),
            row.sessions.to_string(),
            row.steps.to_string(),
            tokens(row.usage.input),
            tokens(row.usage.output),
            tokens(row.usage.cache_read),
            tokens(row.usage.cache_write),
            dollars(row.cost_usd),
        ]
    }

    fn name(&self) -> String {
        self.0.group.clone()
    }
}
