//! `ps`, `show`, `models`, `tools`, `mcp`, `usage`: lists and details.

use crate::cli::{PsArgs, ShowArgs, Sort, UsageArgs};
use crate::clock::now;
use crate::ctx::Ctx;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::render::{
    ModelRow, ServerListRow, SessionDetail, SessionRow, ToolListRow, UsageListRow, hanging, prompt_text,
};
use crate::values;
use crate::verbs::tree::tree;
use agentd_client::Client;
use agentd_protocol::{ListParams, SessionId, SessionParams, UsageParams};
use std::cmp::Reverse;
use std::time::Duration;

const REDRAW: Duration = Duration::from_secs(1);
/// Cursor to the upper left corner, everything below it erased.
const HOME_AND_CLEAR: &str = "\x1b[H\x1b[2J";

pub(crate) async fn ps(ctx: &mut Ctx, args: &PsArgs) -> Result<Exit, Failure> {
    if args.watch && !(ctx.out.terminal.stdout && ctx.out.human()) {
        return Err(Failure::invalid(
            "-w redraws a table and needs a terminal",
            "for programs: agentctl events -f -o jsonl",
        ));
    }
    let client = ctx.connect().await?;
    loop {
        let status = client.status().await?;
        let mut rows = sessions(&client, args).await?;
        if ctx.out.wide() {
            for row in &mut rows {
                row.sandbox.clone_from(&status.sandbox);
            }
        }
        if args.watch {
            ctx.out.raw(HOME_AND_CLEAR.as_bytes())?;
        }
        let hidden = if args.watch { beyond(&mut rows, ctx) } else { 0 };
        if rows.is_empty() && ctx.out.human() {
            let filtered = !args.state.is_empty() || !args.labels.is_empty();
            let text = if filtered {
                "no session is like that; all of them: agentctl ps -a"
            } else if args.all {
                "there are no sessions"
            } else {
                "no session is open; closed ones: agentctl ps -a"
            };
            ctx.out.talk(text);
        } else {
            ctx.out.list(&rows)?;
        }
        if hidden > 0 {
            ctx.out.line(&format!("… {hidden} more"))?;
        }
        for files in &status.hanging {
            ctx.out.talk(&format!("warning: {}", hanging(files)));
        }
        if !args.watch {
            return Ok(Exit::OK);
        }
        tokio::time::sleep(REDRAW).await;
    }
}

/// Takes off the rows for which the terminal has no lines: heading and last line are needed, and one for the cursor.
fn beyond(rows: &mut Vec<SessionRow>, ctx: &Ctx) -> usize {
    let most = ctx
        .out
        .terminal
        .height()
        .map_or(usize::MAX, |lines| lines.saturating_sub(3).max(1));
    let hidden = rows.len().saturating_sub(most);
    rows.truncate(most);
    hidden
}

async fn sessions(client: &Client, args: &PsArgs) -> Result<Vec<SessionRow>, Failure> {
    let params = ListParams {
        // A closed session that is asked for by its state is wanted.
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

pub(crate) async fn show(ctx: &mut Ctx, args: &ShowArgs) -> Result<Exit, Failure> {
    let client = ctx.connect().await?;
    if args.window {
        return crate::verbs::context::show(ctx, client, args).await;
    }
    if args.prompt {
        return show_prompt(ctx, &client, args).await;
    }
    if args.summary {
        crate::verbs::context::summarize(ctx, &args.session).await?;
    }
    let mut detail = SessionDetail::from(client.get(&args.session).await?);
    if detail.subagents > 0 && ctx.out.human() {
        detail.below_it = subagents(&client, detail.row.session).await?;
    }
    let id = detail.row.session.to_string();
    let text = |paint| detail.text(paint, now());
    ctx.out.object(&detail, &id, text)?;
    Ok(Exit::OK)
}

/// The sub-agents of a session, in the order in which they were started.
async fn subagents(client: &Client, of: SessionId) -> Result<Vec<SessionRow>, Failure> {
    let params = ListParams {
        all: true,
        ..ListParams::default()
    };
    let rows = client.list(&params).await?.into_iter();
    let rows = rows.filter(|row| row.parent == Some(of));
    let mut rows: Vec<SessionRow> = rows.map(SessionRow::from).collect();
    rows.sort_by_key(|row| (row.created_at, row.session));
    Ok(rows)
}

async fn show_prompt(ctx: &mut Ctx, client: &Client, args: &ShowArgs) -> Result<Exit, Failure> {
    let params = SessionParams {
        session: args.session.clone(),
    };
    let shown = client.prompt(&params).await?;
    ctx.out
        .object(&shown, &args.session, |paint| prompt_text(&shown, paint))?;
    Ok(Exit::OK)
}

pub(crate) async fn models(ctx: &mut Ctx) -> Result<Exit, Failure> {
    let client = ctx.connect().await?;
    let rows: Vec<ModelRow> = client.models().await?.into_iter().map(ModelRow).collect();
    ctx.out.list(&rows)?;
    Ok(Exit::OK)
}

pub(crate) async fn tools(ctx: &mut Ctx) -> Result<Exit, Failure> {
    let client = ctx.connect().await?;
    let rows: Vec<ToolListRow> = client.tools().await?.into_iter().map(ToolListRow).collect();
    ctx.out.list(&rows)?;
    Ok(Exit::OK)
}

pub(crate) async fn servers(ctx: &mut Ctx) -> Result<Exit, Failure> {
    let client = ctx.connect().await?;
    let rows: Vec<ServerListRow> = client.servers().await?.into_iter().map(ServerListRow).collect();
    if rows.is_empty() && ctx.out.human() {
        ctx.out
            .talk("no tool server is configured; the shipped configuration says how, under [mcp]");
        return Ok(Exit::OK);
    }
    ctx.out.list(&rows)?;
    Ok(Exit::OK)
}

pub(crate) async fn usage(ctx: &mut Ctx, args: &UsageArgs) -> Result<Exit, Failure> {
    let client = ctx.connect().await?;
    let params = UsageParams {
        labels: values::selector(&args.labels),
        by: Some(args.by.clone()),
    };
    let rows: Vec<UsageListRow> = client
        .usage(&params)
        .await?
        .into_iter()
        .map(UsageListRow)
        .collect();
    ctx.out.list(&rows)?;
    Ok(Exit::OK)
}
