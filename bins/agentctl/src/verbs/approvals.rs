//! `approvals`, `approve`, `deny`, `answer`: the inbox.

use crate::cli::{AnswerArgs, ApprovalsArgs, DecideArgs};
use crate::ctx::Ctx;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::render::ApprovalRow;
use crate::values;
use crate::verbs::lifecycle::confirm;
use agentd_client::Client;
use agentd_protocol::{ApprovalListParams, DecideParams, Decided, Decision, Fault, FaultClass, Labels};

pub(crate) async fn list(ctx: &mut Ctx, args: &ApprovalsArgs) -> Result<Exit, Failure> {
    let client = ctx.connect().await?;
    let rows = open(&client, args.session.clone(), values::labels(&args.labels)).await?;
    if rows.is_empty() && ctx.out.human() {
        ctx.out.talk("nothing waits for a person");
    } else {
        ctx.out.list(&rows)?;
        let human = ctx.out.human();
        for row in rows.iter().filter(|row| human && !row.plan().is_empty()) {
            let (id, session) = (row.approval.short(), row.session.short());
            ctx.out
                .talk(&format!("{id} is a plan; read it with: agentctl show {session}"));
        }
    }
    Ok(Exit::OK)
}

async fn open(client: &Client, session: Option<String>, labels: Labels) -> Result<Vec<ApprovalRow>, Failure> {
    let open = client.approvals(&ApprovalListParams { session, labels }).await?;
    Ok(open.into_iter().map(ApprovalRow::from).collect())
}

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

/// Those of `--all` or `--like`, after the person has seen and confirmed them. What cannot be answered so stays open.
async fn chosen(
    ctx: &mut Ctx,
    client: &Client,
    args: &DecideArgs,
    decision: Decision,
) -> Result<Vec<String>, Failure> {
    let rows = open(client, None, values::labels(&args.labels)).await?;
    let mut rows = match &args.like {
        Some(word) => like(client, word, rows).await?,
        None => rows,
    };
    let allow = decision == Decision::Allow;
    let left: Vec<ApprovalRow> = rows
        .extract_if(.., |row| allow && !row.can_be_allowed(args.scope.into()))
        .collect();
    if !rows.is_empty() && !args.yes {
        for line in rows.iter().flat_map(ApprovalRow::to_decide) {
            ctx.out.talk_always(&format!("{line}\n"));
        }
        let verb = if allow { "allow" } else { "deny" };
        confirm(ctx, &format!("{verb} {} open approvals?", rows.len()))?;
    }
    for row in &left {
        ctx.out.talk(&row.left_open());
    }
    if rows.is_empty() && left.is_empty() {
        ctx.out.talk("nothing waits for a person");
    }
    Ok(rows.iter().map(|row| row.approval.to_string()).collect())
}

/// `deny ID "not there"`: the words behind what is denied that stand for no approval and no session.
async fn with_reason(client: &Client, words: &[String]) -> Result<(Vec<String>, Option<String>), Failure> {
    let mut named = 1;
    while let Some(word) = words.get(named) {
        if !like_an_id(word) && !is_session(client, word).await? {
            break;
        }
        named += 1;
    }
    for word in words.iter().skip(named) {
        // Not a reason, but one of several that is mistyped; it will say so.
        if like_an_id(word) || is_session(client, word).await? {
            return Ok((words.to_vec(), None));
        }
    }
    let (targets, reason) = words.split_at(named.min(words.len()));
    Ok((targets.to_vec(), (!reason.is_empty()).then(|| reason.join(" "))))
}

/// A mistyped id is no reason.
fn like_an_id(word: &str) -> bool {
    let id = |c: char| c.is_ascii_hexdigit() || c == '-';
    word.starts_with('@')
        || (word.len() >= 4 && word.chars().all(id) && word.contains(|c: char| c.is_ascii_digit()))
}

async fn is_session(client: &Client, word: &str) -> Result<bool, Failure> {
    match client.get(word).await.map_err(Fault::from) {
        Ok(_) => Ok(true),
        Err(fault) => match fault.class {
            FaultClass::NotFound | FaultClass::Invalid => Ok(false),
            // Several have this name.
            FaultClass::Conflict => Ok(true),
            _ => Err(fault.into()),
        },
    }
}

