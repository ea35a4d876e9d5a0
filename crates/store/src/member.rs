//! The decisions of a node about its membership in a fleet. Pure: the node and the simulator run this same code.
//!
//! Invariants: I9 (the epochs keep two owners of a session apart in the log), I4 and I5 (commands of a node end before its
//! lease does, so that they never run beside those of the next owner).
//!
//! Flow: [`Keeper`] says when to give a sign of life and what its answer means -> [`Standing`] -> [`Placer`] says what
//! follows for the sessions.

use crate::{Beat, Incarnation, StoreError};
use agentd_protocol::Placing;
use std::time::Duration;

/// Signs of life per lease.
const BEATS: u32 = 6;
/// The longest time between two of them; also how often sessions are taken over.
const EVERY: Duration = Duration::from_millis(700);
/// A node looks for an ended lease this long after its end: the database's clock and ours are not in step.
const AFTER_END: Duration = Duration::from_millis(5);
/// This part of the lease is left when effects may start no more and commands are killed, but never less than [`ENDING`].
const MARGIN: u32 = 5;
/// The time for killing commands. The shortest `node.ttl` that the settings accept is four times as long.
const ENDING: Duration = Duration::from_millis(500);
/// How often a draining node gives up the sessions that are cold.
pub const HAND_OVER: Duration = Duration::from_millis(500);

/// A bug that the simulator plants, to prove that its seeds find it. Only a debug build can hold one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemberMutant {
    /// Effects start until the lease ends, and long after it.
    EndlessLease,
    /// A node that others declared dead keeps its sessions.
    KeptSessions,
    /// A node that others declared dead does not join again.
    NoRejoin,
}

/// The result of the last sign of life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Standing {
    /// The store knows this node as this incarnation.
    pub incarnation: Incarnation,
    /// Which sessions it may have.
    pub placing: Placing,
}

/// What an answer of the store to a sign of life means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Beaten {
    /// The lease is extended: effects may start until this time. Tell the [`Standing`].
    Renewed(Duration),
    /// Others took note that this node was gone: join again, and report it to [`Keeper::joined`].
    Join,
    /// The store could not be asked. The first failure of a series is worth a warning.
    Missed {
        /// Whether the one before it succeeded.
        first: bool,
    },
}

/// Decides about the signs of life. All times are on one clock of the node that never jumps.
#[derive(Debug)]
pub struct Keeper {
    ttl: Duration,
    standing: Standing,
    /// When the sign of life in progress began.
    asked: Duration,
    next_end: Option<Duration>,
    failing: bool,
    mutant: Option<MemberMutant>,
}

impl Keeper {
    /// The keeper of a node that asked to join at this time, and has joined.
    #[must_use]
    pub const fn new(ttl: Duration, asked: Duration, incarnation: Incarnation) -> Self {
        let placing = Placing::Open;
        Self {
            ttl,
            standing: Standing { incarnation, placing },
            asked,
            next_end: None,
            failing: false,
            mutant: None,
        }
    }

    /// Plants a bug, if this is a debug build.
    #[must_use]
    pub fn planted(mut self, mutant: Option<MemberMutant>) -> Self {
        self.mutant = mutant.filter(|_| cfg!(debug_assertions));
        self
    }

    /// The last standing.
    #[must_use]
    pub const fn standing(&self) -> Standing {
        self.standing
    }

    /// The pause before the next sign of life: shorter if another node's lease ends before it.
    #[must_use]
    pub fn pause(&self) -> Duration {
        let every = EVERY.min(self.ttl / BEATS);
        self.next_end.map_or(every, |end| every.min(end + AFTER_END))
    }

    /// Until when effects may start and commands run. It counts from when the store was asked: the answer may have come late.
    /// Others take over at the end of the ttl at the earliest, which the store counts from a later time.
    #[must_use]
    pub fn lease(&self) -> Duration {
        if self.mutant == Some(MemberMutant::EndlessLease) {
            return Duration::MAX;
        }
        self.asked + self.ttl.saturating_sub((self.ttl / MARGIN).max(ENDING))
    }

    /// A sign of life begins.
    pub const fn asks(&mut self, now: Duration) {
        self.asked = now;
    }

    /// The store answers a sign of life.
    pub fn beaten(&mut self, answer: Result<Beat, &StoreError>) -> Beaten {
        self.next_end = answer.as_ref().ok().and_then(|beat| beat.next_end);
        match answer {
            Ok(beat) => {
                self.standing.placing = beat.placing;
                self.renewed()
            }
            Err(StoreError::NodeLost) if self.mutant != Some(MemberMutant::NoRejoin) => Beaten::Join,
            Err(_) => self.missed(),
        }
    }

