//! The supervisor's tasks: they load sessions and read rows of the store.

use crate::machine::wake_time;
use agentd_actor_kit::{NotLoaded, Read, SessionMsg, StoreMsg, SupervisorMsg};
use agentd_protocol::{Fault, SessionCreated, SessionId};
use agentd_session_loop::{LoadPurpose, LoopArgs, LoopError, Services, SessionLoop, fresh, load as fold};
use agentd_store::{Filter, StoreError};
use ractor::{ActorRef, ActorStatus};
use std::sync::Arc;
use std::time::Duration;

/// The delay before checking the session of a loop that went down.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
/// The delay before retrying a store that did not answer.
const ASK_AGAIN: Duration = Duration::from_secs(5);
/// The time between the first two searches for sessions that continue by themselves. It doubles each time ...
const SCAN_AGAIN: Duration = Duration::from_secs(2);
/// ... up to this.
const SCAN_AT_LAST: Duration = Duration::from_secs(60);
/// The most retries per session; the next command or restart finds it anyway.
const ASK_AT_MOST: u32 = 12;

/// Folds a session's log, and starts its loop.
pub(crate) async fn load(
    services: Arc<Services>,
    supervisor: ActorRef<SupervisorMsg>,
    session: SessionId,
    (created, purpose): (Option<Box<SessionCreated>>, LoadPurpose),
) -> Result<ActorRef<SessionMsg>, NotLoaded> {
    let folded = match created {
        Some(created) => fresh(&services, session, &created).await,
        None => fold(&services, session, purpose).await,
    };
    let folded = folded.map_err(|error| match error {
        LoopError::Refused(fault) => NotLoaded::Refused(fault),
        error => NotLoaded::Faulted(error.to_string()),
    })?;
    let args = LoopArgs {
        services,
        folded,
        supervisor,
    };
    let started = SessionLoop::start(args).await;
    started.map_err(|error| NotLoaded::Refused(Fault::internal("loop_not_started", error.to_string())))
}

/// Searches the store for sessions that continue by themselves, again and again. Loops of a supervisor that failed may have
/// appends on their way to the store: their sessions are found once these are committed.
pub(crate) async fn scan(services: &Services, me: &ActorRef<SupervisorMsg>, limit: u32) {
    let mut pause = SCAN_AGAIN;
    while is_up(me) {
        scan_once(services, me, limit).await;
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(SCAN_AT_LAST);
    }
}

fn is_up(me: &ActorRef<SupervisorMsg>) -> bool {
    me.get_status() < ActorStatus::Stopping
}

async fn scan_once(services: &Services, me: &ActorRef<SupervisorMsg>, limit: u32) {
    let mut after = None;
    while is_up(me) {
        let filter = Filter {
            resumable_or_timed: true,
            limit,
            after: after.map(Into::into),
            ..Filter::default()
        };
        let list = |done| StoreMsg::Read(Read::List { filter, done });
        let Ok(Ok(rows)) = services.store.call(services.timing.load, list).await else {
            tokio::time::sleep(ASK_AGAIN).await;
            continue;
        };
        let found: Vec<_> = rows
            .iter()
            .filter_map(|row| wake_time(row, services.clock.now()))
            .collect();
        let last = rows.last().map(|row| row.summary.session);
        let gone = !found.is_empty() && me.cast(SupervisorMsg::Found { rows: found }).is_err();
        if gone || last.is_none() || rows.len() < limit as usize {
            return;
        }
        after = last;
    }
}

/// Checks the row of a session whose loop went down: does the session continue by itself?
pub(crate) async fn look(services: &Services, me: &ActorRef<SupervisorMsg>, session: SessionId) {
    tokio::time::sleep(LOOK_AGAIN).await;
    for _ in 0..ASK_AT_MOST {
        let read = |done| StoreMsg::Read(Read::Row { session, done });
        match services.store.call(services.timing.load, read).await {
            Ok(Ok(row)) => {
                let rows: Vec<_> = row
                    .iter()
                    .filter_map(|row| wake_time(row, services.clock.now()))
                    .collect();
                let _ = me.cast(SupervisorMsg::Found { rows });
                return;
            }
            Ok(Err(StoreError::DamagedRow(_))) => {
                let rows = vec![(session, services.clock.now())];
                let _ = me.cast(SupervisorMsg::Found { rows });
                return;
            }
            Ok(Err(_)) | Err(_) => tokio::time::sleep(ASK_AGAIN).await,
        }
    }
    tracing::warn!(%session, "cannot read from the store whether the session must continue; its next command will load it");
}
