//! The node: which sessions are hot, what restarts together, and the ways in which loops and nodes end.

use crate::disk::Disk;
use crate::hot::Hot;
use crate::messages::{Happening, Message, Order};
use crate::models::Models;
use crate::options::Flaw;
use crate::world::World;
use agentd_protocol::{Fault, Seq, SessionId};
use agentd_session_loop::LOST;
use agentd_session_store::{FeedLimits, FeedState};
use agentd_store::{Claim, Row, StoreError};
use agentd_transcript::{Rewinds, Transcript};
use agentd_turn::{Agent, Command, Violation, Witness};
use std::collections::VecDeque;
use std::sync::Arc;

/// The delay before checking the session of a crashed loop.
const LOOK_MS: u64 = 1_000;
/// The longest time before a node is started again.
const RESTART_MS: u64 = 20_000;

/// A session's state in this node.
#[derive(Debug, Default)]
pub(crate) struct Slot {
    pub(crate) hot: Option<u64>,
    /// The number of commands sent to the loop.
    routed: u64,
    loading: bool,
    waiting: VecDeque<Box<Order>>,
}

impl World {
    /// Routes a command to its session's loop; a cold session is loaded first.
    pub(crate) fn route(&mut self, order: Box<Order>) {
        let session = order.session;
        if !self.alive {
            drop(self.done(&order));
            return self.take_answers();
        }
        if self.disk.deleted.contains(&session) {
            let fault = Fault::not_found("unknown_session", "no such session");
            self.done(&order).answer(Err(fault));
            return self.take_answers();
        }
        if self.draining == Some(self.era)
            && (self.slots.get(&session).is_none_or(|slot| slot.hot.is_none())
                || matches!(
                    order.command,
                    Command::Create { .. } | Command::Send(_) | Command::Resume { .. }
                ))
        {
            let fault = Fault::unavailable("draining", "the daemon is stopping");
            self.done(&order).answer(Err(fault));
            return self.take_answers();
        }
        let slot = self.slots.entry(session).or_default();
        let create = matches!(order.command, Command::Create { .. }) && !slot.loading;
        if let Some(number) = slot.hot {
            slot.routed += 1;
            return self.tell(number, 4, Message::Command(order));
        }
        slot.waiting.push_back(order);
        if create {
            let agent = Agent::new(session, Arc::clone(&self.config));
            self.heat(agent, 1, Transcript::new(), Witness::default());
        } else {
            self.load_soon(session, 3);
        }
    }

    pub(crate) fn routed(&self, hot: &Hot) -> u64 {
        let slot = self
            .slots
            .get(&hot.session)
            .filter(|slot| slot.hot == Some(hot.number));
        slot.map_or(hot.core.handled(), |slot| slot.routed)
    }

    pub(crate) fn load_soon(&mut self, session: SessionId, after: u64) {
        let era = self.era;
        self.post(after, Happening::Load { era, session });
    }

    /// Claims a session.
    pub(crate) fn load(&mut self, session: SessionId) {
        let slot = self.slots.entry(session).or_default();
        if slot.hot.is_some() || slot.loading {
            return;
        }
        slot.loading = true;
        let (after, era) = (self.queued(3), self.era);
        self.post(after, Happening::Claim { era, session });
    }

    /// The disk processes the claim, after everything queued before it.
    pub(crate) fn claim(&mut self, session: SessionId) {
        let slot = self.slots.entry(session).or_default();
        match self.disk.claim(session) {
            Ok(claim) => {
                let after = self.dice.between(1, 30);
                let era = self.era;
                self.post(after, Happening::Folded { era, session, claim });
            }
            Err(error) => {
                slot.loading = false;
                let waiting = std::mem::take(&mut slot.waiting);
                self.say(|| format!("session {} cannot be loaded: {error}", session.short()));
                let fault = Fault::from(error);
                for order in waiting {
                    self.done(&order).answer(Err(fault.clone()));
                }
                self.take_answers();
            }
        }
    }

    /// The log has been read: a new loop continues from it.
    pub(crate) fn folded(&mut self, session: SessionId, claim: &Claim) {
        if self.disk.deleted.contains(&session) {
            // The session was deleted while it was being loaded.
            return self.unloaded(session);
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
            Ok(transcript) => self.heat(agent, claim.epoch, transcript, witness),
            Err(error) => self.fail(Violation::of("I1", error.to_string())),
        }
    }

    /// The session could not be loaded: waiting commands get an error.
    fn unloaded(&mut self, session: SessionId) {
        let waiting = self.slots.remove(&session).map(|slot| slot.waiting);
        for order in waiting.into_iter().flatten() {
            let fault = Fault::from(StoreError::NotFound(session));
            self.done(&order).answer(Err(fault));
        }
        self.take_answers();
    }

