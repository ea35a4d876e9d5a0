//! Loads: a claimed log is folded, and a loop continues from it.

use crate::disk::Disk;
use crate::fleet::unreachable;
use crate::hot::Hot;
use crate::messages::{Happening, Message};
use crate::node::{MAIL_MS, NodeEvent};
use crate::world::World;
use agentd_actor_kit::{LoopId, NotLoaded};
use agentd_protocol::{EVENT_VERSION, Event, EventBody, Fault, Principal, Seq, SessionId, SessionMoved};
use agentd_store::{Append, Claim, EncodedEvent, Outcome, StoreError};
use agentd_transcript::{Rewinds, Transcript};
use agentd_turn::{Agent, Violation, Witness};
use std::sync::Arc;

impl World {
    pub(crate) fn not_loaded(&mut self, session: SessionId, ticket: u64, error: StoreError) {
        self.say(|| format!("session {} cannot be loaded: {error}", session.short()));
        let refused = Err(NotLoaded::Refused(Fault::from(error)));
        self.mail(MAIL_MS, NodeEvent::Loaded(session, ticket, refused));
    }

    /// The log has been read: a new loop continues from it.
    pub(crate) fn folded(&mut self, session: SessionId, ticket: u64, claim: &Claim) {
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
        let mut agent = match Agent::fold(session, Arc::clone(&self.config), &events) {
            Ok(agent) => agent,
            Err(error) => return self.fail(Violation::of("fold", error.to_string())),
        };
        let mut witness = Witness::default();
        if let Err(violation) = events.iter().try_for_each(|event| witness.see(event)) {
            return self.fail(violation);
        }
        if claim.moved_to.is_some() {
            match self.note_move(&mut agent, &mut witness, claim) {
                Ok(true) => {}
                Ok(false) => return self.not_loaded(session, ticket, unreachable()),
                Err(violation) => return self.fail(violation),
            }
        }
        match conversation(&self.disk, session, claim.head) {
            Ok(transcript) => self.heat(ticket, agent, claim.epoch, transcript, witness),
            Err(error) => self.fail(Violation::of("I1", error.to_string())),
        }
    }

    pub(crate) fn heat(
        &mut self,
        ticket: u64,
        agent: Agent,
        epoch: u64,
        transcript: Transcript,
        witness: Witness,
    ) {
        self.last_loop += 1;
        let number = self.last_loop;
        let session = agent.durable().session;
        self.say(|| format!("loop {number} of {} with epoch {epoch}", session.short()));
        let mut hot = Hot::new(number, agent, epoch, transcript, witness);
        hot.core = hot.core.planted(self.disk.flaw.in_loop());
        self.here.loops.insert(number, hot);
        self.post(0, Happening::Loop(number, Message::Start));
        let after = self.dice.between(1, 3);
        self.mail(after, NodeEvent::Loaded(session, ticket, Ok(LoopId(number))));
    }

    /// The log of a session that another node had gets `session.moved` before its loop starts. False: it could not be
    /// written.
    fn note_move(
        &mut self,
        agent: &mut Agent,
        witness: &mut Witness,
        claim: &Claim,
    ) -> Result<bool, Violation> {
        let fold = |error: String| Violation::of("fold", error);
        let (session, epoch) = (agent.durable().session, claim.epoch);
        let mut stamp = self.dice.stamp(self.now);
        let event = Event {
            v: EVENT_VERSION,
            session,
            seq: claim.head + 1,
            at: stamp.at,
            by: Principal::agentd(),
            turn: None,
            body: EventBody::from(SessionMoved {
                node: self.here.number.to_string(),
                epoch,
                workdir: None,
            }),
        };
        let mut append = Append::new(session, epoch, claim.head, stamp.append());
        let line = EncodedEvent::encode(&event).map_err(|error| fold(error.to_string()))?;
        append.events.push(line);
        agent.apply(&event).map_err(|error| fold(error.to_string()))?;
        witness.see(&event)?;
        append.summary = Some(agent.summary(self.now));
        let outcome = self.append(append, false)?;
        self.say_here(|| format!("takes over session {}: {outcome:?}", session.short()));
        let noted = matches!(outcome, Outcome::Committed { .. });
        self.moved += u64::from(noted);
        Ok(noted)
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
