//! The JSON shapes and table rows of sessions.

use crate::output::Row;
use crate::render::{
    ApprovalRow, Column, Paint, age, count, dollars, limit_lines, one_line, span, state_tint, tidy_usd,
    tokens,
};
use agentd_protocol::{
    Budget, Labels, LoopLimits, QueuedInput, RunState, RunningJob, Seq, SessionId, Spent, Summary, Timestamp,
    TodoItem, TodoStatus, TurnError, TurnId, Usage, listed,
};
use agentd_text::{laid_out, question_lines};
use serde::Serialize;

/// The width of the detail page.
const PAGE: usize = 100;

/// One session of `ps`: exactly the documented fields.
#[derive(Debug, Serialize)]
pub(crate) struct SessionRow {
    pub(crate) session: SessionId,
    pub(crate) name: String,
    pub(crate) state: RunState,
    pub(crate) reason: String,
    pub(crate) since: Timestamp,
    pub(crate) model: String,
    pub(crate) workdir: String,
    pub(crate) labels: Labels,
    #[serde(skip_serializing_if = "Labels::is_empty")]
    pub(crate) requires: Labels,
    pub(crate) seq: Seq,
    pub(crate) steps: u64,
    pub(crate) usage: Usage,
    pub(crate) cost_usd: f64,
    pub(crate) created_at: Timestamp,
    pub(crate) updated_at: Timestamp,
    pub(crate) parent: Option<SessionId>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) children: Vec<SessionId>,
    /// The tree lines before the name, for `ps --tree`.
    #[serde(skip)]
    pub(crate) branch: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) jobs: Vec<RunningJob>,
    /// The daemon's description of the sandbox.
    #[serde(skip)]
    pub(crate) sandbox: String,
}

impl From<Summary> for SessionRow {
    fn from(row: Summary) -> Self {
        Self {
            session: row.session,
            name: row.name,
            state: row.status.state,
            reason: row.status.reason,
            since: row.status.since,
            model: row.model,
            workdir: row.workdir,
            labels: row.labels,
            requires: row.requires,
            seq: row.seq,
            steps: row.steps,
            usage: row.usage,
            cost_usd: tidy_usd(row.cost_usd),
            created_at: row.created_at,
            updated_at: row.updated_at,
            parent: row.parent,
            children: row.children,
            branch: String::new(),
            jobs: row.jobs,
            sandbox: String::new(),
        }
    }
}

impl Row for SessionRow {
    fn columns(wide: bool) -> Vec<Column> {
        let mut columns = vec![
            Column::whole("session", 0),
            Column::text("name", 0, 20),
            Column::whole("state", 0).tinted(state_tint),
            Column::text("reason", 2, 12),
            Column::whole("age", 3),
            Column::text("model", 5, 10),
            Column::whole("steps", 7),
            Column::whole("tokens", 6),
            Column::whole("cost", 4),
        ];
        if wide {
            columns
                .extend(["since", "seq", "sandbox", "labels", "workdir"].map(|name| Column::whole(name, 8)));
        }
        columns
    }

    fn cells(&self, wide: bool, now: Timestamp) -> Vec<String> {
        let mut cells = vec![
            self.session.short(),
            format!("{}{}", self.branch, self.name),
            self.state.to_string(),
            self.reason.clone(),
            age(self.created_at, now),
            self.model.clone(),
            self.steps.to_string(),
            tokens(self.usage.total()),
            dollars(self.cost_usd),
        ];
        if wide {
            cells.extend([
                age(self.since, now),
                self.seq.to_string(),
                self.sandbox.clone(),
                listed(&self.labels),
                self.workdir.clone(),
            ]);
        }
        cells
    }

    fn name(&self) -> String {
        self.session.to_string()
    }
}

/// The most sub-agents that the detail page lists.
const MOST_SUBAGENTS: usize = 20;
/// The most characters of a summary.
const MOST_OF_SUMMARY: usize = 1_200;

/// One session of `show`: the fields of `ps`, and its open items.
#[derive(Debug, Serialize)]
pub(crate) struct SessionDetail {
    #[serde(flatten)]
    pub(crate) row: SessionRow,
    pub(crate) turn: Option<TurnId>,
    pub(crate) open_approvals: Vec<ApprovalRow>,
    pub(crate) queue: Vec<QueuedInput>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) todo: Vec<TodoItem>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) summary: Option<String>,
    /// The number of sub-agents so far; left out if 0. `below` is what the ended ones spent.
    #[serde(skip_serializing_if = "is_zero")]
    pub(crate) subagents: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) below: Option<Spent>,
    pub(crate) budget: Budget,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) limits: Option<Box<LoopLimits>>,
    pub(crate) last_error: Option<TurnError>,
    /// The savings by the prompt cache, if the model has a price.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) saved_usd: Option<f64>,
    /// The sub-agents' rows, for the detail page.
    #[serde(skip)]
    pub(crate) below_it: Vec<SessionRow>,
}

impl From<Summary> for SessionDetail {
    fn from(mut row: Summary) -> Self {
        let open = std::mem::take(&mut row.open_approvals);
        Self {
            turn: row.turn,
            open_approvals: open.into_iter().map(ApprovalRow::from).collect(),
            queue: std::mem::take(&mut row.queue),
            todo: std::mem::take(&mut row.todo),
            summary: row.summary.take(),
            subagents: row.subagents,
            below: (row.subagents > 0).then_some(Spent {
                usd: tidy_usd(row.below.usd),
                ..row.below
            }),
            budget: row.budget,
            limits: row.limits.take(),
            last_error: row.last_error.take(),
            saved_usd: None,
            below_it: Vec::new(),
            row: row.into(),
        }
    }
}

