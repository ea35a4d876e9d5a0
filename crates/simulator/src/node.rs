//! The node: the shipped [`Supervisor`], with simulated loads, loops and timers, and the ways in which loops and nodes end.

use crate::fleet::{READ_AGAIN_MS, unreachable};
use crate::here::Node;
use crate::hot::Hot;
use crate::membership::Told;
use crate::messages::{Happening, Message, Order};
use crate::models::Models;
use crate::options::{Knob, Options};
use crate::tree_messages::{TreeMessage, What};
use crate::world::World;
use agentd_actor_kit::{Done, Down, LoopId, NotLoaded};
use agentd_loop_supervisor::{Action, Bounds, Supervisor, wake_time};
use agentd_protocol::{Fault, SessionId, Timestamp, TurnError};
use agentd_session_loop::{LOST, spent_of};
use agentd_store::Claim;
use agentd_transcript::Transcript;
use agentd_turn::{Agent, Ended, Violation, Witness};
use std::sync::Arc;

/// How long a message to the supervisor takes: all take the same time, so none overtakes another.
pub(crate) const MAIL_MS: u64 = 2;
/// The delay before checking the session of a loop that went down.
const LOOK_MS: u64 = 1_000;
/// How long a drain may take.
const DRAIN_MS: u64 = 30_000;
/// The longest time before a node is started again.
const RESTART_MS: u64 = 20_000;

/// Something that reaches the supervisor, or its tasks.
#[derive(Debug)]
pub(crate) enum NodeEvent {
    /// The disk processes the claim of a load.
    Claim(SessionId, u64),
    /// The log of a load has been read; a new session has none.
    Folded(SessionId, u64, Option<Claim>),
    /// A load ended.
    Loaded(SessionId, u64, Result<LoopId, NotLoaded>),
    /// A loop is idle.
    Idle {
        session: SessionId,
        who: LoopId,
        handled: u64,
        wake_at: Option<Timestamp>,
    },
    /// A loop went down.
    Down(LoopId, Down),
    /// A check of a session whose loop went down.
    Look(SessionId),
    /// A search for sessions that continue by themselves.
    Scan,
    /// The timer for wake-ups fires, if it is still this one.
    Tick(u64),
    DrainDeadline,
    /// The time for a sign of life,
    Beat,
    /// the answer of the store to a question about the membership,
    Told(Told),
    /// what follows from it for the sessions,
    Duty,
    /// and the time to give some of them up.
    HandOver,
}

/// The supervisor of a node, with the bug to be found.
pub(crate) fn supervisor(options: &Options) -> Supervisor {
    let bounds = Bounds {
        hot: options.get(Knob::Hot) as usize,
        ..Bounds::default()
    };
    Supervisor::new(bounds).planted(options.flaw.in_supervisor())
}

impl World {
    /// Routes a command to its session's loop.
    pub(crate) fn route(&mut self, order: &Order) {
        if self.disk.deleted.contains(&order.session) {
            let fault = Fault::not_found("unknown_session", "no such session");
            self.done(order).answer(Err(fault));
            return self.take_answers();
        }
        let routed = self.routed(order);
        self.supervise(|supervisor| supervisor.route(routed));
    }

    /// Gives the supervisor a message, and carries out what it decides. If the node is down, the message is lost.
    pub(crate) fn supervise(&mut self, message: impl FnOnce(&mut Supervisor)) {
        if self.here.alive {
            message(self.here.supervisor.at(self.now));
            while let Some(action) = self.here.supervisor.next_action() {
                self.act_on(action);
            }
        } else {
            drop(message);
        }
        self.take_answers();
    }

    fn act_on(&mut self, action: Action) {
        match action {
            Action::Load {
                session,
                ticket,
                created: Some(_),
                ..
            } => self.mail(MAIL_MS, NodeEvent::Folded(session, ticket, None)),
            Action::Load { session, ticket, .. } => {
                let after = self.queued(3);
                self.mail(after, NodeEvent::Claim(session, ticket));
            }
            Action::Send(who, routed) if self.here.loops.contains_key(&who.0) => {
                self.tell(who.0, 4, Message::Command(Box::new(routed)));
            }
            Action::Send(who, routed) => self.here.supervisor.undelivered(who, routed),
            Action::Stop(who) => self.stop(who),
            Action::Kill(who) => {
                if let Some(hot) = self.here.loops.remove(&who.0) {
                    self.ended(hot, Down::Killed("killed".to_owned()));
                }
            }
            Action::AskIdle => self.tell_loops(|| Message::Idle(None)),
            Action::DrainLoops => self.tell_loops(|| Message::Drain),
            Action::Drain(who) => self.tell(who.0, 5, Message::Drain),
            Action::Cold(session) => self.here.feed.cold(session),
            Action::Faulted(session, why) => self.tell_of_fault(session, &why),
            Action::Scan => {
                let after = self.dice.between(1, 30);
                self.mail(after, NodeEvent::Scan);
            }
            Action::Look(session) => self.mail(LOOK_MS, NodeEvent::Look(session)),
            Action::SetTick(at) => {
                self.here.tick += 1;
                if let Some(at) = at {
                    self.mail(at.since_ms(self.now), NodeEvent::Tick(self.here.tick));
                }
            }
            Action::SetDrainDeadline(after) => self.mail(after, NodeEvent::DrainDeadline),
        }
    }

