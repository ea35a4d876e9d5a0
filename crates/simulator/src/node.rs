//! The node: the shipped [`Supervisor`], with simulated loads, loops and timers, and the ways in which loops and nodes end.

use crate::disk::Disk;
use crate::hot::Hot;
use crate::messages::{Happening, Message, Order};
use crate::models::Models;
use crate::options::{Knob, Options};
use crate::tree_messages::{TreeMessage, What};
use crate::world::World;
use agentd_actor_kit::{Done, Down, LoopId, NotLoaded};
use agentd_loop_supervisor::{Action, Bounds, Supervisor, wake_time};
use agentd_protocol::{Fault, Seq, SessionId, Timestamp, TurnError};
use agentd_session_loop::{LOST, spent_of};
use agentd_session_store::{FeedLimits, FeedState};
use agentd_store::{Claim, StoreError};
use agentd_transcript::{Rewinds, Transcript};
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
    fn supervise(&mut self, message: impl FnOnce(&mut Supervisor)) {
        if self.alive {
            message(self.supervisor.at(self.now));
            while let Some(action) = self.supervisor.next_action() {
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
            } => self.mail(MAIL_MS, NodeEvent::Folded(session, ticket, None)),
            Action::Load { session, ticket, .. } => {
                let after = self.queued(3);
                self.mail(after, NodeEvent::Claim(session, ticket));
            }
            Action::Send(who, routed) if self.loops.contains_key(&who.0) => {
                self.tell(who.0, 4, Message::Command(Box::new(routed)));
            }
            Action::Send(who, routed) => self.supervisor.undelivered(who, routed),
            Action::Stop(who) => self.stop(who),
            Action::Kill(who) => {
                if let Some(hot) = self.loops.remove(&who.0) {
                    self.ended(hot, Down::Killed("killed".to_owned()));
                }
            }
            Action::AskIdle => self.tell_loops(|| Message::Idle(None)),
            Action::DrainLoops => self.tell_loops(|| Message::Drain),
            Action::Drain(who) => self.tell(who.0, 5, Message::Drain),
            Action::Cold(session) => self.feed.cold(session),
            Action::Faulted(session, why) => self.tell_of_fault(session, &why),
            Action::Scan => {
                let after = self.dice.between(1, 30);
                self.mail(after, NodeEvent::Scan);
            }
            Action::Look(session) => self.mail(LOOK_MS, NodeEvent::Look(session)),
            Action::SetTick(at) => {
                self.tick += 1;
                if let Some(at) = at {
                    self.mail(at.since_ms(self.now), NodeEvent::Tick(self.tick));
                }
            }
            Action::SetDrainDeadline(after) => self.mail(after, NodeEvent::DrainDeadline),
        }
    }

    pub(crate) fn mail(&mut self, after: u64, event: NodeEvent) {
        let era = self.era;
        self.post(after, Happening::Node { era, event });
    }

    fn tell_loops(&mut self, message: impl Fn() -> Message) {
        let numbers: Vec<u64> = self.loops.keys().copied().collect();
        for number in numbers {
            self.tell(number, 5, message());
        }
    }

    pub(crate) fn node(&mut self, event: NodeEvent) {
        match event {
            NodeEvent::Claim(session, ticket) => match self.disk.claim(session) {
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
                let alive = |who: &LoopId| self.loops.contains_key(&who.0);
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
                let rows = self.disk.rows();
                let found = rows.iter().filter_map(|row| wake_time(row, self.now)).collect();
                self.supervise(|supervisor| supervisor.found(found));
            }
            NodeEvent::Tick(number) if number == self.tick => self.supervise(Supervisor::tick),
            NodeEvent::Tick(_) => {}
            NodeEvent::DrainDeadline => self.supervise(Supervisor::drain_deadline),
        }
    }

    fn not_loaded(&mut self, session: SessionId, ticket: u64, error: StoreError) {
        self.say(|| format!("session {} cannot be loaded: {error}", session.short()));
        let refused = Err(NotLoaded::Refused(Fault::from(error)));
        self.mail(MAIL_MS, NodeEvent::Loaded(session, ticket, refused));
    }

    /// The log has been read: a new loop continues from it.
    fn folded(&mut self, session: SessionId, ticket: u64, claim: &Claim) {
        if self.disk.deleted.contains(&session) {
            // The session was deleted while it was being loaded.
            return self.not_loaded(session, ticket, StoreError::NotFound(session));
        }
        let events = match self.disk.events(session, 0, claim.head) {
            Ok(events) if events.len() as u64 == claim.head => events,
            found => {
                let found = found.map(|events| events.len());
                let what = format!("the log has {} events, {found:?} are read", claim.head);
                return self.fail(Violation::of("I1", what));
            }
        };
        let agent = match Agent::fold(session, Arc::clone(&self.config), &events) {
            Ok(agent) => agent,
            Err(error) => return self.fail(Violation::of("fold", error.to_string())),
        };
        let mut witness = Witness::default();
        if let Err(violation) = events.iter().try_for_each(|event| witness.see(event)) {
            return self.fail(violation);
        }
        match conversation(&self.disk, session, claim.head) {
            Ok(transcript) => self.heat(ticket, agent, claim.epoch, transcript, witness),
            Err(error) => self.fail(Violation::of("I1", error.to_string())),
        }
    }

    fn heat(&mut self, ticket: u64, agent: Agent, epoch: u64, transcript: Transcript, witness: Witness) {
        self.last_loop += 1;
        let number = self.last_loop;
        let session = agent.durable().session;
        self.say(|| format!("loop {number} of {} with epoch {epoch}", session.short()));
        let mut hot = Hot::new(number, agent, epoch, transcript, witness);
        hot.core = hot.core.planted(self.disk.flaw.in_loop());
        self.loops.insert(number, hot);
        self.post(0, Happening::Loop(number, Message::Start));
        let after = self.dice.between(1, 3);
        self.mail(after, NodeEvent::Loaded(session, ticket, Ok(LoopId(number))));
    }

    /// Stops an idle loop. I1: no command is lost with it.
    fn stop(&mut self, who: LoopId) {
        if self.has_mail(who.0) {
            let what = "a session goes cold, and a command is in its mailbox";
            self.fail(Violation::of("I1", what));
        }
        if let Some(mut hot) = self.loops.remove(&who.0) {
            self.say(|| format!("loop {} stops: cold", hot.number));
            self.halt(&mut hot);
        }
    }

    /// A loop panics, is killed, or stops by itself. Its workers die with it.
    pub(crate) fn ended(&mut self, mut hot: Hot, why: Down) {
        self.say(|| format!("loop {} is down: {why}", hot.number));
        // A loop that ends before the supervisor knows it has crashed, too.
        let unknown = self.supervisor.hot(hot.session) != Some(LoopId(hot.number));
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
        let Some(who) = self.supervisor.hot(session) else {
            return;
        };
        self.say(|| format!("loop {} is replaced", who.0));
        let after = self.dice.between(1_000, 60_000);
        self.post(after, Happening::Replaced(who.0));
        self.supervise(|supervisor| supervisor.down(who, Down::Killed(LOST.to_owned())));
    }

    /// Removes a replaced owner that had nothing to append.
    pub(crate) fn replaced(&mut self, number: u64) {
        if let Some(hot) = self.loops.remove(&number) {
            self.ended(hot, Down::Killed("replaced".to_owned()));
        }
    }

    /// Kills a session's loop, as every deletion does first.
    pub(crate) fn evict(&mut self, session: SessionId) {
        self.supervise(|supervisor| supervisor.evict(session, Done::nobody()));
    }

    /// The node crashes. Appends in flight have either arrived or been lost.
    pub(crate) fn die(&mut self) {
        if !self.alive {
            return;
        }
        self.say(|| "the node dies".to_owned());
        self.alive = false;
        for (era, append) in self.on_their_way() {
            if era == self.era && self.dice.percent(50) {
                let stored = self.disk.append(append, false);
                if let Err(violation) = stored {
                    self.fail(violation);
                }
            }
        }
        self.era += 1;
        self.loops.clear();
        self.supervisor = supervisor(&self.options);
        self.workers.clear();
        self.take_answers();
        self.tree_messages.clear();
        self.models = Models::new(&self.options, self.now);
        self.feed = FeedState::new(0, FeedLimits::default());
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
        self.say(|| "the node starts".to_owned());
        self.alive = true;
        self.models = Models::new(&self.options, self.now);
        self.supervise(|_| {});
    }

    /// The node drains; work that does not finish in time is killed.
    pub(crate) fn drain_all(&mut self) {
        self.supervise(|supervisor| supervisor.drain(DRAIN_MS, Done::nobody()));
        let era = self.era;
        self.post(DRAIN_MS + MAIL_MS, Happening::Kill { era });
    }
}

/// The conversation up to a seq of a log.
pub(crate) fn conversation(disk: &Disk, session: SessionId, upto: Seq) -> Result<Transcript, StoreError> {
    let events = disk.events(session, 0, upto)?;
    let mut rewinds = Rewinds::default();
    events.iter().for_each(|event| rewinds.note(event));
    let mut transcript = Transcript::new();
    for (number, (after, upto)) in rewinds.parts(upto).into_iter().enumerate() {
        if number > 0 {
            transcript.went_back();
        }
        let part = events
            .iter()
            .filter(|event| event.seq > after && event.seq <= upto);
        part.for_each(|event| transcript.apply(event));
    }
    Ok(transcript)
}
