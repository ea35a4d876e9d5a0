//! Waking, rate-limited: open turns after a start, sessions whose wake time has come, and the sessions of crashed loops.

use super::slot::Slot;
use super::{Action, Supervisor};
use agentd_protocol::{SessionId, Timestamp};
use agentd_store::Row;

/// Sessions are woken in small groups, at intervals of this many milliseconds.
const GROUP_MS: u64 = 100;
/// The delay before loading the session of a loop that went down.
const LOOK_AGAIN_MS: u64 = 1_000;

impl Supervisor {
    /// Handles sessions found in the store that want to be woken. One that waits for its time keeps it: its row also says that
    /// its turn is open.
    pub fn found(&mut self, rows: Vec<(SessionId, Timestamp)>) {
        if self.draining.is_some() {
            return;
        }
        for (session, at) in rows {
            if !self.slots.contains_key(&session) && !self.wakes.has(session) {
                self.wakes.set(session, at);
            }
        }
        self.arm_tick();
    }

    /// Wakes a group of due sessions.
    pub fn tick(&mut self) {
        self.tick = None;
        self.ticked_at = self.now;
        let group = u64::from(self.bounds.wake_per_second)
            .saturating_mul(GROUP_MS)
            .div_ceil(1_000)
            .max(1);
        for _ in 0..group {
            if !self.has_room() || self.draining.is_some() {
                break;
            }
            let Some(session) = self.wakes.pop_due(self.now) else {
                break;
            };
            if !self.slots.contains_key(&session) {
                self.load(session, None);
            }
        }
        self.arm_tick();
    }

    /// Sets the timer for the next wake-up, if there is one and there is room for it.
    pub(super) fn arm_tick(&mut self) {
        let waits = self.has_room() && self.draining.is_none();
        let next = self.wakes.next().filter(|_| waits);
        let at = next.map(|next| next.max(self.ticked_at.plus_ms(GROUP_MS)));
        let stays = match (self.tick, at) {
            (Some(armed), Some(at)) => armed <= at,
            (armed, at) => armed == at,
        };
        if !stays {
            self.tick = at;
            self.act(Action::SetTick(at));
        }
    }

    /// Loads a session after a short delay, whatever its row says.
    pub(super) fn wake_soon(&mut self, session: SessionId) {
        if self.draining.is_none() {
            self.wakes.set(session, self.now.plus_ms(LOOK_AGAIN_MS));
            self.arm_tick();
        }
    }

    /// Checks the row of a session whose loop went down: does the session continue by itself?
    pub(super) fn look_again(&mut self, session: SessionId) {
        let elsewhere = matches!(self.slots.get(&session), Some(Slot::Hot(_) | Slot::Loading(_)));
        if self.draining.is_none() && !elsewhere {
            self.act(Action::Look(session));
        }
    }
}

/// The time at which a row's session continues by itself, if it does.
#[must_use]
pub fn wake_time(row: &Row, now: Timestamp) -> Option<(SessionId, Timestamp)> {
    let summary = &row.summary;
    // The content of a damaged row is unknown; loading the session rewrites it.
    let at = if summary.resumable || row.damaged {
        Some(now)
    } else {
        summary.wake_at
    };
    at.map(|at| (summary.session, at))
}