    pub(crate) fn mail(&mut self, after: u64, event: NodeEvent) {
        let era = self.here.era;
        self.post(after, Happening::Node { era, event });
    }

    fn tell_loops(&mut self, message: impl Fn() -> Message) {
        let numbers: Vec<u64> = self.here.loops.keys().copied().collect();
        for number in numbers {
            self.tell(number, 5, message());
        }
    }

    pub(crate) fn node(&mut self, event: NodeEvent) {
        match event {
            NodeEvent::Claim(session, ticket) | NodeEvent::Folded(session, ticket, Some(_))
                if self.is_cut() =>
            {
                self.not_loaded(session, ticket, unreachable());
            }
            NodeEvent::Look(_) | NodeEvent::Scan if self.is_cut() => self.mail(READ_AGAIN_MS, event),
            NodeEvent::Claim(session, ticket) => match self.disk.claim(session, self.here.me()) {
                Ok(claim) => {
                    let after = self.dice.between(1, 30);
                    self.mail(after, NodeEvent::Folded(session, ticket, Some(claim)));
                }
                Err(error) => self.not_loaded(session, ticket, error),
            },
            NodeEvent::Folded(session, ticket, None) => {
                let agent = Agent::new(session, Arc::clone(&self.config));
                self.heat(ticket, agent, 1, Transcript::new(), Witness::default());
            }
            NodeEvent::Folded(session, ticket, Some(claim)) => self.folded(session, ticket, &claim),
            NodeEvent::Loaded(session, ticket, loaded) => {
                let alive = |who: &LoopId| self.here.loops.contains_key(&who.0);
                let loaded = loaded.and_then(|who| Some(who).filter(alive).ok_or(NotLoaded::Died));
                self.supervise(|supervisor| supervisor.loaded(session, ticket, loaded));
            }
            NodeEvent::Idle {
                session,
                who,
                handled,
                wake_at,
            } => self.supervise(|supervisor| supervisor.idle(session, who, handled, wake_at)),
            NodeEvent::Down(who, why) => self.supervise(|supervisor| supervisor.down(who, why)),
            NodeEvent::Look(session) => {
                let row = self.disk.row(session);
                let found = row.and_then(|row| wake_time(&row, self.now));
                self.supervise(|supervisor| supervisor.found(found.into_iter().collect()));
            }
            NodeEvent::Scan => {
                let mut rows = self.disk.rows();
                if let Some(me) = self.here.me() {
                    rows.retain(|row| self.disk.nodes.is_mine(row.summary.session, me));
                }
                let found = rows.iter().filter_map(|row| wake_time(row, self.now)).collect();
                self.supervise(|supervisor| supervisor.found(found));
                self.scan_again();
            }
            NodeEvent::Tick(number) if number == self.here.tick => self.supervise(Supervisor::tick),
            NodeEvent::Tick(_) => {}
            NodeEvent::DrainDeadline => self.supervise(Supervisor::drain_deadline),
            NodeEvent::Beat => self.beat(),
            NodeEvent::Told(told) => self.told(told),
            NodeEvent::Duty => self.duty(),
            NodeEvent::HandOver => self.hand_over(),
        }
    }

    /// Stops an idle loop. I1: no command is lost with it.
    fn stop(&mut self, who: LoopId) {
        if self.has_mail(who.0) {
            let what = "a session goes cold, and a command is in its mailbox";
            self.fail(Violation::of("I1", what));
        }
        if let Some(mut hot) = self.here.loops.remove(&who.0) {
            self.say(|| format!("loop {} stops: cold", hot.number));
            self.halt(&mut hot);
        }
    }

