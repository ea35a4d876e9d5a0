//! `approvals -w`: goes through the inbox one question at a time, then waits for new ones.

use super::open;
use super::reading::question;
use crate::cli::ApprovalsArgs;
use crate::ctx::Ctx;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::interactive::{Pages, Typed, typed};
use crate::render::{ApprovalRow, choices_line, decided_how};
use crate::values;
use agentd_client::{Client, Push, Subscription};
use agentd_protocol::{ApprovalId, Decision, Fault, WatchParams};
use std::collections::BTreeSet;

/// The outcome of one question.
enum Step {
    /// It was answered here or elsewhere, or skipped.
    Past,
    /// The person wants to leave.
    Leave,
}

pub(super) async fn walk(ctx: &mut Ctx, client: &Client, args: &ApprovalsArgs) -> Result<Exit, Failure> {
    let terminal = &ctx.out.terminal;
    if !(terminal.stdin && terminal.stderr && ctx.out.human()) {
        return Err(Failure::invalid(
            "-w is interactive and requires a terminal",
            "in scripts, use: agentctl events -f --kind approval -o jsonl",
        ));
    }
    let labels = values::selector(&args.labels);
    let asked = WatchParams {
        labels: labels.clone(),
        kinds: vec!["approval.asked".to_owned()],
        ..WatchParams::default()
    };
    // Subscribe before the first listing, so that no question is missed in between.
    let mut news = client.watch(&asked).await?;
    let mut past = BTreeSet::<ApprovalId>::new();
    loop {
        let rows = open(client, args.session.clone(), labels.clone()).await?;
        let mut rest = rows.iter().filter(|row| !past.contains(&row.approval));
        let Some(row) = rest.next() else {
            ctx.out
                .status("no more open approvals; waiting for new ones, Ctrl-C quits");
            next(client, &asked, &mut news).await?;
            continue;
        };
        let behind = rest.count();
        past.insert(row.approval);
        match one(ctx, client, row, behind).await? {
            Step::Past => {}
            Step::Leave => return Ok(Exit::OK),
        }
    }
}

/// Waits until a new approval is requested, or may have been.
async fn next(client: &Client, asked: &WatchParams, news: &mut Subscription) -> Result<(), Failure> {
    loop {
        match news.next().await {
            Some(Push::Event(_)) => return Ok(()),
            Some(Push::Ended(ended)) if ended.code == "unavailable" => {
                *news = client.watch(asked).await?;
                return Ok(());
            }
            Some(Push::Ended(ended)) => return Err(Fault::unavailable("ended", ended.message).into()),
            Some(_) => {}
            None => return Err(Fault::unavailable("connection_lost", "the connection was lost").into()),
        }
    }
}

async fn one(ctx: &mut Ctx, client: &Client, row: &ApprovalRow, behind: usize) -> Result<Step, Failure> {
    // Discards input that was typed for the previous question, so that it cannot answer this one.
    let _ = rustix::termios::tcflush(std::io::stdin(), rustix::termios::QueueSelector::IFlush);
    let question = match question(client, row).await {
        Ok(question) => question,
        // It may have been answered meanwhile. A question that cannot be shown stays open.
        Err(failure) => {
            ctx.out.failure(&failure);
            return Ok(Step::Past);
        }
    };
    let mut pages = Pages::new(&question, ctx.out.terminal.person(), ctx.out.paint_stderr());
    show(ctx, &mut pages, behind);
    loop {
        let prompt = if pages.ended() {
            format!("{}, Enter skips, /quit quits: ", choices_line(&row.open))
        } else {
            format!(
                "{}. Enter shows the next page, n [reason] denies, /quit quits: ",
                pages.place()
            )
        };
        ctx.out.status_always(&prompt);
        let mut line = String::new();
        match std::io::stdin().read_line(&mut line) {
            Ok(1..) => {}
            Ok(0) | Err(_) => return Ok(Step::Leave),
        }
        match typed(&line, Some(&row.open), false) {
            Typed::Nothing if pages.ended() => return Ok(Step::Past),
            Typed::Nothing => show(ctx, &mut pages, behind),
            Typed::Detach => return Ok(Step::Leave),
            Typed::Decide(answer) if pages.ended() || answer.decision == Decision::Deny => {
                let decision = answer.decision;
                return decide(
                    ctx,
                    client,
                    row,
                    decision,
                    &answer.params(&row.open, pages.seen()),
                )
                .await;
            }
            Typed::Decide(_) => ctx.out.status("read it to the end first"),
            Typed::Unclear(why) => ctx.out.status(&why),
            Typed::Send(_) | Typed::Cancel | Typed::Resume | Typed::Compact | Typed::Help => {
                ctx.out.status(&choices_line(&row.open));
            }
        }
    }
}

fn show(ctx: &mut Ctx, pages: &mut Pages, behind: usize) {
    let page = pages.turn();
    ctx.out.status_always(&format!("{page}\n"));
    if pages.ended() && behind > 0 {
        ctx.out.status(&format!("{behind} more waiting"));
    }
}

async fn decide(
    ctx: &mut Ctx,
    client: &Client,
    row: &ApprovalRow,
    decision: Decision,
    params: &agentd_protocol::DecideParams,
) -> Result<Step, Failure> {
    let id = row.approval.short();
    match client.decide(params).await.map_err(Fault::from) {
        Ok(_) => ctx.out.status(&format!("{} {id}", decided_how(decision))),
        Err(fault) if matches!(fault.code.as_str(), "approval_decided" | "unknown_approval") => {
            ctx.out.status(&format!("already answered: {id}"));
        }
        Err(fault) => {
            ctx.out.failure(&fault.into());
        }
    }
    Ok(Step::Past)
}
