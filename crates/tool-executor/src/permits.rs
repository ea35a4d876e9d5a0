//! The order in which calls may run: pure bookkeeping.

use agentd_actor_kit::{Held, Load};
use agentd_protocol::{EffectClass, SessionId};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

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

/// A number of permits, with the bound on long calls, which leave a quarter of it to the others.
#[derive(Debug, Clone, Copy)]
struct Bound {
    total: u32,
    long: u32,
}

impl Bound {
    const fn new(total: u32) -> Self {
        Self {
            total,
            long: total - total.div_ceil(4),
        }
    }
}

/// Permits in use.
#[derive(Debug, Clone, Copy, Default)]
struct InUse {
    long: u32,
    short: u32,
}

impl InUse {
    /// Whether one more call of this lane stays within a bound.
    const fn has_room(self, lane: Lane, bound: Bound) -> bool {
        let long = match lane {
            Lane::Long => self.long < bound.long,
            Lane::Short => true,
        };
        long && self.long + self.short < bound.total
    }

    const fn take(&mut self, lane: Lane) {
        match lane {
            Lane::Long => self.long += 1,
            Lane::Short => self.short += 1,
        }
    }

    const fn give_back(&mut self, lane: Lane) {
        match lane {
            Lane::Long => self.long = self.long.saturating_sub(1),
            Lane::Short => self.short = self.short.saturating_sub(1),
        }
    }
}

/// The waiting calls of one lane: round-robin over sessions, in order within each session.
#[derive(Debug)]
struct Queue<T> {
    /// Sessions with their places in the common order of all file systems.
    turns: VecDeque<(u64, SessionId)>,
    waiters: BTreeMap<SessionId, VecDeque<T>>,
}

impl<T> Queue<T> {
    const fn new() -> Self {
        Self {
            turns: VecDeque::new(),
            waiters: BTreeMap::new(),
        }
    }

    fn first(&self) -> Option<u64> {
        self.turns.front().map(|(turn, _)| *turn)
    }

    fn push(&mut self, session: SessionId, turn: u64, place: T) {
        let own = self.waiters.entry(session).or_default();
        if own.is_empty() {
            self.turns.push_back((turn, session));
        }
        own.push_back(place);
    }

    fn pop(&mut self, turn: u64) -> Option<T> {
        let (_, session) = self.turns.pop_front()?;
        let own = self.waiters.get_mut(&session)?;
        let place = own.pop_front()?;
        if own.is_empty() {
            self.waiters.remove(&session);
        } else {
            self.turns.push_back((turn, session));
        }
        Some(place)
    }
}

/// The calls of the sessions on one file system.
#[derive(Debug)]
struct System<T> {
    in_use: InUse,
    long: Queue<T>,
    short: Queue<T>,
}

impl<T> System<T> {
    const fn new() -> Self {
        Self {
            in_use: InUse { long: 0, short: 0 },
            long: Queue::new(),
            short: Queue::new(),
        }
    }

    const fn queue(&self, lane: Lane) -> &Queue<T> {
        match lane {
            Lane::Long => &self.long,
            Lane::Short => &self.short,
        }
    }

    const fn queue_mut(&mut self, lane: Lane) -> &mut Queue<T> {
        match lane {
            Lane::Long => &mut self.long,
            Lane::Short => &mut self.short,
        }
    }

    fn is_idle(&self) -> bool {
        let waiting = self.long.first().or_else(|| self.short.first());
        self.in_use.long + self.in_use.short == 0 && waiting.is_none()
    }
}

/// A node's permits. A `T` receives a permit.
///
/// The calls on a file system that does not answer may keep their permits for long. So the sessions on another file system
/// may run `share` calls even if all permits are taken.
#[derive(Debug)]
pub(crate) struct Permits<T> {
    all: Bound,
    share: Bound,
    in_use: InUse,
    waiting: usize,
    turn: u64,
    systems: BTreeMap<Arc<str>, System<T>>,
}

impl<T> Permits<T> {
    pub(crate) const fn new(total: u32) -> Self {
        let total = if total < 2 { 2 } else { total };
        let half = total.div_ceil(2);
        Self {
            all: Bound::new(total),
            share: Bound::new(if half < 2 { 2 } else { half }),
            in_use: InUse { long: 0, short: 0 },
            waiting: 0,
            turn: 0,
            systems: BTreeMap::new(),
        }
    }

    /// Enqueues a waiter; returns it if too many wait.
    pub(crate) fn line_up(&mut self, call: &Held, place: T) -> Result<(), T> {
        if self.waiting >= MAX_WAITING {
            return Err(place);
        }
        self.waiting += 1;
        self.turn += 1;
        let system = self.systems.entry(Arc::clone(&call.file_system));
        let queue = system.or_insert_with(System::new).queue_mut(Lane::of(call.class));
        queue.push(call.session, self.turn, place);
        Ok(())
    }

    /// Takes the next waiter that may run; file operations first, because they are short.
    pub(crate) fn admit(&mut self) -> Option<T> {
        let (name, lane) = self.next(Lane::Short).or_else(|| self.next(Lane::Long))?;
        self.turn += 1;
        let system = self.systems.get_mut(&name)?;
        let place = system.queue_mut(lane).pop(self.turn)?;
        system.in_use.take(lane);
        self.in_use.take(lane);
        self.waiting = self.waiting.saturating_sub(1);
        Some(place)
    }

