//! `wait`: waits until sessions are idle, closed, or need an approval.

use crate::cli::{WaitArgs, WaitFor};
use crate::ctx::Ctx;
use crate::dial::Dial;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::follow::{Follower, News, Wanted};
use agentd_client::Client;
use agentd_protocol::{Delta, EndReason, Event, EventBody, ExportParams, Fault, RunState, Seq, Summary};
use futures_util::future::join_all;
use serde::Serialize;

/// How many events at the end of the log are read first to find the end of the last turn.
const TAIL: u32 = 32;
/// How many events are read at once before those.
const PAGE: Seq = 1_000;

/// The outcome for one session.
#[derive(Debug, PartialEq, Serialize)]
pub(crate) struct Waited {
    session: String,
    state: Option<RunState>,
    pub(crate) reason: Option<EndReason>,
    pub(crate) exit: u8,
}

pub(crate) async fn wait(ctx: &mut Ctx, args: &WaitArgs) -> Result<Exit, Failure> {
    let client = ctx.connect().await?;
    let dial = ctx.dial()?;
    let each = args
        .sessions
        .iter()
        .map(|session| at_rest(&dial, &client, session, args.what));
    let all = join_all(each);
    let outcomes = match args.timeout {
        None => all.await,
        Some(within) => tokio::time::timeout(within, all).await.map_err(|_| {
            let message = format!(
                "not all sessions reached the requested state within {}",
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
        ctx.out.status(&format!("{} {state}", row.session));
    }
    if !ctx.out.human() {
        ctx.out.value(&rows)?;
    }
    Ok(exit)
}

/// Waits for one session.
pub(crate) async fn at_rest(
    dial: &Dial,
    client: &Client,
    session: &str,
    what: WaitFor,
) -> Result<Waited, Failure> {
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
        // The daemon's row is authoritative; news only tells when to fetch it.
        let row = follower.client().get(&id).await;
        let Ok(row) = row else { continue };
        if !seen.covers(&row) {
            continue;
        }
        let more = row.seq > Seq::from(TAIL);
        if more && seen.last.is_none() && row.status.state.at_rest() {
            seen.last = earlier(&follower.client(), &id, row.seq).await?;
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

/// How the last turn up to an event ended, if there was one. Reads the log from its end, page by page.
async fn earlier(client: &Client, session: &str, upto: Seq) -> Result<Option<Ended>, Failure> {
    let (mut begin, mut end) = (upto.saturating_sub(PAGE), upto);
    while end > 0 {
        let (mut last, mut at) = (None, begin);
        while at < end {
            let params = ExportParams {
                session: session.to_owned(),
                after_seq: at,
                limit: 0,
            };
            let page = client.export(&params).await?;
            let events = page
                .lines
                .iter()
                .filter_map(|line| serde_json::from_str(line).ok());
            let events: Vec<Event> = events.collect();
            last = events.iter().rev().find_map(ended).or(last);
            at = events.last().map_or(end, |event| event.seq);
        }
        if last.is_some() {
            return Ok(last);
        }
        (begin, end) = (begin.saturating_sub(PAGE), begin);
    }
    Ok(None)
}

fn ended(event: &Event) -> Option<Ended> {
    match &event.body {
        EventBody::TurnFinished(turn) => Some((turn.reason, Exit::of_finished(turn))),
        _ => None,
    }
}

/// How a turn ended, with its exit code.
type Ended = (EndReason, Exit);

/// The events seen of a session. A turn's end in a replay need not be the last one.
#[derive(Debug, Default)]
struct Seen {
    synced: bool,
    /// The seq of the last event.
    seq: Seq,
    /// How the last turn ended; `None` while a turn runs.
    last: Option<Ended>,
    /// Whether the row must be fetched.
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
                    _ => self.last = ended(event).or(self.last),
                }
            }
            News::Synced(_) => self.synced = true,
            // The events that were missed will be replayed.
            News::Retrying | News::Back => self.synced = false,
            News::Delta(_) | News::Lagged | News::Ended(_) => {}
        }
        self.due &= self.synced;
    }

    /// Whether all events that the row includes have arrived. If not, the rest are on their way.
    fn covers(&mut self, row: &Summary) -> bool {
        self.due = row.seq > self.seq;
        !self.due
    }
}

/// Whether the state may have changed.
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

/// The exit code, if there is nothing more to wait for.
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
