//! `ps`: lists sessions once or repeatedly.

use crate::cli::{PsArgs, Sort};
use crate::ctx::Ctx;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::interactive::{Before, Console, Signals, TerminalSignal};
use crate::render::{SessionRow, count_rows, fleet_line, hanging};
use crate::values;
use crate::verbs::tree::tree;
use agentd_client::Client;
use agentd_protocol::{ListParams, NodeStatus};
use std::cmp::Reverse;
use std::time::Duration;
use tokio::time::Instant;

const REDRAW: Duration = Duration::from_secs(1);
/// Moves the cursor to the upper left corner and erases everything below.
const HOME_AND_CLEAR: &str = "\x1b[H\x1b[2J";

pub(crate) async fn ps(ctx: &mut Ctx, args: &PsArgs) -> Result<Exit, Failure> {
    if args.watch && !(ctx.out.terminal.stdout && ctx.out.human()) {
        return Err(Failure::invalid(
            "-w redraws a table and requires a terminal",
            "in scripts, use: agentctl events -f -o jsonl",
        ));
    }
    let client = ctx.connect().await?;
    if args.counts {
        let rows = count_rows(&client.fleet_history().await?);
        ctx.out.list(&rows)?;
        return Ok(Exit::OK);
    }
    if args.watch {
        return watch(ctx, &client, args).await;
    }
    let (status, rows) = look(ctx, &client, args).await?;
    print(ctx, args, &rows, &rows)?;
    warn(ctx, &status);
    Ok(Exit::OK)
}

/// Redraws the table every second until the person leaves.
async fn watch(ctx: &mut Ctx, client: &Client, args: &PsArgs) -> Result<Exit, Failure> {
    let mut signals = Signals::listen().map_err(Failure::Output)?;
    let mut console = Console::default();
    loop {
        // A job that was in the background takes the terminal once it is in the foreground.
        if ctx.out.terminal.stdin {
            console.take(Before::Drop);
        }
        let (status, rows) = look(ctx, client, args).await?;
        let shown = rows.get(..room(ctx)).unwrap_or(&rows);
        ctx.out.raw(HOME_AND_CLEAR.as_bytes())?;
        print(ctx, args, shown, &rows)?;
        warn(ctx, &status);
        if let Some(exit) = pause(&mut console, &mut signals).await {
            return Ok(exit);
        }
    }
}

/// Waits until the next redraw; returns an exit code if the person leaves.
async fn pause(console: &mut Console, signals: &mut Signals) -> Option<Exit> {
    let next = Instant::now() + REDRAW;
    loop {
        tokio::select! {
            () = tokio::time::sleep_until(next) => return None,
            keys = console.keys(), if console.open() => {
                // 4 is Ctrl-D.
                if keys.iter().any(|key| matches!(key, b'q' | b'Q' | 4)) {
                    return Some(Exit::OK);
                }
            }
            told = signals.next() => match told {
                TerminalSignal::Continued => console.again(),
                TerminalSignal::Interrupt | TerminalSignal::Terminated => return Some(Exit::INTERRUPTED),
            },
        }
    }
}

/// Lines available for sessions: the heading, two lines below the table, and the cursor need one each.
fn room(ctx: &Ctx) -> usize {
    let lines = ctx.out.terminal.height();
    lines.map_or(usize::MAX, |lines| lines.saturating_sub(4).max(1))
}

async fn look(ctx: &Ctx, client: &Client, args: &PsArgs) -> Result<(NodeStatus, Vec<SessionRow>), Failure> {
    let status = client.status().await?;
    let mut rows = sessions(client, args).await?;
    if ctx.out.wide() {
        for row in &mut rows {
            row.sandbox.clone_from(&status.sandbox);
        }
    }
    Ok((status, rows))
}

/// Prints the table of shown sessions and a summary of all.
fn print(ctx: &mut Ctx, args: &PsArgs, shown: &[SessionRow], all: &[SessionRow]) -> Result<(), Failure> {
    if all.is_empty() && ctx.out.human() {
        let filtered = !args.state.is_empty() || !args.labels.is_empty();
        ctx.out.status(if filtered {
            "no session matches; to list all: agentctl ps -a"
        } else if args.all {
            "there are no sessions"
        } else {
            "no open sessions; to list closed ones: agentctl ps -a"
        });
        return Ok(());
    }
    ctx.out.list_with(shown, &args.label_columns, |row, key| {
        row.labels.get(key).cloned().unwrap_or_default()
    })?;
    if all.len() > shown.len() {
        ctx.out.line(&format!("… {} more", all.len() - shown.len()))?;
    }
    if ctx.out.terminal.stdout && ctx.out.human() && !ctx.out.quiet {
        let leave = if args.watch { "; q quits" } else { "" };
        let line = ctx.out.paint().dim(&format!("{}{leave}", fleet_line(all)));
        ctx.out.line(&line)?;
    }
    Ok(())
}

fn warn(ctx: &mut Ctx, status: &NodeStatus) {
    for files in &status.hanging {
        ctx.out.status(&format!("warning: {}", hanging(files)));
    }
}

async fn sessions(client: &Client, args: &PsArgs) -> Result<Vec<SessionRow>, Failure> {
    let params = ListParams {
        // `--state closed` implies closed sessions.
        all: args.all || args.state.iter().any(|state| state == "closed"),
        states: args.state.clone(),
        labels: values::selector(&args.labels),
        ..ListParams::default()
    };
    let mut rows: Vec<SessionRow> = client
        .list(&params)
        .await?
        .into_iter()
        .map(SessionRow::from)
        .collect();
    sort(&mut rows, args.sort);
    if args.reverse {
        rows.reverse();
    }
    Ok(if args.tree { tree(rows) } else { rows })
}

fn sort(rows: &mut [SessionRow], by: Sort) {
    match by {
        Sort::Created => rows.sort_by_key(|row| Reverse((row.created_at, row.session))),
        Sort::Updated => rows.sort_by_key(|row| Reverse((row.updated_at, row.session))),
        Sort::Name => rows.sort_by(|a, b| a.name.cmp(&b.name)),
        Sort::State => rows.sort_by(|a, b| a.state.as_str().cmp(b.state.as_str())),
        Sort::Steps => rows.sort_by_key(|row| Reverse(row.steps)),
        Sort::Tokens => rows.sort_by_key(|row| Reverse(row.usage.total())),
        Sort::Cost => rows.sort_by(|a, b| b.cost_usd.total_cmp(&a.cost_usd)),
    }
}
