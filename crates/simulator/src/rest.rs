//! Rest: a loop with nothing to do goes cold.

use crate::hot::Hot;
use crate::messages::{Happening, Message};
use crate::world::World;
use agentd_protocol::Timestamp;

/// How long a loop that waits for an answer stays hot, in milliseconds.
const PARKED_MS: u64 = 2_000;
/// The same for a loop that has just handled a command.
const IDLE_MS: u64 = 60_000;
/// A loop that continues by itself within this time stays hot.
const SOON_MS: u64 = 30_000;

impl World {
    pub(crate) fn rests(&self, hot: &Hot) -> bool {
        let kids = self.kids.values().any(|kid| kid.owner == hot.number);
        hot.stop.is_none()
            && hot.quiet()
            && !kids
            && self.grace(hot).is_some()
            && self.routed(hot) == hot.handled
    }

    /// After each message: starts or restarts the idle timer.
    pub(crate) fn settle_down(&mut self, hot: &mut Hot, asked: bool) {
        hot.idle += 1;
        let kids = self.kids.values().any(|kid| kid.owner == hot.number);
        if hot.stop.is_some() || !hot.quiet() || kids {
            return;
        }
        if let Some(grace) = self.grace(hot) {
            let idle = Message::Idle(hot.idle);
            let least = if asked { PARKED_MS } else { 1 };
            self.post(grace.max(least), Happening::Loop(hot.number, idle));
        }
    }

    /// How long to stay hot; `None`: it continues by itself soon.
    fn grace(&self, hot: &Hot) -> Option<u64> {
        let durable = hot.agent.durable();
        if durable.head == 0 || durable.closed.is_some() || hot.draining {
            return Some(0);
        }
        match wake_at(hot, self.now) {
            Some(at) if at <= self.now.plus_ms(SOON_MS) => None,
            Some(_) => Some(PARKED_MS),
            None if durable.last.is_none() && durable.turn.is_none() => Some(0),
            None if durable.approvals.is_empty() && durable.children.is_empty() => Some(IDLE_MS),
            None => Some(PARKED_MS),
        }
    }
}

/// When a session continues by itself.
pub(crate) fn wake_at(hot: &Hot, now: Timestamp) -> Option<Timestamp> {
    hot.agent.summary(now).wake_at
}
