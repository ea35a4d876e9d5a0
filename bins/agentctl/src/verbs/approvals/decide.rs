//! `approve`, `deny`, `answer`: decides open approvals.

use super::naming::{is_session, like_an_id, named, of_session};
use super::reading::read;
use super::{LINE, open};
use crate::cli::{AnswerArgs, DecideArgs};
use crate::ctx::Ctx;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::interactive::choice_of;
use crate::render::{ApprovalRow, question_lines};
use crate::values;
use crate::verbs::lifecycle::confirm;
use agentd_client::Client;
use agentd_protocol::{DecideParams, Decided, Decision, Fault, Selector};

/// The minimum number of digits of a hash prefix.
const SUM: usize = 8;

pub(crate) async fn decide(ctx: &mut Ctx, args: &DecideArgs, decision: Decision) -> Result<Exit, Failure> {
    let client = ctx.connect().await?;
    let many = args.all || args.like.is_some();
    let (targets, reason) = if many {
        (chosen(ctx, &client, args, decision).await?, None)
    } else if decision == Decision::Deny && args.reason.is_none() {
        with_reason(&client, &args.targets).await?
    } else {
        (args.targets.clone(), None)
    };
    let targets = if !many && decision == Decision::Allow {
        read_before(ctx, &client, args, targets).await?
    } else {
        targets
    };
    let reason = args.reason.clone().or(reason);
    let params = |approval: String| DecideParams {
        approval,
        decision: Some(decision),
        scope: args.scope.into(),
        answer: None,
        message: reason.clone(),
    };
    decide_each(ctx, &client, targets.into_iter().map(params).collect(), many).await
}

/// The approvals of `--all` or `--like`, once the person has confirmed them. Those that cannot be decided so stay open.
async fn chosen(
    ctx: &mut Ctx,
    client: &Client,
    args: &DecideArgs,
    decision: Decision,
) -> Result<Vec<String>, Failure> {
    let rows = open(client, None, values::selector(&args.labels)).await?;
    let mut rows = match &args.like {
        Some(word) => like(client, word, rows).await?,
        None => rows,
    };
    let allow = decision == Decision::Allow;
    let left: Vec<ApprovalRow> = rows
        .extract_if(.., |row| allow && !row.can_be_allowed(args.scope.into()))
        .collect();
    if !rows.is_empty() && !args.yes {
        for row in &rows {
            read(ctx, row)?;
        }
        let verb = if allow { "allow" } else { "deny" };
        confirm(ctx, &format!("{verb} {} open approvals?", rows.len()))?;
    }
    for row in &left {
        ctx.out.status(&row.left_open());
    }
    if rows.is_empty() && left.is_empty() {
        ctx.out.status("no open approvals");
    }
    Ok(rows.iter().map(|row| row.approval.to_string()).collect())
}

/// Shows each approval and, on a terminal, asks for confirmation. Scripts are not asked, because existing ones cannot
/// answer; the content is still printed, and `--sha256` restricts a script to reviewed content. A session name resolves
/// to the approval that was shown, so a newer question is never approved in its place.
async fn read_before(
    ctx: &mut Ctx,
    client: &Client,
    args: &DecideArgs,
    targets: Vec<String>,
) -> Result<Vec<String>, Failure> {
    let all = open(client, None, Selector::default()).await?;
    let asks = !args.yes && ctx.out.terminal.stdin && ctx.out.terminal.stderr;
    let mut shown = Vec::new();
    for target in targets {
        // If the target matches nothing here, the daemon reports what is wrong with it.
        let row = match named(&target, &all) {
            Ok(row) => Some(row),
            Err(_) => of_session(client, &target, &all).await,
        };
        if let Some(sum) = &args.sha256 {
            same(row, sum)?;
        }
        let Some(row) = row else {
            shown.push(target);
            continue;
        };
        let id = row.approval;
        if asks && row.can_be_allowed(args.scope.into()) {
            read(ctx, row)?;
            confirm(ctx, &format!("approve {}?", id.short()))?;
        } else if !args.yes {
            for line in question_lines(&row.open, LINE) {
                ctx.out.status(&line.text());
            }
        }
        shown.push(id.to_string());
    }
    Ok(shown)
}

