//! The membership of a node, as the shipped [`Keeper`] and [`Placer`] decide: signs of life, the lease, takeovers, drains.

use crate::fleet::AGAIN_MS;
use crate::here::Member;
use crate::messages::Happening;
use crate::node::NodeEvent;
use crate::nodes::TTL_MS;
use crate::world::World;
use agentd_protocol::{Placing, SessionId, Timestamp};
use agentd_store::{Beat, Beaten, Duty, HAND_OVER, Incarnation, Keeper, Placer, Standing, StoreError};
use agentd_turn::Violation;
use std::time::Duration;

/// How long a node waits for the store.
const PATIENCE_MS: u64 = 3_000;
/// The first pause between two searches for sessions that continue by themselves; it doubles, up to 32 times this.
const SCAN_MS: u64 = 2_000;

/// A question to the store about the membership.
#[derive(Debug)]
pub(crate) enum Question {
    Beat,
    Join,
    Adopt,
    HandOver(Vec<SessionId>),
}

/// The answer to it.
#[derive(Debug)]
pub(crate) enum Told {
    Beaten(Result<Beat, StoreError>),
    Joined(Result<u64, StoreError>),
    Adopted(Vec<(SessionId, Timestamp)>),
    HandedOver,
}

impl Question {
    const fn unanswered(&self) -> Told {
        match self {
            Self::Beat => Told::Beaten(Err(StoreError::Unknown)),
            Self::Join => Told::Joined(Err(StoreError::Unknown)),
            Self::Adopt => Told::Adopted(Vec::new()),
            Self::HandOver(_) => Told::HandedOver,
        }
    }
}

impl World {
    /// The clock that never jumps.
    const fn steady(&self) -> Duration {
        Duration::from_millis(self.clock)
    }

    /// A node starts: it is a new incarnation. False if the store does not answer.
    pub(crate) fn join(&mut self) -> bool {
        if self.is_cut() {
            return false;
        }
        let me = self.disk.nodes.join(self.here.number, self.clock);
        let (ttl, incarnation) = (Duration::from_millis(TTL_MS), Incarnation(me));
        let mutant = self.options.flaw.in_member();
        let keeper = Keeper::new(ttl, self.steady(), incarnation).planted(mutant);
        self.say_here(|| format!("joins as {me}"));
        let pause = millis(keeper.pause());
        self.here.member = Some(Member {
            me,
            lease: keeper.lease(),
            keeper,
            placer: Placer::new(incarnation).planted(mutant),
            earlier_loops: 0,
            joined_at: self.clock,
            scans: 0,
            hands_over: false,
        });
        self.mail(pause, NodeEvent::Beat);
        true
    }

    pub(crate) fn say_here(&mut self, line: impl FnOnce() -> String) {
        let number = self.here.number;
        self.say(|| format!("node {number} {}", line()));
    }

    fn ask_store(&mut self, question: Question) {
        let (era, after) = (self.here.era, self.dice.between(1, 20));
        self.post(after, Happening::Asked { era, question });
    }

    /// A question reaches the store, or not; its answer may be lost.
    pub(crate) fn asked(&mut self, question: Question) {
        let Some(me) = self.here.me() else { return };
        let cut = self.is_cut();
        let nothing = question.unanswered();
        let carried_out = !cut || self.dice.percent(20);
        let told = match question {
            _ if !carried_out => question.unanswered(),
            Question::Beat => Told::Beaten(self.disk.nodes.beat(me, self.clock)),
            Question::Join => Told::Joined(Ok(self.disk.nodes.join(self.here.number, self.clock))),
            Question::Adopt => match self.disk.adopt(me, self.clock) {
                Ok(found) => Told::Adopted(found),
                Err(violation) => return self.fail(violation),
            },
            Question::HandOver(keep) => {
                self.disk.nodes.hand_over(me, &keep);
                Told::HandedOver
            }
        };
        if cut {
            return self.mail(PATIENCE_MS, NodeEvent::Told(nothing));
        }
        let after = self.dice.between(1, 20);
        self.mail(after, NodeEvent::Told(told));
    }

