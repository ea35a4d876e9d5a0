//! The order in which calls may run: pure bookkeeping.

use agentd_actor_kit::Load;
use agentd_protocol::{EffectClass, SessionId};
use std::collections::{BTreeMap, VecDeque};

/// More waiters than this are turned away.
const MAX_WAITING: usize = 16_384;

/// The two kinds of calls, by cost: a command or a request may take minutes, a file operation does not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lane {
    Long,
    Short,
}

impl Lane {
    const fn of(class: EffectClass) -> Self {
        match class {
            EffectClass::Exec | EffectClass::Network => Self::Long,
            EffectClass::Read | EffectClass::Write | EffectClass::None => Self::Short,
        }
    }
}

/// The waiting calls of one lane: round-robin over sessions, in order within each session.
#[derive(Debug)]
struct Queue<T> {
    turns: VecDeque<SessionId>,
    waiters: BTreeMap<SessionId, VecDeque<T>>,
}

impl<T> Queue<T> {
    const fn new() -> Self {
        Self {
            turns: VecDeque::new(),
            waiters: BTreeMap::new(),
        }
    }

    fn push(&mut self, session: SessionId, place: T) {
        let own = self.waiters.entry(session).or_default();
        if own.is_empty() {
            self.turns.push_back(session);
        }
        own.push_back(place);
    }

    fn pop(&mut self) -> Option<(SessionId, T)> {
        let session = self.turns.pop_front()?;
        let own = self.waiters.get_mut(&session)?;
        let place = own.pop_front()?;
        if own.is_empty() {
            self.waiters.remove(&session);
        } else {
            self.turns.push_back(session);
        }
        Some((session, place))
    }
}

/// A node's permits. A `T` receives a permit.
#[derive(Debug)]
pub(crate) struct Permits<T> {
    total: u32,
    /// Long calls leave a quarter of the permits to the others.
    long_at_most: u32,
    long: u32,
    short: u32,
    waiting: usize,
    long_queue: Queue<T>,
    short_queue: Queue<T>,
}

impl<T> Permits<T> {
    pub(crate) fn new(total: u32) -> Self {
        let total = total.max(2);
        let long_at_most = total - total.div_ceil(4);
        Self {
            total,
            long_at_most,
            long: 0,
            short: 0,
            waiting: 0,
            long_queue: Queue::new(),
            short_queue: Queue::new(),
        }
    }

    /// Enqueues a waiter; returns it if too many wait.
    pub(crate) fn line_up(&mut self, session: SessionId, class: EffectClass, place: T) -> Result<(), T> {
        if self.waiting >= MAX_WAITING {
            return Err(place);
        }
        self.waiting += 1;
        match Lane::of(class) {
            Lane::Long => self.long_queue.push(session, place),
            Lane::Short => self.short_queue.push(session, place),
        }
        Ok(())
    }

    /// Takes the next waiter that may run; file operations first, because they are short.
    pub(crate) fn admit(&mut self) -> Option<(SessionId, T)> {
        if self.long + self.short >= self.total {
            return None;
        }
        let next = match self.short_queue.pop() {
            Some(next) => {
                self.short += 1;
                next
            }
            None if self.long < self.long_at_most => {
                let next = self.long_queue.pop()?;
                self.long += 1;
                next
            }
            None => return None,
        };
        self.waiting = self.waiting.saturating_sub(1);
        Some(next)
    }

    /// How many calls run and wait.
    pub(crate) fn load(&self) -> Load {
        Load {
            running: u64::from(self.long + self.short),
            waiting: self.waiting as u64,
        }
    }

    /// Takes a permit back.
    pub(crate) const fn release(&mut self, class: EffectClass) {
        match Lane::of(class) {
            Lane::Long => self.long = self.long.saturating_sub(1),
            Lane::Short => self.short = self.short.saturating_sub(1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(number: u8) -> SessionId {
        SessionId::from_bytes([number; 16])
    }

    fn admitted(permits: &mut Permits<&'static str>) -> Vec<&'static str> {
        std::iter::from_fn(|| permits.admit())
            .map(|(_, place)| place)
            .collect()
    }

    #[test]
    fn i6_sessions_are_served_in_turn() {
        let mut permits = Permits::new(4);
        for place in ["a1", "a2", "a3", "a4"] {
            permits.line_up(session(1), EffectClass::Read, place).unwrap();
        }
        permits.line_up(session(2), EffectClass::Read, "b1").unwrap();
        assert_eq!(admitted(&mut permits), ["a1", "b1", "a2", "a3"]);
        permits.release(EffectClass::Read);
        assert_eq!(admitted(&mut permits), ["a4"]);
    }

    #[test]
    fn i6_commands_leave_room_for_file_operations() {
        let mut permits = Permits::new(4);
        for place in ["c1", "c2", "c3", "c4"] {
            permits.line_up(session(1), EffectClass::Exec, place).unwrap();
        }
        assert_eq!(admitted(&mut permits), ["c1", "c2", "c3"]);
        permits.line_up(session(1), EffectClass::Write, "w").unwrap();
        assert_eq!(admitted(&mut permits), ["w"]);
        permits.release(EffectClass::Write);
        assert_eq!(admitted(&mut permits), Vec::<&str>::new());
        permits.release(EffectClass::Exec);
        assert_eq!(admitted(&mut permits), ["c4"]);
    }

    #[test]
    fn one_waiter_too_many_is_refused() {
        let mut permits = Permits::new(2);
        for _ in 0..MAX_WAITING {
            permits.line_up(session(1), EffectClass::Exec, ()).unwrap();
        }
        assert_eq!(permits.line_up(session(2), EffectClass::Read, ()), Err(()));
        assert!(permits.admit().is_some());
        assert_eq!(permits.line_up(session(2), EffectClass::Read, ()), Ok(()));
    }
}