/// Checks the content against a hash that the caller has reviewed.
fn same(row: Option<&ApprovalRow>, sum: &str) -> Result<(), Failure> {
    let sum = sum.trim().to_ascii_lowercase();
    if sum.len() >= SUM && row.is_some_and(|row| row.sha256.starts_with(&sum)) {
        return Ok(());
    }
    let what = "the request does not have this SHA-256; nothing was approved";
    Err(Fault::conflict("other_content", what)
        .hint("read it with `agentctl approvals APPROVAL`; give at least 8 digits")
        .into())
}

/// Splits `deny ID "not there"`: the reason begins at the first word that names no approval and no session.
async fn with_reason(client: &Client, words: &[String]) -> Result<(Vec<String>, Option<String>), Failure> {
    let mut named = 1;
    while let Some(word) = words.get(named) {
        if !like_an_id(word) && !is_session(client, word).await? {
            break;
        }
        named += 1;
    }
    for word in words.iter().skip(named) {
        // This is not a reason but a list with a mistyped target, which the daemon will report.
        if like_an_id(word) || is_session(client, word).await? {
            return Ok((words.to_vec(), None));
        }
    }
    let (targets, reason) = words.split_at(named.min(words.len()));
    Ok((targets.to_vec(), (!reason.is_empty()).then(|| reason.join(" "))))
}

/// The open questions that match this one, including itself: same tool, arguments, directory, environment, programs and
/// files. The same text elsewhere is another question.
async fn like(client: &Client, word: &str, rows: Vec<ApprovalRow>) -> Result<Vec<ApprovalRow>, Failure> {
    // Ignores the label selector, because the named approval may not match it.
    let all = open(client, None, Selector::default()).await?;
    let named = named(word, &all)?;
    let Some(likeness) = named.likeness() else {
        let what = "--like works only for approvals of tool calls that record what they are bound to";
        return Err(Fault::invalid("nothing_alike", what)
            .hint("name each approval, or use --all")
            .into());
    };
    Ok(rows
        .into_iter()
        .filter(|row| row.likeness() == Some(likeness))
        .collect())
}

pub(crate) async fn answer(ctx: &mut Ctx, args: &AnswerArgs) -> Result<Exit, Failure> {
    let client = ctx.connect().await?;
    let (target, text) = if args.words {
        (args.target.clone(), args.text.clone())
    } else {
        chosen_answer(&client, args).await?
    };
    let params = DecideParams {
        approval: target,
        decision: Some(Decision::Answer),
        answer: Some(text),
        message: args.reason.clone(),
        ..DecideParams::default()
    };
    decide_each(ctx, &client, vec![params], false).await
}

/// The approval and the answer: the choice that the text selects, or else the text itself.
async fn chosen_answer(client: &Client, args: &AnswerArgs) -> Result<(String, String), Failure> {
    let all = open(client, None, Selector::default()).await?;
    let row = match named(&args.target, &all) {
        Ok(row) => Some(row),
        Err(_) => of_session(client, &args.target, &all).await,
    };
    let Some(row) = row else {
        return Ok((args.target.clone(), args.text.clone()));
    };
    let choice = choice_of(&args.text, &row.open.choices).map_err(|why| {
        Failure::from(Fault::invalid("no_such_choice", why).hint("use --text to send the answer as text"))
    })?;
    Ok((row.approval.to_string(), choice.unwrap_or(&args.text).to_owned()))
}

const fn past(decision: Option<Decision>) -> &'static str {
    match decision {
        Some(Decision::Allow) => "allowed",
        Some(Decision::Deny) => "denied",
        Some(Decision::Answer | Decision::Expired | Decision::Withdrawn) | None => "answered",
    }
}

/// Decides one after the other; a failure does not stop the rest. With `many`, one already answered is no failure.
async fn decide_each(
    ctx: &mut Ctx,
    client: &Client,
    all: Vec<DecideParams>,
    many: bool,
) -> Result<Exit, Failure> {
    let (mut exit, mut done) = (Exit::OK, Vec::<Decided>::new());
    for params in all {
        match client.decide(&params).await {
            Ok(decided) => {
                ctx.out.status(&format!(
                    "{} {} of {}",
                    past(params.decision),
                    decided.approval.short(),
                    decided.session.short()
                ));
                done.push(decided);
            }
            Err(error) => {
                let fault = Fault::from(error);
                if many && matches!(fault.code.as_str(), "approval_decided" | "unknown_approval") {
                    ctx.out.status(&format!("already answered: {}", params.approval));
                } else {
                    exit = exit.or(ctx.out.failure(&fault.into()));
                }
            }
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
