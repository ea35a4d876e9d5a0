//! `wait`: until sessions are idle, closed, or ask.

use crate::cli::{WaitArgs, WaitFor};
use crate::ctx::Ctx;
use crate::dial::Dial;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::follow::{Follower, News, Wanted};
use agentd_client::Client;
use agentd_protocol::{Delta, EndReason, Event, EventBody, Fault, RunState, Summary};
use futures_util::future::join_all;
use serde::Serialize;

/// Events before the end in which the last turn's end is looked for.
const TAIL: u32 = 32;

/// What became of one session.
#[derive(Debug, PartialEq, Serialize)]
struct Waited {
    session: String,
    state: Option<RunState>,
    reason: Option<EndReason>,
    exit: u8,
}

pub(crate) async fn wait(ctx: &mut Ctx, args: &WaitArgs) -> Result<Exit, Failure> {
    let client = ctx.connect().await?;
    let dial = ctx.dial()?;
    let each = args
        .sessions
        .iter()
        .map(|session| one(&dial, &client, session, args.what));
    let all = join_all(each);
    let outcomes = match args.timeout {
        None => all.await,
        Some(within) => tokio::time::timeout(within, all).await.map_err(|_| {
            let message = format!(
                "not all sessions got there within {}",
                humantime::format_duration(within)
            );
            Failure::from(Fault::timeout("wait_timeout", message))
        })?,
    };
    let (mut exit, mut rows) = (Exit::OK, Vec::new());
    for outcome in outcomes {
        match outcome {
            Ok(waited) => {
                exit = exit.or(Exit(waited.exit));
                rows.push(waited);
            }
            Err(failure) => exit = exit.or(ctx.out.failure(&failure)),
        }
    }
    for row in &rows {
        let state = row.state.map_or("gone", RunState::as_str);
        ctx.out.talk(&format!("{} {state}", row.session));
    }
    if !ctx.out.human() {
        ctx.out.value(&rows)?;
    }
    Ok(exit)
}

async fn one(dial: &Dial, client: &Client, session: &str, what: WaitFor) -> Result<Waited, Failure> {
    let id = client.get(session).await?.session.to_string();
    let wanted = Wanted {
        session: id.clone(),
        after: 0,
        tail: Some(TAIL),
        deltas: true,
        decides: false,
    };
    let mut follower = Follower::attach(dial.clone(), client.clone(), wanted).await?;
    let mut last = None;
    loop {
        let news = follower.next().await?;
        if let News::Event(event, _) = &news
            && let EventBody::TurnFinished(turn) = &event.body
        {
            last = Some(turn.reason);
        }
        if matches!(news, News::Ended(_)) {
            return Ok(Waited {
                session: id,
                state: None,
                reason: last,
                exit: Exit::OK.0,
            });
        }
        if !matters(&news) {
            continue;
        }
        // The row is the daemon's word; news only say when to look.
        let row = follower.client().get(&id).await;
        let Ok(row) = row else { continue };
        if let Some(exit) = outcome(&row, last, what) {
            return Ok(Waited {
                session: id,
                state: Some(row.status.state),
                reason: last,
                exit: exit.0,
            });
        }
    }
}

/// Whether the state may be another one now.
fn matters(news: &News) -> bool {
    match news {
        News::Synced(_) | News::Lagged | News::Delta(Delta::Status(_)) => true,
        News::Event(event, _) => changes_state(event),
        News::Delta(_) | News::Retrying | News::Back | News::Ended(_) => false,
    }
}

const fn changes_state(event: &Event) -> bool {
    matches!(
        event.body,
        EventBody::TurnFinished(_)
            | EventBody::SessionClosed(_)
            | EventBody::ApprovalAsked(_)
            | EventBody::InputCancelled(_)
            | EventBody::SessionRecovered(_)
    )
}

/// The exit code, once there is nothing more to wait for.
fn outcome(row: &Summary, last: Option<EndReason>, what: WaitFor) -> Option<Exit> {
    let state = row.status.state;
    match what {
        WaitFor::Approval if !row.open_approvals.is_empty() => Some(Exit::OK),
        WaitFor::Approval => (state == RunState::Closed).then_some(Exit::CONFLICT),
        WaitFor::Closed => (state == RunState::Closed).then_some(Exit::OK),
        WaitFor::Idle if state == RunState::Faulted => Some(Exit::TURN_FAILED),
        WaitFor::Idle if state.at_rest() => Some(last.map_or(Exit::of_rest(state), Exit::of_turn)),
        WaitFor::Idle => state.blocked().then_some(Exit::BLOCKED),
    }
}

#[cfg(test)]
mod tests;
