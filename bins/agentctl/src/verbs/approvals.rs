//! `approvals`, `approve`, `deny`, `answer`: the inbox.

use crate::cli::{AnswerArgs, ApprovalsArgs, DecideArgs};
use crate::ctx::Ctx;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::render::ApprovalRow;
use crate::values;
use crate::verbs::lifecycle::confirm;
use agentd_client::Client;
use agentd_protocol::{ApprovalListParams, DecideParams, Decided, Decision, Labels};

pub(crate) async fn list(ctx: &mut Ctx, args: &ApprovalsArgs) -> Result<Exit, Failure> {
    let client = ctx.connect().await?;
    let rows = open(&client, args.session.clone(), values::labels(&args.labels)).await?;
    if rows.is_empty() && ctx.out.human() {
        ctx.out.talk("nothing waits for a person");
    } else {
        ctx.out.list(&rows)?;
    }
    Ok(Exit::OK)
}

async fn open(client: &Client, session: Option<String>, labels: Labels) -> Result<Vec<ApprovalRow>, Failure> {
    let open = client.approvals(&ApprovalListParams { session, labels }).await?;
    Ok(open.into_iter().map(ApprovalRow::from).collect())
}

pub(crate) async fn decide(ctx: &mut Ctx, args: &DecideArgs, decision: Decision) -> Result<Exit, Failure> {
    let client = ctx.connect().await?;
    let targets = if args.all {
        let rows = open(&client, None, values::labels(&args.labels)).await?;
        let verb = if decision == Decision::Allow {
            "allow"
        } else {
            "deny"
        };
        if !rows.is_empty() && !args.yes {
            confirm(ctx, &format!("{verb} {} open approvals?", rows.len()))?;
        }
        rows.iter().map(|row| row.approval.to_string()).collect()
    } else {
        args.targets.clone()
    };
    if targets.is_empty() {
        ctx.out.talk("nothing waits for a person");
    }
    let params = |approval: String| DecideParams {
        approval,
        decision: Some(decision),
        scope: if decision == Decision::Allow {
            args.scope.into()
        } else {
            agentd_protocol::Scope::Once
        },
        answer: None,
        message: args.reason.clone(),
    };
    decide_each(ctx, &client, targets.into_iter().map(params).collect()).await
}

pub(crate) async fn answer(ctx: &mut Ctx, args: &AnswerArgs) -> Result<Exit, Failure> {
    let client = ctx.connect().await?;
    let params = DecideParams {
        approval: args.target.clone(),
        decision: Some(Decision::Answer),
        answer: Some(args.text.clone()),
        message: args.reason.clone(),
        ..DecideParams::default()
    };
    decide_each(ctx, &client, vec![params]).await
}

const fn past(decision: Option<Decision>) -> &'static str {
    match decision {
        Some(Decision::Allow) => "allowed",
        Some(Decision::Deny) => "denied",
        Some(Decision::Answer | Decision::Expired | Decision::Withdrawn) | None => "answered",
    }
}

/// Decides one after the other; a failure does not stop the rest.
async fn decide_each(ctx: &mut Ctx, client: &Client, all: Vec<DecideParams>) -> Result<Exit, Failure> {
    let (mut exit, mut done) = (Exit::OK, Vec::<Decided>::new());
    for params in all {
        match client.decide(&params).await {
            Ok(decided) => {
                ctx.out.talk(&format!(
                    "{} {} of {}",
                    past(params.decision),
                    decided.approval.short(),
                    decided.session.short()
                ));
                done.push(decided);
            }
            Err(error) => exit = exit.or(ctx.out.failure(&error.into())),
        }
    }
    if !ctx.out.human() {
        if ctx.out.format == crate::cli::Format::Name {
            done.iter()
                .try_for_each(|one| ctx.out.line(&one.approval.to_string()))?;
        } else {
            ctx.out.value(&done)?;
        }
    }
    Ok(exit)
}
