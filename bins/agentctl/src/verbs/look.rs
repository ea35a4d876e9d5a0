//! `show`, `models`, `tools`, `mcp`: lists and details.

use crate::cli::ShowArgs;
use crate::clock::now;
use crate::ctx::Ctx;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::render::{ModelRow, ServerListRow, SessionDetail, SessionRow, ToolListRow, prompt_text, tidy_usd};
use crate::verbs::context::prices_of;
use crate::verbs::workspace::size;
use agentd_client::Client;
use agentd_protocol::{FilesParams, ListParams, RecordedFile, SessionId, SessionParams};

pub(crate) async fn show(ctx: &mut Ctx, args: &ShowArgs) -> Result<Exit, Failure> {
    let client = ctx.connect().await?;
    if args.window {
        return crate::verbs::context::show(ctx, &client, args).await;
    }
    if args.prompt {
        return show_prompt(ctx, &client, args).await;
    }
    if let Some(at) = args.files {
        return show_files(ctx, &client, args, at).await;
    }
    if args.summary {
        crate::verbs::context::summarize(ctx, &args.session).await?;
    }
    let mut detail = SessionDetail::from(client.get(&args.session).await?);
    if detail.subagents > 0 && ctx.out.human() {
        detail.below_it = subagents(&client, detail.row.session).await?;
    }
    let prices = prices_of(&client.models().await?);
    let price = prices.get(&detail.row.model);
    detail.saved_usd = price.map(|price| tidy_usd(price.saved(&detail.row.usage)));
    let id = detail.row.session.to_string();
    let text = |paint| detail.text(paint, now());
    ctx.out.object(&detail, &id, text)?;
    Ok(Exit::OK)
}

/// The sub-agents of a session, in starting order.
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
    ctx.page();
    ctx.out
        .object(&shown, &args.session, |paint| prompt_text(&shown, paint))?;
    Ok(Exit::OK)
}

async fn show_files(
    ctx: &mut Ctx,
    client: &Client,
    args: &ShowArgs,
    at: Option<u64>,
) -> Result<Exit, Failure> {
    let params = FilesParams {
        session: args.session.clone(),
        at,
    };
    let found = client.files(&params).await?;
    let names: Vec<&str> = found.files.iter().map(|file| file.path.as_str()).collect();
    let names = names.join("\n");
    ctx.page();
    ctx.out.object(&found, &names, |_| {
        let line = |file: &RecordedFile| {
            // Paths are untrusted text.
            let path = agentd_text::for_terminal(&file.path).into_owned();
            format!("{} {:>9} {path}\n", file.mode, size(file.bytes))
        };
        found.files.iter().map(line).collect()
    })?;
    ctx.out.unpage()?;
    if found.more > 0 {
        ctx.out.status(&format!("{} more files", found.more));
    }
    Ok(Exit::OK)
}

pub(crate) async fn models(ctx: &mut Ctx) -> Result<Exit, Failure> {
    let client = ctx.connect().await?;
    let rows: Vec<ModelRow> = client.models().await?.into_iter().map(ModelRow).collect();
    ctx.out.list(&rows)?;
    if ctx.out.human() {
        for unread in crate::verbs::doctor::unread_models(&client).await {
            ctx.out.status(&unread);
        }
    }
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
            .status("no tool server is configured; see [mcp] in the shipped configuration");
        return Ok(Exit::OK);
    }
    ctx.out.list(&rows)?;
    Ok(Exit::OK)
}
