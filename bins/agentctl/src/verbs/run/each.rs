//! `run --each`: one session for each line of a file, and a table of results at the end.

use super::{create, create_params};
use crate::cli::{RunArgs, WaitFor};
use crate::ctx::Ctx;
use crate::dial::Dial;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::Row;
use crate::render::{Column, clean, one_line};
use crate::values;
use crate::verbs::wait::{Waited, at_rest};
use agentd_client::Client;
use agentd_protocol::{Block, CreateParams, EndReason, Timestamp};
use futures_util::StreamExt as _;
use futures_util::stream;
use serde::Serialize;
use std::path::Path;

const USAGE: &str = "agentctl run --each tasks.txt --workspace worktree \"fix the lint {}\"";
/// What a line replaces in the prompt.
const PLACE: &str = "{}";
/// The most lines.
const MAX_LINES: usize = 10_000;

/// The result of one line.
#[derive(Debug, Serialize)]
struct Done {
    task: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    session: Option<String>,
    state: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<EndReason>,
    steps: u64,
    cost_usd: f64,
    /// Where it worked.
    workdir: String,
    exit: u8,
    /// Why there is no session, or no result.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

impl Row for Done {
    fn columns(wide: bool) -> Vec<Column> {
        let mut columns = vec![
            Column::text("task", 0, 24),
            Column::whole("session", 0),
            Column::whole("state", 0),
            Column::text("result", 0, 24),
            Column::whole("steps", 1),
            Column::whole("cost", 1),
        ];
        if wide {
            columns.push(Column::text("workdir", 2, 60));
        }
        columns
    }

    fn cells(&self, wide: bool, _: Timestamp) -> Vec<String> {
        let short = |id: &String| {
            id.parse()
                .map_or_else(|_| id.clone(), |id: agentd_protocol::SessionId| id.short())
        };
        let reason = self.reason.and_then(|reason| serde_json::to_value(reason).ok());
        let reason = reason
            .as_ref()
            .and_then(serde_json::Value::as_str)
            .map(str::to_owned);
        let result = self.error.clone().or(reason).unwrap_or_default();
        let mut cells = vec![
            one_line(&self.task, 200),
            self.session.as_ref().map(short).unwrap_or_default(),
            self.state.clone(),
            one_line(&result, 200),
            self.steps.to_string(),
            format!("${:.2}", self.cost_usd),
        ];
        if wide {
            cells.push(clean(&self.workdir).into_owned());
        }
        cells
    }

    fn name(&self) -> String {
        self.session.clone().unwrap_or_default()
    }
}

/// The tasks in a text: its lines without the empty ones.
fn tasks(text: &str) -> Vec<String> {
    text.lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .map(str::to_owned)
        .collect()
}

/// The parameters of each line's session.
fn orders(
    args: &RunArgs,
    prompt: &str,
    tasks: &[String],
    headless: bool,
) -> Result<Vec<CreateParams>, Failure> {
    let one = |(number, task): (usize, &String)| {
        let mut params = create_params(args, vec![Block::text(prompt.replace(PLACE, task))], headless)?;
        let numbered = |text: &String| format!("{text} {}", number + 1);
        params.title = args.name.as_ref().map(numbered);
        params.key = args.key.as_ref().map(numbered);
        Ok(params)
    };
    tasks.iter().enumerate().map(one).collect()
}

pub(super) async fn each(ctx: &mut Ctx, args: &RunArgs, file: &Path) -> Result<Exit, Failure> {
    let prompt = args.prompt.clone().unwrap_or_default();
    if !prompt.contains(PLACE) {
        return Err(Failure::invalid(
            "with --each, the prompt must contain {}, which each line replaces",
            USAGE,
        ));
    }
    let tasks = tasks(&values::text_of(file)?);
    if tasks.is_empty() || tasks.len() > MAX_LINES {
        let what = format!(
            "{} has {} lines with text; 1 to {MAX_LINES} are possible",
            file.display(),
            tasks.len()
        );
        return Err(Failure::invalid(what, USAGE));
    }
    let person = ctx.out.terminal.interactive() && ctx.out.human();
    let orders = orders(args, &prompt, &tasks, !person)?;
    let client = ctx.connect_or_start().await?;
    let dial = ctx.dial()?;
    let count = tasks.len();
    let work = tasks.into_iter().zip(orders);
    let runs = work.map(|(task, params)| one(&dial, &client, task, params));
    let at_once = usize::try_from(args.at_once).unwrap_or(1).max(1);
    let mut running = stream::iter(runs.enumerate().map(|(n, run)| async move { (n, run.await) }))
        .buffer_unordered(at_once);
    let mut done = Vec::new();
    while let Some((number, (row, notices))) = running.next().await {
        for notice in notices.iter().filter(|_| done.is_empty()) {
            ctx.out.status(&format!("note: {}", clean(notice)));
        }
        let result = row.error.clone().unwrap_or_else(|| row.state.clone());
        ctx.out.status(&format!(
            "{} of {count}: {}: {}",
            done.len() + 1,
            one_line(&row.task, 60),
            one_line(&result, 100)
        ));
        done.push((number, row));
    }
    done.sort_by_key(|(number, _)| *number);
    let rows: Vec<Done> = done.into_iter().map(|(_, row)| row).collect();
    ctx.out.list(&rows)?;
    Ok(rows.iter().fold(Exit::OK, |exit, row| exit.or(Exit(row.exit))))
}

/// Runs one line's session until its turn is over, or until it waits for a person.
async fn one(dial: &Dial, client: &Client, task: String, params: CreateParams) -> (Done, Vec<String>) {
    let mut row = Done {
        task,
        session: None,
        state: "failed".to_owned(),
        reason: None,
        steps: 0,
        cost_usd: 0.0,
        workdir: String::new(),
        exit: Exit::FAILURE.0,
        error: None,
    };
    let entered = match create(client, &params).await {
        Ok(entered) => entered,
        Err(failure) => {
            row.error = Some(failure.to_string());
            return (row, Vec::new());
        }
    };
    let session = entered.session.to_string();
    row.session = Some(session.clone());
    match at_rest(dial, client, &session, WaitFor::Idle).await {
        Ok(Waited { reason, exit, .. }) => (row.reason, row.exit) = (reason, exit),
        Err(failure) => row.error = Some(failure.to_string()),
    }
    if let Ok(summary) = client.get(&session).await {
        row.state = summary.status.state.as_str().to_owned();
        (row.steps, row.cost_usd) = (summary.steps, summary.cost_usd);
        row.workdir = summary.workdir;
    }
    (row, entered.notices)
}

#[cfg(test)]
mod tests {
    use super::tasks;

    #[test]
    fn each_line_with_text_is_a_task() {
        assert_eq!(tasks("one\n\n  two words \r\n\t\n"), ["one", "two words"]);
        assert!(tasks(" \n").is_empty());
    }
}