/// The open questions about the same call as this one, with itself.
async fn like(client: &Client, word: &str, rows: Vec<ApprovalRow>) -> Result<Vec<ApprovalRow>, Failure> {
    // Whatever the labels choose: the one that is named may be elsewhere.
    let all = open(client, None, Labels::new()).await?;
    let named = named(word, &all)?;
    let Some(input) = &named.input else {
        let what = "only questions about a tool call can be alike";
        return Err(Fault::invalid("nothing_alike", what)
            .hint("name each approval, or use --all")
            .into());
    };
    Ok(rows
        .into_iter()
        .filter(|row| row.input.as_ref() == Some(input))
        .collect())
}

/// The one that a word stands for: an end of its id, or its session's where that has one open.
fn named<'a>(word: &str, all: &'a [ApprovalRow]) -> Result<&'a ApprovalRow, Failure> {
    let plain = |id: String| id.replace('-', "");
    let word = plain(word.trim().to_ascii_lowercase());
    let fits = |id: String| {
        let id = plain(id);
        word.len() >= 4 && (id.starts_with(&word) || id.ends_with(&word))
    };
    let mut found: Vec<&ApprovalRow> = all.iter().filter(|row| fits(row.approval.to_string())).collect();
    if found.is_empty() {
        found = all.iter().filter(|row| fits(row.session.to_string())).collect();
    }
    match found.as_slice() {
        [one] => Ok(one),
        [] => Err(
            Fault::not_found("unknown_approval", format!("{word:?} is no open approval"))
                .hint("`agentctl approvals` lists what is open")
                .into(),
        ),
        several => Err(Fault::conflict(
            "ambiguous_approval",
            format!("{word:?} is not one open approval but {}", several.len()),
        )
        .hint("give more of the approval's id")
        .into()),
    }
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
    decide_each(ctx, &client, vec![params], false).await
}

const fn past(decision: Option<Decision>) -> &'static str {
    match decision {
        Some(Decision::Allow) => "allowed",
        Some(Decision::Deny) => "denied",
        Some(Decision::Answer | Decision::Expired | Decision::Withdrawn) | None => "answered",
    }
}

/// Decides one after the other; a failure does not stop the rest. Of many, one that somebody answered meanwhile is none.
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
                ctx.out.talk(&format!(
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
                    ctx.out.talk(&format!("answered meanwhile: {}", params.approval));
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

#[cfg(test)]
mod tests {
    use super::*;
    use agentd_protocol::{ApprovalId, ApprovalKind, OpenApproval, SessionId, Timestamp};

    fn row(approval: u8, session: u8) -> ApprovalRow {
        ApprovalRow::from(OpenApproval {
            approval: ApprovalId::from_bytes([approval; 16]),
            kind: ApprovalKind::Tool,
            session: SessionId::from_bytes([session; 16]),
            tool_call: None,
            tool: None,
            title: String::new(),
            detail: String::new(),
            choices: Vec::new(),
            scopes: Vec::new(),
            asked_at: Timestamp(0),
            expires_at: None,
            grant: None,
            input: None,
            level: 0,
            root: None,
            path: Vec::new(),
        })
    }

    #[test]
    fn a_reason_is_told_from_an_id() {
        for id in ["4f2a", "@last", "01997c0a-5b1e", "1234"] {
            assert!(like_an_id(id), "{id}");
        }
        for words in ["use the staging database", "no", "added", "42", "", "later-1"] {
            assert!(!like_an_id(words), "{words}");
        }
    }

    #[test]
    fn one_approval_is_named_by_an_end_of_its_id_or_of_its_sessions() {
        let rows = [row(0x11, 0xaa), row(0x22, 0xbb), row(0x33, 0xbb)];
        let found = |word: &str| named(word, &rows).ok().map(|row| row.approval);
        assert_eq!(found("1111"), Some(rows[0].approval));
        assert_eq!(found("AAAA"), Some(rows[0].approval));
        assert_eq!(found("3333-3333"), Some(rows[2].approval));
        for word in ["bbbb", "111", "9999", ""] {
            assert_eq!(found(word), None, "{word:?}");
        }
    }
}
