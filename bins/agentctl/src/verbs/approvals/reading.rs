//! Reading an approval page by page.

use crate::ctx::Ctx;
use crate::failure::Failure;
use crate::interactive::Pages;
use crate::render::ApprovalRow;
use agentd_protocol::Fault;

/// Shows a question page by page. Leaving before the last page approves nothing.
pub(super) fn read(ctx: &mut Ctx, row: &ApprovalRow) -> Result<(), Failure> {
    let asks = ctx.out.terminal.stdin && ctx.out.terminal.stderr;
    let mut pages = Pages::new(&row.open, ctx.out.terminal.person(), ctx.out.paint_stderr());
    loop {
        let page = pages.turn();
        ctx.out.status_always(&format!("{page}\n"));
        if pages.ended() {
            return Ok(());
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