    fn heat(&mut self, agent: Agent, epoch: u64, transcript: Transcript, witness: Witness) {
        self.last_loop += 1;
        let number = self.last_loop;
        let session = agent.durable().session;
        self.say(|| format!("loop {number} of {} with epoch {epoch}", session.short()));
        #[cfg_attr(
            not(debug_assertions),
            expect(unused_mut, reason = "mutants are for debug builds")
        )]
        let mut hot = Hot::new(number, agent, epoch, transcript, witness);
        #[cfg(debug_assertions)]
        if let Some(mutant) = self.disk.flaw.mutant() {
            hot.core.plant(mutant);
        }
        self.loops.insert(number, hot);
        let slot = self.slots.entry(session).or_default();
        (slot.hot, slot.loading) = (Some(number), false);
        let waiting = std::mem::take(&mut slot.waiting);
        slot.routed = waiting.len() as u64;
        self.post(0, Happening::Loop(number, Message::Start));
        for order in waiting {
            self.post(0, Happening::Loop(number, Message::Command(order)));
        }
    }

    /// A loop panics. Its workers die with it.
    pub(crate) fn crash(&mut self, mut hot: Hot) {
        self.say(|| format!("loop {} panics", hot.number));
        self.halt(&mut hot);
        self.gone(hot, true);
    }

    /// A loop stopped by itself.
    pub(crate) fn stopped(&mut self, mut hot: Hot, reason: &'static str) {
        self.say(|| format!("loop {} stops: {reason}", hot.number));
        if reason == "cold" {
            let wake = hot.core.wake_at(self.now);
            self.vacate(&hot);
            self.feed.cold(hot.session);
            if let Some(at) = wake {
                self.load_soon(hot.session, at.since_ms(self.now));
            }
            return;
        }
        self.halt(&mut hot);
        self.gone(hot, reason == LOST);
    }

    fn vacate(&mut self, hot: &Hot) -> bool {
        match self.slots.get_mut(&hot.session) {
            Some(slot) if slot.hot == Some(hot.number) => {
                slot.hot = None;
                true
            }
            Some(_) | None => false,
        }
    }

    /// Its last append may still be in flight: then only a claim is ordered after it, and the row may be read too early.
    fn gone(&mut self, hot: Hot, unknown: bool) {
        let (session, era) = (hot.session, self.era);
        let current = self.vacate(&hot);
        // Notifies callers that wait for an answer of this loop: there is none.
        drop(hot);
        self.take_answers();
        if current {
            self.feed.cold(session);
            match unknown && self.disk.flaw != Flaw::EarlyLook {
                true => self.load_soon(session, LOOK_MS),
                false => self.post(LOOK_MS, Happening::Look { era, session }),
            }
        }
    }

    /// Checks whether a session whose loop went down continues by itself.
    pub(crate) fn look(&mut self, session: SessionId) {
        if self.slots.get(&session).is_none_or(|slot| slot.hot.is_none())
            && let Some(row) = self.disk.row(session)
        {
            self.wake(&row);
        }
    }

    fn wake(&mut self, row: &Row) {
        let summary = &row.summary;
        if summary.resumable {
            self.load_soon(summary.session, 0);
        } else if let Some(at) = summary.wake_at {
            self.load_soon(summary.session, at.since_ms(self.now));
        }
    }

    /// Another owner claims a session; the previous one does not know yet.
    pub(crate) fn replace(&mut self, session: SessionId) {
        let Some(slot) = self.slots.get_mut(&session) else {
            return;
        };
        let Some(number) = slot.hot.take() else { return };
        self.say(|| format!("loop {number} is replaced"));
        let after = self.dice.between(1_000, 60_000);
        self.post(after, Happening::Replaced(number));
        self.load_soon(session, 0);
    }

    /// Removes a replaced owner that had nothing to append.
    pub(crate) fn replaced(&mut self, number: u64) {
        if let Some(hot) = self.loops.remove(&number) {
            self.crash(hot);
        }
    }

    /// Kills a session's loop, as every deletion does first.
    pub(crate) fn evict(&mut self, session: SessionId) {
        if let Some(number) = self.slots.get(&session).and_then(|slot| slot.hot) {
            self.replaced(number);
        }
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
        for hot in std::mem::take(&mut self.loops).into_values() {
            drop(hot);
        }
        let slots = std::mem::take(&mut self.slots);
        for order in slots.into_values().flat_map(|slot| slot.waiting) {
            drop(self.done(&order));
        }
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
        for row in self.disk.rows() {
            self.wake(&row);
        }
    }

    /// The node drains; work that does not finish in time is killed.
    pub(crate) fn drain_all(&mut self) {
        self.draining = Some(self.era);
        let numbers: Vec<u64> = self.loops.keys().copied().collect();
        for number in numbers {
            self.tell(number, 5, Message::Drain);
        }
        let era = self.era;
        self.post(30_000, Happening::Kill { era });
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
