//! `wait`: until sessions are idle, closed, or ask.

use crate::cli::{WaitArgs, WaitFor};
use crate::ctx::Ctx;
use crate::dial::Dial;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::follow::{Follower, News, Wanted};
use agentd_client::Client;
use agentd_protocol::{Delta, EndReason, Event, EventBody, Fault, RunState, Seq, Summary};
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
    let mut seen = Seen::default();
    loop {
        let news = follower.next().await?;
        seen.take(&news);
        if matches!(news, News::Ended(_)) {
            return Ok(Waited {
                session: id,
                state: None,
                reason: seen.last.map(|(reason, _)| reason),
                exit: Exit::OK.0,
            });
        }
        if !seen.due {
            continue;
        }
        // The row is the daemon's word; news only say when to look.
        let row = follower.client().get(&id).await;
        let Ok(row) = row else { continue };
        if !seen.covers(&row) {
            continue;
        }
        if let Some(exit) = outcome(&row, seen.last.map(|(_, exit)| exit), what) {
            return Ok(Waited {
                session: id,
                state: Some(row.status.state),
                reason: seen.last.map(|(reason, _)| reason),
                exit: exit.0,
            });
        }
    }
}

/// What was heard of a session. While the past is replayed, a turn's end in it is not the last one.
#[derive(Debug, Default)]
struct Seen {
    synced: bool,
    /// The last event.
    seq: Seq,
    /// How the last turn ended, and the code of that; absent while one runs.
    last: Option<(EndReason, Exit)>,
    /// The row has to be looked at.
    due: bool,
}

impl Seen {
    fn take(&mut self, news: &News) {
        self.due |= matters(news);
        match news {
            News::Event(event, _) => {
                self.seq = event.seq;
                match &event.body {
                    EventBody::TurnStarted(_) => self.last = None,
                    EventBody::TurnFinished(turn) => self.last = Some((turn.reason, Exit::of_finished(turn))),
                    _ => {}
                }
            }
            News::Synced(_) => self.synced = true,
            // What was missed is replayed.
            News::Retrying | News::Back => self.synced = false,
            News::Delta(_) | News::Lagged | News::Ended(_) => {}
        }
        self.due &= self.synced;
    }

    /// Whether every event that the row sums up was heard. If not, the rest is on the way.
    fn covers(&mut self, row: &Summary) -> bool {
        self.due = row.seq > self.seq;
        !self.due
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
fn outcome(row: &Summary, last: Option<Exit>, what: WaitFor) -> Option<Exit> {
    let state = row.status.state;
    match what {
        WaitFor::Approval if !row.open_approvals.is_empty() => Some(Exit::OK),
        WaitFor::Approval => (state == RunState::Closed).then_some(Exit::CONFLICT),
        WaitFor::Closed => (state == RunState::Closed).then_some(Exit::OK),
        WaitFor::Idle if state == RunState::Faulted => Some(Exit::TURN_FAILED),
        WaitFor::Idle if state.at_rest() => Some(last.unwrap_or(Exit::of_rest(state))),
        WaitFor::Idle => state.blocked().then_some(Exit::BLOCKED),
    }
}

#[cfg(test)]
mod tests;
