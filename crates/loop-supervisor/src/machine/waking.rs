//! Waking, rate-limited: open turns after a start, sessions whose wake time has come, and the sessions of crashed loops.

use crate::slot::Slot;
use crate::state::State;
use agentd_actor_kit::{Alarm, Clock, Read, StoreMsg, SupervisorMsg};
use agentd_protocol::{SessionId, Timestamp};
use agentd_session_loop::Services;
use agentd_store::{Filter, Row, StoreError};
use ractor::ActorRef;
use std::sync::Arc;
use std::time::Duration;

/// Sessions are woken in small groups, at intervals of this many milliseconds.
const GROUP_MS: u64 = 100;
/// The delay before checking the session of a crashed or stopped loop.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
/// The delay before retrying a store that did not answer.
const ASK_AGAIN: Duration = Duration::from_secs(5);
/// The most retries per session; the next command or restart finds it anyway.
const ASK_AT_MOST: u32 = 12;

impl State {
    /// Handles sessions found in the store that want to be woken.
    pub(crate) fn found(&mut self, rows: Vec<(SessionId, Timestamp)>) {
        if self.draining.is_some() {
            return;
        }
        for (session, at) in rows {
            if !self.slots.contains_key(&session) {
                self.wakes.set(session, at);
            }
        }
        self.arm_tick();
    }

    /// Wakes a group of due sessions.
    pub(crate) fn tick(&mut self) {
        self.tick = None;
        self.ticked_at = self.now();
        let group = u64::from(self.bounds.wake_per_second)
            .saturating_mul(GROUP_MS)
            .div_ceil(1_000)
            .max(1);
        for _ in 0..group {
            if !self.has_room() || self.draining.is_some() {
                break;
            }
            let Some(session) = self.wakes.pop_due(self.ticked_at) else {
                break;
            };
            if !self.slots.contains_key(&session) {
                self.load(session, None);
            }
        }
        self.arm_tick();
    }

    /// Sets the alarm for the next wake-up, if there is one and there is room for it.
    pub(crate) fn arm_tick(&mut self) {
        let Some(next) = self
            .wakes
            .next()
            .filter(|_| self.has_room() && self.draining.is_none())
        else {
            self.tick = None;
            return;
        };
        let at = next.max(self.ticked_at.plus_ms(GROUP_MS));
        if self.tick.as_ref().is_some_and(|(armed, _)| *armed <= at) {
            return;
        }
        let after = Duration::from_millis(at.since_ms(self.now()));
        self.tick = Some((at, Alarm::set(&self.me, after, SupervisorMsg::Tick)));
    }

    /// Searches the store for sessions that continue by themselves.
    pub(crate) fn scan(&self) {
        let (services, me, rows) = (Arc::clone(&self.services), self.me.clone(), self.bounds.scan_rows);
        tokio::spawn(async move { scan(&services, &me, rows).await });
    }

    /// Loads a session after a short delay, whatever its row says.
    pub(crate) fn wake_soon(&mut self, session: SessionId) {
        if self.draining.is_none() {
            let after = u64::try_from(LOOK_AGAIN.as_millis()).unwrap_or(u64::MAX);
            self.wakes.set(session, self.now().plus_ms(after));
            self.arm_tick();
        }
    }

    /// Checks the row of a session whose loop went down: does the session continue by itself?
    pub(crate) fn look_again(&mut self, session: SessionId) {
        let elsewhere = matches!(self.slots.get(&session), Some(Slot::Hot(_) | Slot::Loading(_)));
        if self.draining.is_some() || elsewhere {
            return;
        }
        let (services, me) = (Arc::clone(&self.services), self.me.clone());
        tokio::spawn(async move { look(&services, &me, session).await });
    }
}

/// The time at which a row's session continues by itself, if it does.
fn wake_time(row: &Row, clock: Clock) -> Option<(SessionId, Timestamp)> {
    let summary = &row.summary;
    // The content of a damaged row is unknown; loading the session rewrites it.
    let at = if summary.resumable || row.damaged {
        Some(clock.now())
    } else {
        summary.wake_at
    };
    at.map(|at| (summary.session, at))
}

async fn scan(services: &Services, me: &ActorRef<SupervisorMsg>, limit: u32) {
    let mut after = None;
    loop {
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
            .filter_map(|row| wake_time(row, services.clock))
            .collect();
        let last = rows.last().map(|row| row.summary.session);
        let gone = !found.is_empty() && me.cast(SupervisorMsg::Found { rows: found }).is_err();
        if gone || last.is_none() || rows.len() < limit as usize {
            return;
        }
        after = last;
    }
}

async fn look(services: &Services, me: &ActorRef<SupervisorMsg>, session: SessionId) {
    tokio::time::sleep(LOOK_AGAIN).await;
    for _ in 0..ASK_AT_MOST {
        let read = |done| StoreMsg::Read(Read::Row { session, done });
        match services.store.call(services.timing.load, read).await {
            Ok(Ok(row)) => {
                let rows: Vec<_> = row
                    .iter()
                    .filter_map(|row| wake_time(row, services.clock))
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
