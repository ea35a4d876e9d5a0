//! `approvals`, `approve`, `deny`, `answer`: the approval inbox.

mod decide;
mod naming;
mod reading;
mod walk;

pub(crate) use decide::{answer, decide};

use crate::cli::ApprovalsArgs;
use crate::ctx::Ctx;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::render::{ApprovalRow, one_line, painted};
use crate::values;
use agentd_client::Client;
use agentd_protocol::{ApprovalChangesParams, ApprovalListParams, Selector};
use agentd_text::laid_out;

/// The line width if the output is not for a person's terminal.
const LINE: usize = 100;

pub(crate) async fn list(ctx: &mut Ctx, args: &ApprovalsArgs) -> Result<Exit, Failure> {
    let client = ctx.connect().await?;
    if args.walk {
        return walk::walk(ctx, &client, args).await;
    }
    let labels = values::selector(&args.labels);
    if let Some(word) = &args.session {
        let all = open(&client, None, labels.clone()).await?;
        if let [one] = naming::by_id(word, &all).as_slice() {
            warn_of_changes(ctx, &client, one).await;
            return whole(ctx, &client, one).await;
        }
    }
    let rows = open(&client, args.session.clone(), labels).await?;
    if rows.is_empty() && ctx.out.human() {
        ctx.out.status("no open approvals");
    } else {
        ctx.out.list(&rows)?;
        if ctx.out.human() {
            ctx.out.status(
                "read one in full: agentctl approvals APPROVAL; review one by one: agentctl approvals -w",
            );
        }
    }
    Ok(Exit::OK)
}

/// Says what has changed since the question was asked. An older daemon does not know.
async fn warn_of_changes(ctx: &mut Ctx, client: &Client, row: &ApprovalRow) {
    let approval = row.approval.to_string();
    let Ok(found) = client.approval_changes(&ApprovalChangesParams { approval }).await else {
        return;
    };
    for change in &found.changes {
        ctx.out.status(&format!(
            "changed since it was asked: {}; an allow would be void",
            one_line(change, 300)
        ));
    }
}

/// Shows one approval in full, page by page on a terminal.
async fn whole(ctx: &mut Ctx, client: &Client, row: &ApprovalRow) -> Result<Exit, Failure> {
    let terminal = &ctx.out.terminal;
    if ctx.out.human() && terminal.stdout && terminal.stdin && terminal.stderr {
        reading::read(ctx, client, row).await?;
        return Ok(Exit::OK);
    }
    let question = reading::question(client, row).await?;
    let (width, name) = (ctx.out.terminal.person().0, row.approval.to_string());
    ctx.out.object(row, &name, |paint| {
        let lines = laid_out(&question.lines, width.saturating_sub(1));
        lines
            .iter()
            .map(|line| format!("{}\n", painted(line, paint)))
            .collect()
    })?;
    Ok(Exit::OK)
}

async fn open(
    client: &Client,
    session: Option<String>,
    labels: Selector,
) -> Result<Vec<ApprovalRow>, Failure> {
    let open = client.approvals(&ApprovalListParams { session, labels }).await?;
    Ok(open.into_iter().map(ApprovalRow::from).collect())
}
