//! Adds decided events to all folded state and to the outbox.

use super::outbox::Batch;
use crate::error::LoopError;
use crate::machine::{Machine, Mutant};
use crate::work::Task;
use agentd_actor_kit::Earlier;
use agentd_protocol::{Event, EventBody, Timestamp};
use agentd_store::{Blob, EncodedEvent, IdempotencyKey};
use agentd_tools::FilesSeen;
use agentd_turn::{Answer, Input, QuestionId, Reworked};
use std::sync::Arc;

impl Machine {
    /// Keeps the events of one decision. Each is encoded once.
    pub(super) fn keep(
        &mut self,
        events: &[Event],
        mut earlier: Option<Box<Earlier>>,
        (blobs, key, revocable, now): (Vec<Blob>, Option<IdempotencyKey>, bool, Timestamp),
    ) -> Result<(), LoopError> {
        let mut encoded = Vec::with_capacity(events.len());
        for event in events {
            encoded.push(EncodedEvent::encode(event).map_err(LoopError::Encode)?);
            self.converse(event, &mut earlier);
            if FilesSeen::learns_from(&event.body) {
                Arc::make_mut(&mut self.seen).learn(&event.body);
            }
        }
        let mut summary = self.agent.summary(now);
        summary.resumable &= !self.has(Mutant::Forgotten);
        self.outbox.stage(Batch {
            events: encoded,
            blobs,
            key,
            summary,
            revocable,
        });
        Ok(())
    }

    /// Adds an event to the conversation. A rewind uses the earlier conversation prepared for it.
    fn converse(&mut self, event: &Event, earlier: &mut Option<Box<Earlier>>) {
        if let EventBody::SessionRewound(_) = &event.body
            && let Some(earlier) = earlier.take()
        {
            self.transcript.replace(earlier.transcript);
            Arc::make_mut(&mut self.seen).knows_again(earlier.seen);
            return;
        }
        self.transcript.apply(event);
    }

    /// The files, and the conversation, were put back, or that failed. Ignores work that is no longer open.
    pub fn reworked(
        &mut self,
        id: QuestionId,
        reworked: Reworked,
        blobs: Vec<Blob>,
        earlier: Option<Box<Earlier>>,
    ) {
        if self.agent.awaits(id) {
            let answer = Answer::Rework(reworked);
            self.push(Task {
                earlier,
                ..Task::with_blobs(Input::Answered { id, answer }, blobs)
            });
        }
    }
}
