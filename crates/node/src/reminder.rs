//! After a start, sends the notes of all open questions again, with their original text and key.

use agentd_actor_kit::{Handle, Read, StoreMsg};
use agentd_protocol::{ApprovalId, Event, EventBody, SessionId};
use agentd_store::{Direction, EncodedEvent, Filter, Range, Row};
use agentd_webhook::{Note, Webhooks};
use std::collections::BTreeSet;
use std::time::Duration;
use tokio::time::sleep;

/// Sessions per page of the list.
const ROWS: u32 = 512;
/// Events per page of a log, newest first.
const PAGE: u32 = 256;
/// The maximum number of pages per log: older questions are only in the inbox.
const PAGES: u32 = 64;
/// How long a read may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// The pause between two attempts to read.
const PAUSE: Duration = Duration::from_secs(1);
/// The maximum number of attempts.
const TRIES: u32 = 30;

/// Sends all open questions.
pub(crate) async fn remind(webhooks: Webhooks, store: Handle<StoreMsg>) {
    let mut after = None;
    loop {
        let filter = Filter {
            limit: ROWS,
            after: after.map(Into::into),
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

/// The notes of a session's open questions: the latest for each.
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

/// The events of a page, newest first. Skips unreadable ones.
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

/// Reads with retries: the store may be restarting.
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
    tracing::warn!("could not send reminders of open questions: the store does not answer");
    None
}
