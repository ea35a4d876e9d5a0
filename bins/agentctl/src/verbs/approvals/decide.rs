//! `approve`, `deny`, `answer`: decides open approvals.

use super::naming::{is_session, like_an_id, named, of_session};
use super::reading::{question, read};
use super::{LINE, open};
use crate::cli::{AnswerArgs, DecideArgs};
use crate::ctx::Ctx;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::interactive::choice_of;
use crate::render::ApprovalRow;
use crate::values;
use crate::verbs::lifecycle::confirm;
use agentd_client::Client;
use agentd_protocol::{DecideParams, Decided, Decision, Fault, Selector};
use agentd_text::laid_out;

/// The minimum number of digits of a hash prefix.
const SUM: usize = 8;

pub(crate) async fn decide(ctx: &mut Ctx, args: &DecideArgs, decision: Decision) -> Result<Exit, Failure> {
    let client = ctx.connect().await?;
    let many = args.all || args.like.is_some();
    let (targets, reason) = if many {
        (chosen(ctx, &client, args, decision).await?, None)
    } else if decision == Decision::Allow {
        (read_before(ctx, &client, args).await?, None)
    } else {
        let (words, reason) = match args.reason {
            Some(_) => (args.targets.clone(), None),
            None => with_reason(&client, &args.targets).await?,
        };
        (words.into_iter().map(Target::unseen).collect(), reason)
    };
    let reason = args.reason.clone().or(reason);
    let params = |target: Target| DecideParams {
        approval: target.approval,
        decision: Some(decision),
        scope: args.scope.into(),
        answer: None,
        message: reason.clone(),
        shown: target.shown,
        policy: target.policy,
    };
    decide_each(ctx, &client, targets.into_iter().map(params).collect(), many).await
}

/// An approval to decide, and what the decision rests on.
struct Target {
    approval: String,
    /// The hash of what the person has seen.
    shown: Option<String>,
    /// Nobody was asked.
    policy: bool,
}

impl Target {
    const fn unseen(approval: String) -> Self {
        Self {
            approval,
            shown: None,
            policy: false,
        }
    }

    const fn by_policy(approval: String) -> Self {
        Self {
            approval,
            shown: None,
            policy: true,
        }
    }
}

/// The approvals of `--all` or `--like`, once the person has confirmed them. Those that cannot be decided so stay open.
async fn chosen(
    ctx: &mut Ctx,
    client: &Client,
    args: &DecideArgs,
    decision: Decision,
) -> Result<Vec<Target>, Failure> {
    let rows = open(client, None, values::selector(&args.labels)).await?;
    let mut rows = match &args.like {
        Some(word) => like(client, word, rows).await?,
        None => rows,
    };
    let allow = decision == Decision::Allow;
    let left: Vec<ApprovalRow> = rows
        .extract_if(.., |row| allow && !row.can_be_allowed(args.scope.into()))
        .collect();
    let mut targets = Vec::new();
    for row in &rows {
        let approval = row.approval.to_string();
        targets.push(if args.yes {
            Target {
                policy: allow,
                ..Target::unseen(approval)
            }
        } else {
            let shown = Some(read(ctx, client, row).await?);
            Target {
                shown,
                ..Target::unseen(approval)
            }
        });
    }
    if !rows.is_empty() && !args.yes {
        let verb = if allow { "allow" } else { "deny" };
        confirm(ctx, &format!("{verb} {} open approvals?", rows.len()))?;
    }
    for row in &left {
        ctx.out.status(&row.left_open());
    }
    if rows.is_empty() && left.is_empty() {
        ctx.out.status("no open approvals");
    }
    Ok(targets)
}

/// Shows each approval and, on a terminal, asks for confirmation. Scripts are not asked, because existing ones cannot
/// answer; the content is still printed, and `--sha256` restricts a script to reviewed content. A session name resolves
/// to the approval that was shown, so a newer question is never approved in its place.
async fn read_before(ctx: &mut Ctx, client: &Client, args: &DecideArgs) -> Result<Vec<Target>, Failure> {
    let all = open(client, None, Selector::default()).await?;
    let mut targets = Vec::new();
    for word in &args.targets {
        let row = found(client, word, &all).await;
        if let Some(sum) = &args.sha256 {
            same(row, sum)?;
        }
        let verb = row
            .filter(|row| row.can_be_allowed(args.scope.into()))
            .map_or("", |_| "approve");
        targets.push(target(ctx, client, (word, row), args.yes, verb).await?);
    }
    Ok(targets)
}

/// The open approval that a word names, by itself or by its session.
async fn found<'a>(client: &Client, word: &str, all: &'a [ApprovalRow]) -> Option<&'a ApprovalRow> {
    match named(word, all) {
        Ok(row) => Some(row),
        Err(_) => of_session(client, word, all).await,
    }
}

/// Shows the question to the person at the terminal and asks whether they want this. Without a terminal it prints the
/// question, and the decision is the script's. Without a verb the daemon refuses the decision, and says why.
async fn target(
    ctx: &mut Ctx,
    client: &Client,
    (word, row): (&str, Option<&ApprovalRow>),
    yes: bool,
    verb: &str,
) -> Result<Target, Failure> {
    let asks = !yes && ctx.out.terminal.stdin && ctx.out.terminal.stderr;
    let approval = row.map_or_else(|| word.to_owned(), |row| row.approval.to_string());
    match row {
        Some(row) if asks && !verb.is_empty() => {
            let shown = Some(read(ctx, client, row).await?);
            confirm(ctx, &format!("{verb} {}?", row.approval.short()))?;
            Ok(Target {
                shown,
                ..Target::unseen(approval)
            })
        }
        Some(row) if !yes => {
            for line in laid_out(&question(client, row).await?.lines, LINE) {
                ctx.out.status(&line.text());
            }
            Ok(Target {
                policy: !asks,
                ..Target::unseen(approval)
            })
        }
        // If the word names nothing here, the daemon reports what is wrong with it.
        Some(_) | None if asks => Ok(Target::unseen(approval)),
        Some(_) | None => Ok(Target::by_policy(approval)),
    }
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
    let all = open(&client, None, Selector::default()).await?;
    let row = found(&client, &args.target, &all).await;
    let text = match row.filter(|_| !args.words) {
        Some(row) => chosen_answer(row, &args.text)?,
        None => args.text.clone(),
    };
    let target = target(ctx, &client, (&args.target, row), args.yes, "answer").await?;
    let params = DecideParams {
        approval: target.approval,
        decision: Some(Decision::Answer),
        answer: Some(text),
        message: args.reason.clone(),
        shown: target.shown,
        policy: target.policy,
        ..DecideParams::default()
    };
    decide_each(ctx, &client, vec![params], false).await
}

/// The choice that the text selects, or else the text itself.
fn chosen_answer(row: &ApprovalRow, text: &str) -> Result<String, Failure> {
    let choice = choice_of(text, &row.open.choices).map_err(|why| {
        Failure::from(Fault::invalid("no_such_choice", why).hint("use --text to send the answer as text"))
    })?;
    Ok(choice.unwrap_or(text).to_owned())
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
