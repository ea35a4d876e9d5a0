//! The gate's actor: a thin match in front of [`Rules`](crate::state::Rules).

use crate::error::GateError;
use crate::journal::Journal;
use crate::state::{JudgeFn, Rules};
use agentd_actor_kit::{Clock, Done, GateMsg, Handle, StoreMsg};
use agentd_fault_points as fault;
use agentd_protocol::{ApprovalId, Principal};
use agentd_settings::PermissionConfig;
use ractor::{Actor, ActorCell, ActorProcessingErr, ActorRef, SpawnErr};
use std::sync::Arc;
use tokio::sync::{Mutex, Semaphore};

/// The most rules that wait to be stored.
const MAX_PENDING: usize = 64;

/// What the gate starts from.
#[derive(Debug, Clone)]
pub struct GateArgs {
    /// The configured rules.
    pub rules: PermissionConfig,
    /// What `~/` stands for in rules.
    pub home: Option<String>,
    /// Where the rules are that people made for good.
    pub store: Handle<StoreMsg>,
    /// Where time comes from.
    pub clock: Clock,
}

/// The actor that judges.
#[derive(Debug)]
pub struct PermissionGate {
    judge: JudgeFn,
}

impl Default for PermissionGate {
    fn default() -> Self {
        Self {
            judge: agentd_policy::judge,
        }
    }
}

impl PermissionGate {
    /// Starts the gate, linked to its supervisor. It is up when it has read every rule.
    ///
    /// # Errors
    /// A configured rule cannot be read, or the store does not give the rules that people made.
    pub async fn start(args: GateArgs, supervisor: ActorCell) -> Result<ActorRef<GateMsg>, SpawnErr> {
        let (gate, _) = Actor::spawn_linked(None, Self::default(), args, supervisor).await?;
        Ok(gate)
    }

    #[cfg(test)]
    pub(crate) fn judging_with(judge: JudgeFn) -> Self {
        Self { judge }
    }
}

/// The actor's state.
#[derive(Debug)]
pub struct State {
    rules: Rules,
    /// One rule is stored at a time, in the order of their coming.
    journal: Arc<Mutex<Journal>>,
    pending: Arc<Semaphore>,
}

impl Actor for PermissionGate {
    type Msg = GateMsg;
    type State = State;
    type Arguments = GateArgs;

    async fn pre_start(&self, _: ActorRef<GateMsg>, args: GateArgs) -> Result<State, ActorProcessingErr> {
        let mut rules = Rules::new(&args.rules, args.home.as_deref(), self.judge)?;
        let mut journal = Journal::new(args.store, args.clock);
        rules.change(journal.read().await?)?;
        Ok(State {
            rules,
            journal: Arc::new(Mutex::new(journal)),
            pending: Arc::new(Semaphore::new(MAX_PENDING)),
        })
    }

    async fn handle(
        &self,
        me: ActorRef<GateMsg>,
        msg: GateMsg,
        state: &mut State,
    ) -> Result<(), ActorProcessingErr> {
        match msg {
            GateMsg::Judge { request, done } => match fault::point(fault::GATE_JUDGE) {
                Ok(()) => done.answer(state.rules.judge(&request)),
                // A question without an answer is a denial.
                Err(_) => drop(done),
            },
            GateMsg::AddRule {
                rule,
                approval,
                by,
                done,
            } => state.add(me, &rule, approval, by, done),
            GateMsg::RuleStored { rule, stored } => state.rules.change([(rule, stored)])?,
            GateMsg::WhollyDenied { tools, rules, done } => {
                done.answer(state.rules.wholly_denied(tools, &rules));
            }
            GateMsg::Rules { done } => done.answer(state.rules.lines()),
        }
        Ok(())
    }
}

impl State {
    fn add(
        &self,
        me: ActorRef<GateMsg>,
        text: &str,
        approval: Option<ApprovalId>,
        by: Principal,
        done: Done<Result<(), String>>,
    ) {
        let rule = match Rules::normal(text).and_then(|rule| self.rules.room().map(|()| rule)) {
            Ok(rule) if self.rules.has(&rule) => return done.answer(Ok(())),
            Ok(rule) => rule,
            Err(error) => return done.answer(Err(error.to_string())),
        };
        let Ok(permit) = Arc::clone(&self.pending).try_acquire_owned() else {
            return done.answer(Err(GateError::TooMany("rules that wait to be stored").to_string()));
        };
        let journal = Arc::clone(&self.journal);
        tokio::spawn(async move {
            let stored = journal.lock().await.add(&rule, approval, &by).await;
            drop(permit);
            match stored {
                Ok(changes) => {
                    // In force first, then answered for: whoever has the answer can rely on the rule.
                    for (rule, stored) in changes {
                        let _ = me.cast(GateMsg::RuleStored { rule, stored });
                    }
                    done.answer(Ok(()));
                }
                Err(error) => {
                    tracing::warn!(rule, %error, "an always-rule could not be stored");
                    done.answer(Err(error.to_string()));
                }
            }
        });
    }
}