    /// A loop panics, is killed, or stops by itself. Its workers die with it.
    pub(crate) fn ended(&mut self, mut hot: Hot, why: Down) {
        self.say(|| format!("loop {} is down: {why}", hot.number));
        // A loop that ends before the supervisor knows it has crashed, too.
        let unknown = self.here.supervisor.hot(hot.session) != Some(LoopId(hot.number));
        if unknown || matches!(why, Down::Failed(_)) {
            self.book.crashed(hot.session, self.now);
        }
        self.halt(&mut hot);
        self.mail(MAIL_MS, NodeEvent::Down(LoopId(hot.number), why));
        // Notifies callers that wait for an answer of this loop: there is none.
        drop(hot);
        self.take_answers();
    }

    /// A sub-agent is faulted: its parent is notified.
    fn tell_of_fault(&mut self, child: SessionId, why: &str) {
        self.say(|| format!("session {} is faulted: {why}", child.short()));
        if let Err(violation) = self.book.is_faulted(child, self.now) {
            self.fail(violation);
        }
        let Some(summary) = self.disk.row(child).map(|row| row.summary) else {
            return;
        };
        let Some(parent) = summary.parent else { return };
        let ended = Ended {
            reason: None,
            text: String::new(),
            error: Some(TurnError {
                class: "faulted".to_owned(),
                message: why.to_owned(),
            }),
            spent: spent_of(&summary),
        };
        let what = What::Report {
            parent,
            child,
            ended: Box::new(ended),
            tells: None,
        };
        self.send_out(TreeMessage::new(0, child, what));
    }

    /// Another owner claims a session; the previous one does not know yet, and its supervisor forgets it.
    pub(crate) fn replace(&mut self, session: SessionId) {
        let Some(who) = self.here.supervisor.hot(session) else {
            return;
        };
        self.say(|| format!("loop {} is replaced", who.0));
        let after = self.dice.between(1_000, 60_000);
        self.post(after, Happening::Replaced(who.0));
        self.supervise(|supervisor| supervisor.down(who, Down::Killed(LOST.to_owned())));
    }

    /// Removes a replaced owner that had nothing to append.
    pub(crate) fn replaced(&mut self, number: u64) {
        if let Some(hot) = self.here.loops.remove(&number) {
            self.ended(hot, Down::Killed("replaced".to_owned()));
        }
    }

    /// Kills a session's loop, as every deletion does first.
    pub(crate) fn evict(&mut self, session: SessionId) {
        self.supervise(|supervisor| supervisor.evict(session, Done::nobody()));
    }

    /// The node crashes. Appends in flight have either arrived or been lost.
    pub(crate) fn die(&mut self) {
        if !self.here.alive {
            return;
        }
        self.say(|| "the node dies".to_owned());
        self.here.alive = false;
        for (era, append) in self.on_their_way() {
            if era == self.here.era && self.dice.percent(50) {
                let stored = self.append(append, false);
                if let Err(violation) = stored {
                    self.fail(violation);
                }
            }
        }
        self.leave();
        for held in self.here.frozen.take().into_iter().flatten() {
            match held {
                Happening::Send(order) => drop(self.done(&order)),
                viewer @ Happening::Viewer(_) => self.post(0, viewer),
                _ => {}
            }
        }
        let fresh = Node::new(self.here.number, &self.options, self.now);
        self.here = Node {
            alive: false,
            era: self.here.era + 1,
            // A timer of the earlier supervisor must not fire.
            tick: self.here.tick,
            cut_until: self.here.cut_until,
            ahead_ms: self.here.ahead_ms,
            ..fresh
        };
        self.take_answers();
        let sessions: Vec<SessionId> = self.disk.sessions().collect();
        for session in sessions {
            if let Err(violation) = self.disk.has(session, self.disk.head(session)) {
                self.fail(violation);
            }
        }
        let after = self.dice.between(1, RESTART_MS);
        self.post(after, Happening::Start);
    }

    /// The node starts: sessions that continue by themselves are woken.
    pub(crate) fn begin(&mut self) {
        if self.is_fleet() && !self.join() {
            return self.post(RESTART_MS, Happening::Start);
        }
        self.say(|| "the node starts".to_owned());
        self.here.alive = true;
        self.here.models = Models::new(&self.options, self.now);
        self.supervise(|_| {});
    }

    /// The node drains; work that does not finish in time is killed.
    pub(crate) fn drain_all(&mut self) {
        self.starts_to_drain();
        self.supervise(|supervisor| supervisor.drain(DRAIN_MS, Done::nobody()));
        let era = self.here.era;
        self.post(DRAIN_MS + MAIL_MS, Happening::Kill { era });
    }
}