    /// The store answers the attempt to join again.
    pub fn joined(&mut self, answer: Result<Incarnation, &StoreError>) -> Beaten {
        match answer {
            Ok(incarnation) => {
                self.standing.incarnation = incarnation;
                self.renewed()
            }
            Err(_) => self.missed(),
        }
    }

    fn renewed(&mut self) -> Beaten {
        self.failing = false;
        Beaten::Renewed(self.lease())
    }

    const fn missed(&mut self) -> Beaten {
        let first = !self.failing;
        self.failing = true;
        Beaten::Missed { first }
    }
}

/// How much of what a node can take is in use, each in thousandths.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Load {
    /// Sessions in memory.
    pub sessions: u32,
    /// Tool calls that run or wait for a permit; more than 1,000 if many wait.
    pub calls: u32,
    /// The memory of the machine.
    pub memory: u32,
}

impl Load {
    /// This much of this limit.
    #[must_use]
    pub fn part(used: u64, limit: u64) -> u32 {
        u32::try_from(used.saturating_mul(1_000) / limit.max(1)).unwrap_or(u32::MAX)
    }

    /// One number to compare nodes by. A sum: a high value that all nodes have in common hides no difference in another one.
    #[must_use]
    pub const fn sum(self) -> u32 {
        self.sessions
            .saturating_add(self.calls)
            .saturating_add(self.memory)
    }
}

/// A new session begins at another node only if the loads differ by more than this. Reports are up to a second old, so that a
/// smaller difference may be gone already.
pub const WORTH_IT: u32 = 100;

/// Whether a new session should begin at the node with the least load rather than at this one.
#[must_use]
pub const fn better_elsewhere(mine: u32, least: u32) -> bool {
    mine > least.saturating_add(WORTH_IT)
}

/// A consequence of a standing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Duty {
    /// Others may have the sessions in memory: drop them all without writing, report it to [`Placer::dropped`], and ask
    /// again.
    DropAll,
    /// Take over what no live node has.
    Adopt,
    /// Drain this node, and report to [`Placer::drains`] once that is accepted.
    Drain,
    /// Nothing.
    Rest,
}

/// Decides what follows from the membership for the sessions.
#[derive(Debug)]
pub struct Placer {
    /// The incarnation that owns the sessions in memory.
    incarnation: Incarnation,
    drains: bool,
    mutant: Option<MemberMutant>,
}

impl Placer {
    /// The placer of a node whose sessions belong to this incarnation.
    #[must_use]
    pub const fn new(incarnation: Incarnation) -> Self {
        Self {
            incarnation,
            drains: false,
            mutant: None,
        }
    }

    /// Plants a bug, if this is a debug build.
    #[must_use]
    pub fn planted(mut self, mutant: Option<MemberMutant>) -> Self {
        self.mutant = mutant.filter(|_| cfg!(debug_assertions));
        self
    }

    /// The next duty. Asked after every sign of life.
    #[must_use]
    pub fn duty(&self, standing: Standing) -> Duty {
        let keeps = self.mutant == Some(MemberMutant::KeptSessions);
        match standing.placing {
            _ if standing.incarnation != self.incarnation && !keeps => Duty::DropAll,
            Placing::Open => Duty::Adopt,
            Placing::Draining if !self.drains => Duty::Drain,
            Placing::Cordoned | Placing::Draining => Duty::Rest,
        }
    }

    /// The sessions of all earlier incarnations are dropped.
    pub const fn dropped(&mut self, standing: Standing) {
        self.incarnation = standing.incarnation;
    }

    /// The node drains.
    pub const fn drains(&mut self) {
        self.drains = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TTL: Duration = Duration::from_secs(10);

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    const fn open(next_end: Option<Duration>) -> Result<Beat, &'static StoreError> {
        let placing = Placing::Open;
        Ok(Beat { placing, next_end })
    }

    #[test]
    fn i9_the_lease_counts_from_the_question_and_a_failure_does_not_extend_it() {
        let mut keeper = Keeper::new(TTL, seconds(1), Incarnation(1));
        assert_eq!((keeper.pause(), keeper.lease()), (EVERY, seconds(9)));
        keeper.asks(seconds(5));
        assert_eq!(keeper.beaten(open(None)), Beaten::Renewed(seconds(13)));
        let down = StoreError::Unknown;
        for first in [true, false] {
            assert_eq!(keeper.beaten(Err(&down)), Beaten::Missed { first });
        }
        assert_eq!(keeper.beaten(open(None)), Beaten::Renewed(seconds(13)));
        assert_eq!(keeper.beaten(Err(&down)), Beaten::Missed { first: true });
        assert_eq!(
            Keeper::new(seconds(3), TTL, Incarnation(1)).pause(),
            seconds(3) / 6
        );
    }

