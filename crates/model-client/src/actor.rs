//! The actor of one provider.

use crate::state::Admission;
use agentd_actor_kit::{CallOutcome, CallPermit, Clock, Done, ModelMsg};
use ractor::{Actor, ActorCell, ActorProcessingErr, ActorRef, SpawnErr};
use std::time::Duration;

/// What a model client is started with.
#[derive(Debug, Clone)]
pub struct ClientArgs {
    /// The provider's name.
    pub provider: String,
    /// How many calls may be in flight.
    pub permits: u32,
    /// Time.
    pub clock: Clock,
}

/// Admits the model calls of all sessions to one provider.
#[derive(Debug)]
pub struct ModelClient;

/// The state of a model client.
#[derive(Debug)]
pub struct ClientState {
    provider: String,
    clock: Clock,
    admission: Admission<Done<CallPermit>>,
}

impl ModelClient {
    /// Starts the client of one provider.
    ///
    /// # Errors
    /// When the supervisor is going down.
    pub async fn start(args: ClientArgs, supervisor: ActorCell) -> Result<ActorRef<ModelMsg>, SpawnErr> {
        Actor::spawn_linked(None, Self, args, supervisor)
            .await
            .map(|(actor, _)| actor)
    }
}

impl Actor for ModelClient {
    type Msg = ModelMsg;
    type State = ClientState;
    type Arguments = ClientArgs;

    async fn pre_start(
        &self,
        _: ActorRef<ModelMsg>,
        args: ClientArgs,
    ) -> Result<ClientState, ActorProcessingErr> {
        Ok(ClientState {
            provider: args.provider,
            clock: args.clock,
            admission: Admission::new(args.permits),
        })
    }

    async fn handle(
        &self,
        myself: ActorRef<ModelMsg>,
        message: ModelMsg,
        state: &mut ClientState,
    ) -> Result<(), ActorProcessingErr> {
        match message {
            ModelMsg::Acquire { session, done } => {
                // A full queue drops the place, which tells the asker.
                let _ = state.admission.line_up(session, done);
            }
            ModelMsg::Release { outcome, .. } => state.release(&myself, outcome),
            ModelMsg::Unpause { generation } => state.admission.unpause(generation),
            ModelMsg::Status { done } => done.answer(state.admission.status()),
        }
        state.admit(&myself);
        Ok(())
    }
}

impl ClientState {
    fn release(&mut self, myself: &ActorRef<ModelMsg>, outcome: CallOutcome) {
        let Some(pause) = self.admission.release(outcome, self.clock.now()) else {
            return;
        };
        tracing::info!(provider = %self.provider, ms = pause.after_ms, "the provider asks to wait: no new calls");
        let generation = pause.generation;
        // The timer dies with the actor; a new incarnation starts without a pause.
        drop(
            myself.send_after(Duration::from_millis(pause.after_ms), move || ModelMsg::Unpause {
                generation,
            }),
        );
    }

    /// Hands out what is free. An asker that is gone drops its permit, which comes back as a release.
    fn admit(&mut self, myself: &ActorRef<ModelMsg>) {
        while let Some((session, done)) = self.admission.admit() {
            done.answer(CallPermit::new(myself.clone(), session));
        }
    }
}
