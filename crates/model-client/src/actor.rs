//! The model client: the actor that admits calls to one provider.

use crate::counts::Counts;
use crate::setup::{Notice, Setup, Step};
use crate::state::Admission;
use agentd_actor_kit::{Admitted, Alarm, CallOutcome, CallPermit, Clock, Done, Grant, ModelMsg, Outlook};
use agentd_protocol::Timestamp;
use agentd_provider::Rates;
use agentd_settings::{RatesConfig, SchedulerConfig};
use ractor::{Actor, ActorCell, ActorProcessingErr, ActorRef, SpawnErr};
use std::time::Duration;

/// The arguments of a model client.
#[derive(Debug, Clone)]
pub struct ClientArgs {
    /// The provider's name.
    pub provider: String,
    /// The most calls in flight.
    pub permits: u32,
    /// How many of them this node may have at first; absent: the node is alone and has all.
    pub share: Option<u32>,
    /// The names of its credentials; empty for servers that need none.
    pub credentials: Vec<String>,
    /// The rate limits of one credential, per minute.
    pub rates: RatesConfig,
    /// Shares, cooldowns, circuit breaker.
    pub scheduler: SchedulerConfig,
    /// A call does not queue for a pause longer than this: it is refused, so that its session can park.
    pub patience_ms: u64,
    /// Time and entropy.
    pub clock: Clock,
}

/// Admits the model calls of all sessions to one provider.
#[derive(Debug)]
pub struct ModelClient;

/// The state of a model client. A restart forgets what was learned; calls in flight keep their old permits.
#[derive(Debug)]
pub struct ClientState {
    provider: String,
    clock: Clock,
    admission: Admission<Done<Admitted>>,
    counts: Counts,
    /// The running timer, and the time when it fires.
    alarm: Option<(Timestamp, Alarm)>,
    generation: u64,
}

impl ModelClient {
    /// Starts the client of one provider.
    ///
    /// # Errors
    /// When the supervisor is stopping.
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
        let setup = Setup {
            permits: args.permits,
            share: args.share,
            credentials: args.credentials,
            rates: args.rates,
            scheduler: args.scheduler,
            patience_ms: args.patience_ms,
        };
        Ok(ClientState {
            provider: args.provider,
            clock: args.clock,
            admission: Admission::new(setup, args.clock.now(), Done::is_gone),
            counts: Counts::default(),
            alarm: None,
            generation: 0,
        })
    }

    async fn handle(
        &self,
        myself: ActorRef<ModelMsg>,
        message: ModelMsg,
        state: &mut ClientState,
    ) -> Result<(), ActorProcessingErr> {
        let now = state.clock.now();
        match message {
            ModelMsg::Acquire { ask, done } => {
                if let Some(step) = state.admission.acquire(ask, done, now) {
                    deliver(&myself, step);
                }
            }
            ModelMsg::Release {
                grant,
                outcome,
                rates,
                done,
            } => state.release(&grant, &outcome, &rates, done),
            ModelMsg::Works { grant } => state.admission.works(&grant, now),
            ModelMsg::QueuePosition { session, done } => {
                done.answer(state.admission.place(session, now));
                return Ok(());
            }
            ModelMsg::MayCount { model, done } => {
                done.answer(state.counts.may_ask(&model));
                return Ok(());
            }
            ModelMsg::Counted { model, counted } => {
                state.counts.note(model, counted);
                return Ok(());
            }
            ModelMsg::Configure {
                permits,
                credentials,
                rates,
                patience_ms,
            } => state
                .admission
                .configure(permits, credentials, &rates, patience_ms, now),
            ModelMsg::Share { share } => state.admission.share(&share, now),
            ModelMsg::Wake { generation } => state.woken(generation),
            ModelMsg::Status { done } => {
                done.answer(state.admission.status(now));
                return Ok(());
            }
        }
        state.admit(&myself, now);
        Ok(())
    }
}

impl ClientState {
    fn release(&mut self, grant: &Grant, outcome: &CallOutcome, rates: &Rates, done: Option<Done<Outlook>>) {
        let mut stamp = self.clock.stamp();
        let (outlook, notice) = self.admission.release(grant, outcome, rates, &mut stamp);
        match notice {
            Some(Notice::Broken { ms }) => {
                tracing::warn!(provider = %self.provider, ms, "the provider keeps failing: pausing calls until a probe succeeds");
            }
            Some(Notice::Cooling {
                credential,
                class,
                ms,
            }) => {
                let credential = credential.as_deref().unwrap_or("none");
                let model = &grant.model;
                tracing::info!(provider = %self.provider, %credential, %model, ?class, ms, "pausing the credential");
            }
            None => {}
        }
        if let Some(done) = done {
            done.answer(outlook);
        }
    }

    fn woken(&mut self, generation: u64) {
        if generation == self.generation {
            self.alarm = None;
        }
    }

    /// Grants free permits, refuses calls that face a long pause, and sets the timer for the rest. If a caller is gone,
    /// its permit is dropped, which releases it again.
    fn admit(&mut self, myself: &ActorRef<ModelMsg>, now: Timestamp) {
        while let Some(step) = self.admission.next(now) {
            deliver(myself, step);
        }
        let wake = self.admission.wake();
        if self.alarm.as_ref().map(|(at, _)| *at) == wake {
            return;
        }
        self.generation += 1;
        let generation = self.generation;
        self.alarm = wake.map(|at| {
            let after = Duration::from_millis(at.since_ms(now).max(1));
            (at, Alarm::set(myself, after, ModelMsg::Wake { generation }))
        });
    }
}

fn deliver(myself: &ActorRef<ModelMsg>, step: Step<Done<Admitted>>) {
    match step {
        Step::Granted(done, grant) => done.answer(Admitted::Granted(CallPermit::new(myself.clone(), grant))),
        Step::Refused(done, refusal) => done.answer(Admitted::Refused(refusal)),
    }
}
