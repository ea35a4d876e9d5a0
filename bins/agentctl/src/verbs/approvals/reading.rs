//! Reading an approval page by page.

use crate::ctx::Ctx;
use crate::failure::Failure;
use crate::interactive::Pages;
use crate::render::ApprovalRow;
use agentd_client::Client;
use agentd_protocol::{ApprovalQuestion, ApprovalQuestionParams, Fault};

/// The question of an approval, in the lines that every face shows.
pub(super) async fn question(client: &Client, row: &ApprovalRow) -> Result<ApprovalQuestion, Failure> {
    let approval = row.approval.to_string();
    Ok(client
        .approval_question(&ApprovalQuestionParams { approval })
        .await?)
}

/// Shows a question page by page; returns the hash of what was shown. Leaving before the last page approves nothing.
pub(super) async fn read(ctx: &mut Ctx, client: &Client, row: &ApprovalRow) -> Result<String, Failure> {
    let asks = ctx.out.terminal.stdin && ctx.out.terminal.stderr;
    let question = question(client, row).await?;
    let mut pages = Pages::new(&question, ctx.out.terminal.person(), ctx.out.paint_stderr());
    loop {
        let page = pages.turn();
        ctx.out.status_always(&format!("{page}\n"));
        if let Some(hash) = pages.seen() {
            return Ok(hash.to_owned());
        }
        if asks {
            confirm_page(ctx, &pages.place())?;
        }
    }
}

fn confirm_page(ctx: &mut Ctx, place: &str) -> Result<(), Failure> {
    ctx.out
        .status_always(&format!("{place}. Enter shows the next page, q quits: "));
    let mut line = String::new();
    let read = std::io::stdin().read_line(&mut line);
    match read {
        Ok(1..) if line.trim().is_empty() => Ok(()),
        _ => Err(Fault::conflict("not_confirmed", "stopped before the last page; nothing was done").into()),
    }
}
