//! The table rows of a node's models, tools, tool servers and usage.

use crate::output::Row;
use crate::render::{Column, age, dollars, tokens, word};
use agentd_protocol::{
    CredentialStatus, DailyUsageRow, LastCall, ModelStatus, ServerRow, SessionId, Timestamp, ToolRow,
    UsageRow,
};
use serde::Serialize;

/// One model of `models`.
#[derive(Debug, Serialize)]
#[serde(transparent)]
pub(crate) struct ModelRow(pub(crate) ModelStatus);

impl Row for ModelRow {
    fn columns(wide: bool) -> Vec<Column> {
        let mut columns = vec![
            Column::text("name", 0, 14),
            Column::whole("default", 2),
            Column::text("provider", 6, 8),
            Column::text("model", 3, 14),
            Column::whole("usable", 0),
            Column::text("credentials", 5, 14),
            Column::text("note", 1, 30),
        ];
        if wide {
            columns.extend(["dialect", "running", "waiting", "paused"].map(|name| Column::whole(name, 7)));
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
            usable(row).to_owned(),
            health(row, now),
            note(row, now),
        ];
        if wide {
            let paused = row
                .paused_until
                .map(|at| format!("for {}", age(now, at)))
                .unwrap_or_default();
            cells.extend([
                row.dialect.clone(),
                match row.permits {
                    0 => row.running.to_string(),
                    permits => format!("{}/{permits}", row.running),
                },
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

/// Whether the model can be called, as far as the daemon knows.
fn usable(row: &ModelStatus) -> &'static str {
    match &row.last_call {
        _ if !row.usable => "no",
        Some(LastCall { failed: Some(_), .. }) => "failed",
        _ if row.untried => "not tried",
        Some(_) | None => "yes",
    }
}

/// A note about the model. What needs attention comes first, because the line may be cut.
fn note(row: &ModelStatus, now: Timestamp) -> String {
    let (name, note) = (&row.name, &row.note);
    match &row.last_call {
        _ if !row.usable => note.clone(),
        Some(LastCall {
            at,
            failed: Some(class),
        }) => format!("last call failed {} ago: {}; {note}", age(*at, now), word(class)),
        _ if row.untried => format!("test it with agentctl run --model {name} hi; {note}"),
        Some(_) | None => note.clone(),
    }
}

/// Each credential with its health: `main ok, spare cooling 4m (quota_exhausted)`.
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
    fn columns(_wide: bool) -> Vec<Column> {
        vec![
            Column::text("name", 0, 16),
            Column::whole("effect", 1),
            Column::text("aliases", 3, 8),
            Column::text("description", 2, 24),
        ]
    }

    fn cells(&self, _wide: bool, _now: Timestamp) -> Vec<String> {
        let row = &self.0;
        let description = row.description.lines().next().unwrap_or_default();
        vec![
            row.name.clone(),
            word(&row.effect),
            row.aliases.join(", "),
            description.to_owned(),
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
    fn columns(_wide: bool) -> Vec<Column> {
        vec![
            Column::text("server", 0, 12),
            Column::text("workdir", 4, 12),
            Column::whole("state", 0),
            Column::whole("tools", 2),
            Column::whole("busy", 5),
            Column::whole("restarts", 3),
            Column::text("last error", 1, 20),
        ]
    }

    fn cells(&self, _wide: bool, _now: Timestamp) -> Vec<String> {
        let row = &self.0;
        vec![
            row.server.clone(),
            row.workdir.clone().unwrap_or_else(|| "-".to_owned()),
            row.state.clone(),
            row.tools.to_string(),
            row.busy.to_string(),
            row.restarts.to_string(),
            row.last_error.clone().unwrap_or_default(),
        ]
    }

    fn name(&self) -> String {
        self.0.server.clone()
    }
}

/// One group of `usage`.
#[derive(Debug, Serialize)]
pub(crate) struct UsageListRow {
    #[serde(flatten)]
    pub(crate) row: UsageRow,
    /// The savings by the prompt cache, as far as prices are known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) saved_usd: Option<f64>,
}

impl Row for UsageListRow {
    fn columns(_wide: bool) -> Vec<Column> {
        vec![
            Column::text("group", 0, 16),
            Column::whole("sessions", 4),
            Column::whole("steps", 5),
            Column::whole("input", 2),
            Column::whole("output", 3),
            Column::whole("cache read", 6),
            Column::whole("cache write", 7),
            Column::whole("cached", 4),
            Column::whole("saved", 8),
            Column::whole("cost", 0),
        ]
    }

    fn cells(&self, _wide: bool, _now: Timestamp) -> Vec<String> {
        let row = &self.row;
        // Tables show ids in their short form, which commands accept too.
        let group = row.group.parse().map(|id: SessionId| id.short());
        vec![
            group.unwrap_or_else(|_| row.group.clone()),
            row.sessions.to_string(),
            row.steps.to_string(),
            tokens(row.usage.input),
            tokens(row.usage.output),
            tokens(row.usage.cache_read),
            tokens(row.usage.cache_write),
            row.usage
                .cached_percent()
                .map_or_else(String::new, |percent| format!("{percent} %")),
            self.saved_usd.map_or_else(String::new, dollars),
            dollars(row.cost_usd),
        ]
    }

    fn name(&self) -> String {
        self.row.group.clone()
    }
}

/// One group of one day of `usage --daily`.
#[derive(Debug, Serialize)]
#[serde(transparent)]
pub(crate) struct DailyListRow(pub(crate) DailyUsageRow);

impl Row for DailyListRow {
    fn columns(_wide: bool) -> Vec<Column> {
        vec![
            Column::whole("day", 0),
            Column::text("group", 0, 16),
            Column::whole("steps", 4),
            Column::whole("input", 2),
            Column::whole("output", 3),
            Column::whole("cache read", 5),
            Column::whole("cost", 0),
        ]
    }

    fn cells(&self, _wide: bool, _now: Timestamp) -> Vec<String> {
        let row = &self.0;
        vec![
            row.day.clone(),
            row.group.clone(),
            row.steps.to_string(),
            tokens(row.usage.input),
            tokens(row.usage.output),
            tokens(row.usage.cache_read),
            dollars(row.cost_usd),
        ]
    }

    fn name(&self) -> String {
        self.0.day.clone()
    }
}