    #[test]
    fn i4_i5_commands_end_before_others_may_take_over_whatever_the_ttl() {
        for ttl_ms in [2_000, 2_001, 2_499, 2_500, 2_501, 10_000, 3_600_000] {
            let ttl = Duration::from_millis(ttl_ms);
            let asked = seconds(7);
            let lease = Keeper::new(ttl, asked, Incarnation(1)).lease();
            let left = (asked + ttl).saturating_sub(lease);
            assert!(left >= ENDING && left * MARGIN >= ttl, "{ttl:?}: {left:?}");
            assert!(
                lease > asked + ttl / BEATS * 2,
                "{ttl:?}: a lost sign of life ends nothing"
            );
        }
        let lease = Keeper::new(Duration::from_millis(2_000), seconds(7), Incarnation(1)).lease();
        assert_eq!(lease, seconds(7) + Duration::from_millis(1_500));
    }

    #[test]
    fn a_node_looks_right_after_the_end_of_a_lease() {
        let mut keeper = Keeper::new(TTL, seconds(0), Incarnation(1));
        for (end, pause) in [
            (None, EVERY),
            (Some(seconds(9)), EVERY),
            (Some(EVERY - AFTER_END), EVERY),
            (Some(EVERY - AFTER_END * 2), EVERY - AFTER_END),
            (Some(Duration::ZERO), AFTER_END),
        ] {
            keeper.beaten(open(end));
            assert_eq!(keeper.pause(), pause, "{end:?}");
        }
        keeper.beaten(Err(&StoreError::Unknown));
        assert_eq!(keeper.pause(), EVERY, "what is known is too old");
    }

    #[test]
    fn i9_a_node_that_was_gone_drops_its_sessions_before_it_takes_others_over() {
        let mut keeper = Keeper::new(TTL, seconds(0), Incarnation(1));
        let mut placer = Placer::new(Incarnation(1));
        assert_eq!(placer.duty(keeper.standing()), Duty::Adopt);
        keeper.asks(seconds(30));
        assert_eq!(keeper.beaten(Err(&StoreError::NodeLost)), Beaten::Join);
        // It could not join: it is gone still, and has nothing new to drop.
        assert_eq!(
            keeper.joined(Err(&StoreError::Unknown)),
            Beaten::Missed { first: true }
        );
        assert_eq!(placer.duty(keeper.standing()), Duty::Adopt);
        assert_eq!(keeper.joined(Ok(Incarnation(2))), Beaten::Renewed(seconds(38)));
        assert_eq!(placer.duty(keeper.standing()), Duty::DropAll);
        placer.dropped(keeper.standing());
        assert_eq!(placer.duty(keeper.standing()), Duty::Adopt);
    }

    #[test]
    fn new_sessions_go_to_a_node_with_clearly_less_load() {
        let load = |sessions, calls| Load {
            sessions: Load::part(sessions, 2_000),
            calls: Load::part(calls, 64),
            memory: 700,
        };
        assert_eq!(load(0, 0).sum(), 700);
        assert_eq!((Load::part(5, 0), Load::part(u64::MAX, 1)), (5_000, u32::MAX));
        for (mine, least, elsewhere) in [
            (load(200, 0), load(0, 0), false),
            (load(202, 0), load(0, 0), true),
            (load(0, 0), load(2_000, 0), false),
            (load(0, 128), load(1_000, 0), true),
        ] {
            assert_eq!(
                better_elsewhere(mine.sum(), least.sum()),
                elsewhere,
                "{mine:?} {least:?}"
            );
        }
        assert!(!better_elsewhere(u32::MAX, u32::MAX));
    }

    #[test]
    fn a_node_that_drains_or_is_cordoned_takes_nothing_over_and_drains_once() {
        let mut placer = Placer::new(Incarnation(1));
        let placed = |placing| Standing {
            incarnation: Incarnation(1),
            placing,
        };
        assert_eq!(placer.duty(placed(Placing::Cordoned)), Duty::Rest);
        assert_eq!(placer.duty(placed(Placing::Draining)), Duty::Drain);
        placer.drains();
        assert_eq!(placer.duty(placed(Placing::Draining)), Duty::Rest);
    }
}
