//! After a start: questions that are still open are told of once more, with the words and the key of the first time.

use agentd_actor_kit::{Handle, Read, StoreMsg};
use agentd_protocol::{ApprovalId, Event, EventBody, SessionId};
use agentd_store::{Direction, EncodedEvent, Filter, Range, Row};
use agentd_webhook::{Note, Webhooks};
use std::collections::BTreeSet;
use std::time::Duration;
use tokio::time::sleep;

/// Sessions that are looked at together.
const ROWS: u32 = 512;
/// Events of one look into a log, newest first.
const PAGE: u32 = 256;
/// Looks into one log: a question that is older is in the inbox.
const PAGES: u32 = 64;
/// How long a read may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// Before a read is tried again,
const PAUSE: Duration = Duration::from_secs(1);
/// and how often.
const TRIES: u32 = 30;

/// Tells of all open questions.
pub(crate) async fn remind(webhooks: Webhooks, store: Handle<StoreMsg>) {
    let mut after = None;
    loop {
        let filter = Filter {
            limit: ROWS,
            after,
            ..Filter::default()
        };
        let list = || {
            let filter = filter.clone();
            store.call(PATIENCE, |done| StoreMsg::Read(Read::List { filter, done }))
        };
        let Some(rows) = patiently(list).await else { return };
        for row in rows.iter().filter(|row| !row.summary.open_approvals.is_empty()) {
            for note in notes(&store, row).await {
                webhooks.send_in_turn(&note).await;
            }
        }
        after = rows.last().map(|row| row.summary.session);
        if rows.len() < ROWS as usize {
            return;
        }
    }
}

/// What was told of the open questions of a session: of each the last word.
async fn notes(store: &Handle<StoreMsg>, row: &Row) -> Vec<Note> {
    let open = row.summary.open_approvals.iter().map(|open| open.approval);
    let mut open: BTreeSet<ApprovalId> = open.collect();
    let (mut notes, mut upto) = (Vec::new(), None);
    for _ in 0..PAGES {
        let Some(events) = page(store, row.summary.session, upto).await else {
            break;
        };
        for event in &events {
            let about = match &event.body {
                EventBody::ApprovalAsked(asked) => asked.approval,
                EventBody::ApprovalEscalated(escalated) => escalated.approval,
                _ => continue,
            };
            if open.remove(&about) {
                notes.extend(Note::of(event));
            }
        }
        upto = events.last().map(|event| event.seq.saturating_sub(1));
        if open.is_empty() || upto.is_none_or(|upto| upto == 0) {
            break;
        }
    }
    notes
}

/// Events of a log, newest first. One that cannot be read is left out.
async fn page(store: &Handle<StoreMsg>, session: SessionId, upto: Option<u64>) -> Option<Vec<Event>> {
    let range = Range {
        upto,
        direction: Direction::Backward,
        limit: PAGE,
        ..Range::default()
    };
    let load = || {
        store.call(PATIENCE, |done| {
            StoreMsg::Read(Read::Load { session, range, done })
        })
    };
    let page = patiently(load).await?;
    let events = page.events.iter().map(|(_, line)| EncodedEvent::decode(line));
    Some(events.filter_map(Result::ok).collect())
}

/// Reads, for a while: the store may be restarted just now.
async fn patiently<T, E, F>(read: impl Fn() -> F) -> Option<T>
where
    F: Future<Output = Result<Result<T, agentd_store::StoreError>, E>>,
{
    for _ in 0..TRIES {
        match read().await {
            Ok(Ok(found)) => return Some(found),
            Ok(Err(agentd_store::StoreError::NotFound(_))) => return None,
            Ok(Err(_)) | Err(_) => sleep(PAUSE).await,
        }
    }
    tracing::warn!("open questions could not be told of again: the store does not answer");
    None
}