    pub(crate) fn told(&mut self, told: Told) {
        let Some(member) = &mut self.here.member else {
            return;
        };
        let came = match told {
            Told::Beaten(answer) => member.keeper.beaten(answer.as_ref().copied()),
            Told::Joined(answer) => {
                if let Ok(me) = &answer {
                    member.me = *me;
                    (member.earlier_loops, member.joined_at) = (self.last_loop, self.clock);
                }
                let answer = answer.map(Incarnation);
                member.keeper.joined(answer.as_ref().copied())
            }
            Told::Adopted(found) => return self.adopted(found),
            Told::HandedOver => return,
        };
        let pause = millis(member.keeper.pause()).max(self.disk.nodes.calm_ms / 2);
        match came {
            Beaten::Renewed(until) => {
                member.lease = until.saturating_add(Duration::from_millis(self.disk.nodes.calm_ms));
                let after = self.dice.between(1, 5);
                self.mail(after, NodeEvent::Duty);
            }
            Beaten::Join => {
                self.say_here(|| "was gone to the others".to_owned());
                return self.ask_store(Question::Join);
            }
            Beaten::Missed { .. } => {}
        }
        self.mail(pause, NodeEvent::Beat);
    }

    pub(crate) fn beat(&mut self) {
        let now = self.steady();
        if let Some(member) = &mut self.here.member {
            member.keeper.asks(now);
            self.ask_store(Question::Beat);
        }
    }

    fn adopted(&mut self, found: Vec<(SessionId, Timestamp)>) {
        if found.is_empty() {
            return;
        }
        self.say_here(|| format!("takes over {} sessions", found.len()));
        self.supervise(|supervisor| supervisor.found(found));
    }

    /// Does what follows from the last sign of life.
    pub(crate) fn duty(&mut self) {
        let Some(member) = &self.here.member else { return };
        let standing = member.keeper.standing();
        let mut duty = member.placer.duty(standing);
        if duty == Duty::DropAll {
            duty = self.drop_all(standing);
        } else if self.clock > member.joined_at + AGAIN_MS
            && self
                .here
                .loops
                .keys()
                .any(|number| *number <= member.earlier_loops)
        {
            let what = "a node joined again, and has sessions of its earlier incarnation";
            return self.fail(Violation::of("I9", what));
        }
        match duty {
            Duty::Adopt => self.ask_store(Question::Adopt),
            Duty::Drain => {
                if let Some(member) = &mut self.here.member {
                    member.placer.drains();
                }
                self.drain_all();
            }
            Duty::DropAll | Duty::Rest => {}
        }
    }

    fn drop_all(&mut self, standing: Standing) -> Duty {
        for session in self.here.supervisor.awake() {
            self.evict(session);
        }
        let Some(member) = &mut self.here.member else {
            return Duty::Rest;
        };
        member.placer.dropped(standing);
        member.placer.duty(standing)
    }

    /// Gives up the cold sessions, as often as a draining node does.
    pub(crate) fn hand_over(&mut self) {
        if self.here.member.as_ref().is_some_and(|member| member.hands_over) {
            let keep = self.here.supervisor.awake();
            self.ask_store(Question::HandOver(keep));
            self.mail(millis(HAND_OVER), NodeEvent::HandOver);
        }
    }

    /// A node that drains tells the store, and gives up its cold sessions.
    pub(crate) fn starts_to_drain(&mut self) {
        let (number, cut) = (self.here.number, self.is_cut());
        if let Some(member) = &mut self.here.member {
            if !cut {
                self.disk.nodes.place(number, Placing::Draining);
            }
            if !std::mem::replace(&mut member.hands_over, true) {
                self.mail(0, NodeEvent::HandOver);
            }
        }
    }

    /// A node that has drained ends its membership.
    pub(crate) fn leave(&mut self) {
        if let Some(member) = self.here.member.take()
            && member.hands_over
            && !self.is_cut()
        {
            self.disk.nodes.leave(member.me);
        }
    }

    /// I9: whether effects may start: the lease has not ended. By then no other node has taken the session.
    pub(crate) fn may_start(&mut self, session: SessionId, epoch: u64) -> bool {
        let Some(member) = &self.here.member else {
            return true;
        };
        if self.steady() >= member.lease {
            self.say_here(|| "starts no effects: its lease has ended".to_owned());
            return false;
        }
        if epoch != self.disk.epoch(session) {
            let what = format!("session {} has another owner, and effects start", session.short());
            self.fail(Violation::of("I9", what));
        }
        true
    }

    /// Searches for sessions that continue by themselves again, as the supervisor's task does.
    pub(crate) fn scan_again(&mut self) {
        if let Some(member) = &mut self.here.member {
            let pause = SCAN_MS << member.scans.min(5);
            member.scans += 1;
            self.mail(pause, NodeEvent::Scan);
        }
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
