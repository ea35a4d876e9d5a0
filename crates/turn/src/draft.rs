//! The step that is being decided: each fact is applied as soon as it is recorded, so later decisions of the same step
//! see it.

use crate::agent::Agent;
use crate::durable::fold_error::FoldError;
use crate::durable::{Durable, Turn};
use crate::effect::{Effect, Reply, Step};
use crate::input::Scene;
use crate::volatile::Volatile;
use agentd_protocol::{EVENT_VERSION, Event, EventBody, Fault, Principal, Stamp, Timestamp, TurnId};

/// A step under construction.
pub(crate) struct Draft<'a, 's> {
    agent: &'a mut Agent,
    pub(crate) scene: Scene<'s>,
    by: Principal,
    step: Step,
    broken: Option<FoldError>,
}

impl<'a, 's> Draft<'a, 's> {
    pub(crate) fn new(agent: &'a mut Agent, scene: Scene<'s>) -> Self {
        Self {
            agent,
            scene,
            by: Principal::agentd(),
            step: Step::default(),
            broken: None,
        }
    }

    pub(crate) fn durable(&self) -> &Durable {
        &self.agent.durable
    }

    pub(crate) fn volatile(&mut self) -> &mut Volatile {
        &mut self.agent.volatile
    }

    pub(crate) fn seen(&self) -> &Volatile {
        &self.agent.volatile
    }

    pub(crate) fn config(&self) -> &crate::Config {
        &self.agent.config
    }

    pub(crate) fn turn(&self) -> Option<&Turn> {
        self.agent.durable.turn.as_ref()
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.scene.stamp.at
    }

    pub(crate) fn stamp(&mut self) -> &mut Stamp {
        &mut self.scene.stamp
    }

    /// Nothing new may start: a person has paused the session, or the daemon is draining.
    pub(crate) fn held(&self) -> bool {
        self.agent.volatile.draining || self.agent.durable.paused.is_some()
    }

    /// From here on, [`Self::emit_by_caller`] records facts in the name of this principal.
    pub(crate) fn called_by(&mut self, by: Principal) {
        self.by = by;
    }

    pub(crate) fn caller(&self) -> Principal {
        self.by.clone()
    }

    /// Records a fact caused by agentd.
    pub(crate) fn emit(&mut self, body: impl Into<EventBody>) {
        let turn = self.turn().map(|turn| turn.id);
        self.write(Principal::agentd(), turn, body.into());
    }

    /// Records a fact caused by the command's principal.
    pub(crate) fn emit_by_caller(&mut self, body: impl Into<EventBody>) {
        let turn = self.turn().map(|turn| turn.id);
        self.write(self.caller(), turn, body.into());
    }

    /// Records the beginning of a turn.
    pub(crate) fn emit_in(&mut self, turn: TurnId, body: impl Into<EventBody>) {
        self.write(Principal::agentd(), Some(turn), body.into());
    }

    fn write(&mut self, by: Principal, turn: Option<TurnId>, body: EventBody) {
        let durable = &mut self.agent.durable;
        let event = Event {
            v: EVENT_VERSION,
            session: durable.session,
            seq: durable.head.saturating_add(1),
            at: self.scene.stamp.at,
            by,
            turn,
            body,
        };
        match durable.apply(&event) {
            Ok(()) => {
                self.scene.grow(&event.body);
                self.step.events.push(event);
            }
            Err(error) => {
                debug_assert!(false, "decided what cannot be: {error}");
                self.broken.get_or_insert(error);
            }
        }
    }

    /// The facts recorded in this step so far.
    pub(crate) fn happened(&self) -> &[Event] {
        &self.step.events
    }

    pub(crate) fn effect(&mut self, effect: Effect) {
        self.step.effects.push(effect);
    }

    pub(crate) fn reply(&mut self, reply: Result<Reply, Fault>) {
        self.step.reply = Some(reply);
    }

    /// Completes the step. Replies that report the head get the head after all events of the step.
    pub(crate) fn finish(self) -> Step {
        let mut step = self.step;
        let head = self.agent.durable.head;
        if let Some(Ok(Reply::Created { seq, .. } | Reply::Done { seq })) = &mut step.reply {
            *seq = head;
        }
        if let (Some(error), Some(reply)) = (self.broken, &mut step.reply) {
            *reply = Err(Fault::internal("impossible_fact", error.to_string()));
        }
        step
    }
}