impl SessionDetail {
    /// The detail page.
    pub(crate) fn text(&self, paint: Paint, now: Timestamp) -> String {
        let row = &self.row;
        let mut text = String::new();
        let mut put = |key: &str, value: &str| {
            let most = if key == "summary" { MOST_OF_SUMMARY } else { 400 };
            text.push_str(&format!(
                "{} {}\n",
                paint.dim(&format!("{key:<10}")),
                one_line(value, most)
            ));
        };
        put("session", &format!("{} ({})", row.session, row.session.short()));
        put("name", &row.name);
        put(
            "state",
            &format!("{} for {}: {}", row.state, age(row.since, now), row.reason),
        );
        put("model", &row.model);
        put("workdir", &row.workdir);
        if !row.labels.is_empty() {
            put("labels", &listed(&row.labels));
        }
        put(
            "created",
            &format!("{} ({} ago)", row.created_at, age(row.created_at, now)),
        );
        put(
            "updated",
            &format!("{} ({} ago)", row.updated_at, age(row.updated_at, now)),
        );
        put(
            "log",
            &format!("{}, {}", count(row.seq, "event"), count(row.steps, "step")),
        );
        let saved = self.saved_usd.filter(|usd| *usd > 0.0);
        let saved = saved.map_or_else(String::new, |usd| {
            format!(" ({} saved by the cache)", dollars(usd))
        });
        put(
            "usage",
            &format!("{}{saved}", usage_line(&row.usage, row.cost_usd)),
        );
        put("budget", &budget_line(&self.budget));
        for (key, line) in self
            .limits
            .iter()
            .flat_map(|limits| limit_lines(limits, &self.budget))
        {
            put(key, &line);
        }
        if let Some(turn) = self.turn {
            put("turn", &turn.to_string());
        }
        self.put_more(&mut put, now);
        for approval in &self.open_approvals {
            for line in laid_out(&question_lines(&approval.open), PAGE) {
                text.push_str(&format!("{}\n", line.text()));
            }
        }
        text
    }

    /// The lines that only some sessions have.
    fn put_more(&self, put: &mut dyn FnMut(&str, &str), now: Timestamp) {
        let row = &self.row;
        if !row.requires.is_empty() {
            put("requires", &listed(&row.requires));
        }
        if let Some(parent) = row.parent {
            put("parent", &parent.to_string());
        }
        for child in self.below_it.iter().take(MOST_SUBAGENTS) {
            put("sub-agent", &subagent_line(child));
        }
        if let Some(more) = self.below_it.len().checked_sub(MOST_SUBAGENTS)
            && more > 0
        {
            put("", &format!("and {more} more: agentctl ps -a --tree"));
        }
        if let Some(below) = &self.below {
            put("below", &below_line(self.subagents, below));
        }
        if let Some(error) = &self.last_error {
            put("last error", &format!("{}: {}", error.class, error.message));
        }
        if let Some(summary) = &self.summary {
            put("summary", summary);
        }
        for item in &self.todo {
            put("to do", &todo_line(item));
        }
        for job in &row.jobs {
            put("job", &job_line(job, now));
        }
        for approval in &self.open_approvals {
            put(
                "approval",
                &format!("{}  {}", approval.approval.short(), approval.title),
            );
        }
        for input in &self.queue {
            put("queued", &format!("{}  {}", input.input.short(), input.preview));
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
const fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// Fits a terminal of 80 columns.
fn subagent_line(row: &SessionRow) -> String {
    let state = format!("{:<17}", row.state.to_string());
    format!("{} {state} {}", row.session.short(), one_line(&row.name, 38))
}

fn below_line(subagents: u32, spent: &Spent) -> String {
    format!(
        "{}; finished ones: {}, {} tokens, {}",
        count(subagents.into(), "sub-agent"),
        count(spent.steps, "step"),
        tokens(spent.tokens),
        dollars(spent.usd)
    )
}

fn job_line(job: &RunningJob, now: Timestamp) -> String {
    format!("{} for {}: {}", job.job, age(job.started_at, now), job.command)
}

fn todo_line(item: &TodoItem) -> String {
    let mark = match item.status {
        TodoStatus::Pending => "[ ]",
        TodoStatus::InProgress => "[>]",
        TodoStatus::Completed => "[x]",
    };
    format!("{mark} {}", item.content)
}

fn usage_line(usage: &Usage, cost_usd: f64) -> String {
    let cached = usage.cached_percent().filter(|percent| *percent > 0);
    let cached = cached.map_or_else(String::new, |percent| format!(" ({percent} % of the input)"));
    format!(
        "{} in, {} out, {} cache read{cached}, {} cache write, {}",
        tokens(usage.input),
        tokens(usage.output),
        tokens(usage.cache_read),
        tokens(usage.cache_write),
        dollars(cost_usd)
    )
}

fn budget_line(budget: &Budget) -> String {
    let mut parts = Vec::new();
    if budget.tokens > 0 {
        parts.push(format!("{} tokens", tokens(budget.tokens)));
    }
    if budget.usd > 0.0 {
        parts.push(dollars(budget.usd));
    }
    if budget.time_ms > 0 {
        parts.push(span(budget.time_ms));
    }
    if budget.steps > 0 {
        parts.push(count(budget.steps, "step"));
    }
    if parts.is_empty() {
        "none".to_owned()
    } else {
        parts.join(", ")
    }
}