    /// The file system whose first waiter of a lane is next.
    fn next(&self, lane: Lane) -> Option<(Arc<str>, Lane)> {
        let free = self.in_use.has_room(lane, self.all);
        let may_run = |system: &&System<T>| free || system.in_use.has_room(lane, self.share);
        let waiting = self.systems.iter().filter(|(_, system)| may_run(system));
        let first = waiting.filter_map(|(name, system)| Some((system.queue(lane).first()?, name)));
        first.min().map(|(_, name)| (Arc::clone(name), lane))
    }

    /// How many calls run and wait.
    pub(crate) fn load(&self) -> Load {
        Load {
            running: u64::from(self.in_use.long + self.in_use.short),
            waiting: self.waiting as u64,
        }
    }

    /// Takes a permit back.
    pub(crate) fn release(&mut self, held: &Held) {
        let lane = Lane::of(held.class);
        self.in_use.give_back(lane);
        let Some(system) = self.systems.get_mut(&held.file_system) else {
            return;
        };
        system.in_use.give_back(lane);
        if system.is_idle() {
            self.systems.remove(&held.file_system);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(session: u8, class: EffectClass) -> Held {
        on("disk", session, class)
    }

    fn on(system: &str, session: u8, class: EffectClass) -> Held {
        Held {
            session: SessionId::from_bytes([session; 16]),
            class,
            file_system: system.into(),
        }
    }

    fn admitted(permits: &mut Permits<&'static str>) -> Vec<&'static str> {
        std::iter::from_fn(|| permits.admit()).collect()
    }

    #[test]
    fn i6_sessions_are_served_in_turn() {
        let mut permits = Permits::new(4);
        let (one, other) = (call(1, EffectClass::Read), call(2, EffectClass::Read));
        for place in ["a1", "a2", "a3", "a4"] {
            permits.line_up(&one, place).unwrap();
        }
        permits.line_up(&other, "b1").unwrap();
        assert_eq!(admitted(&mut permits), ["a1", "b1", "a2", "a3"]);
        permits.release(&one);
        assert_eq!(admitted(&mut permits), ["a4"]);
    }

    #[test]
    fn i6_commands_leave_room_for_file_operations() {
        let mut permits = Permits::new(4);
        let (command, file) = (call(1, EffectClass::Exec), call(1, EffectClass::Write));
        for place in ["c1", "c2", "c3", "c4"] {
            permits.line_up(&command, place).unwrap();
        }
        assert_eq!(admitted(&mut permits), ["c1", "c2", "c3"]);
        permits.line_up(&file, "w").unwrap();
        assert_eq!(admitted(&mut permits), ["w"]);
        permits.release(&file);
        assert_eq!(admitted(&mut permits), Vec::<&str>::new());
        permits.release(&command);
        assert_eq!(admitted(&mut permits), ["c4"]);
    }

    #[test]
    fn i6_calls_that_hang_on_one_file_system_leave_permits_for_sessions_on_another() {
        let mut permits = Permits::new(8);
        for session in 1..=20 {
            for class in [EffectClass::Exec, EffectClass::Write] {
                permits.line_up(&on("frozen", session, class), "stuck").unwrap();
            }
        }
        assert_eq!(admitted(&mut permits).len(), 8, "nobody else needs them");
        let (command, file) = (
            on("disk", 30, EffectClass::Exec),
            on("disk", 31, EffectClass::Read),
        );
        for place in ["c1", "c2", "c3", "c4"] {
            permits.line_up(&command, place).unwrap();
        }
        assert_eq!(
            admitted(&mut permits),
            ["c1", "c2", "c3"],
            "half, and commands leave room"
        );
        for place in ["f1", "f2"] {
            permits.line_up(&file, place).unwrap();
        }
        assert_eq!(admitted(&mut permits), ["f1"]);
        permits.release(&command);
        assert_eq!(admitted(&mut permits), ["f2"]);
        // The others do not gain from it.
        permits.release(&file);
        permits.release(&file);
        assert_eq!(admitted(&mut permits), ["c4"]);
        permits.release(&on("frozen", 1, EffectClass::Write));
        assert_eq!(
            admitted(&mut permits),
            Vec::<&str>::new(),
            "more than 8 are in use"
        );
    }

    #[test]
    fn sessions_on_several_file_systems_are_served_in_turn_while_permits_are_free() {
        let mut permits = Permits::new(4);
        for (system, session, place) in [("a", 1, "a1"), ("b", 2, "b1"), ("a", 3, "a2"), ("c", 4, "c1")] {
            permits
                .line_up(&on(system, session, EffectClass::Exec), place)
                .unwrap();
        }
        assert_eq!(admitted(&mut permits), ["a1", "b1", "a2", "c1"]);
        for (system, session) in [("a", 1), ("b", 2), ("a", 3), ("c", 4)] {
            permits.release(&on(system, session, EffectClass::Exec));
        }
        assert!(permits.systems.is_empty(), "nothing is kept of idle file systems");
    }

    #[test]
    fn one_waiter_too_many_is_refused() {
        let mut permits = Permits::new(2);
        for _ in 0..MAX_WAITING {
            permits.line_up(&call(1, EffectClass::Exec), ()).unwrap();
        }
        let file = call(2, EffectClass::Read);
        assert_eq!(permits.line_up(&file, ()), Err(()));
        assert!(permits.admit().is_some());
        assert_eq!(permits.line_up(&file, ()), Ok(()));
    }
}
