//! The gate's actor: a thin match over [`Rules`](crate::state::Rules).

use crate::error::GateError;
use crate::journal::Journal;
use crate::state::{Judge, Rules, written};
use agentd_actor_kit::{Clock, Done, GateMsg, Handle, JudgeRequest, StoreMsg};
use agentd_fault_points as fault;
use agentd_policy::{JudgeFn, Judgement};
use agentd_protected::Places;
use agentd_protocol::{ApprovalId, EventBody, Grant, Principal, RuleAdded, RuleRemoved};
use agentd_settings::PermissionConfig;
use ractor::{Actor, ActorCell, ActorProcessingErr, ActorRef, SpawnErr};
use std::sync::Arc;
use tokio::sync::{Mutex, Semaphore};

/// The maximum number of rules waiting to be stored.
const MAX_PENDING: usize = 64;

/// The arguments that the gate starts with.
#[derive(Debug, Clone)]
pub struct GateArgs {
    /// The configured rules.
    pub rules: PermissionConfig,
    /// The directory that `~/` means in rules.
    pub home: Option<String>,
    /// What is protected whatever the working directory is.
    pub places: Places,
    /// The store, which has the rules that people added permanently.
    pub store: Handle<StoreMsg>,
    /// The source of time.
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
    /// Starts the gate, linked to its supervisor. It is ready when it has read every rule.
    ///
    /// # Errors
    /// A configured rule cannot be parsed, or the store does not return the rules that people added.
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
    /// Stores one rule at a time, in the order in which they arrive.
    journal: Arc<Mutex<Journal>>,
    pending: Arc<Semaphore>,
}

impl Actor for PermissionGate {
    type Msg = GateMsg;
    type State = State;
    type Arguments = GateArgs;

    async fn pre_start(&self, _: ActorRef<GateMsg>, args: GateArgs) -> Result<State, ActorProcessingErr> {
        let mut rules = Rules::new(&args.rules, args.home.as_deref(), args.places, self.judge)?;
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
                Ok(()) => judge(state.rules.now(), request, done),
                // A judge request without an answer counts as a denial.
                Err(_) => drop(done),
            },
            GateMsg::AddRule {
                grant,
                approval,
                by,
                done,
            } => state.add(me, &grant, approval, by, done),
            GateMsg::RemoveRule { grant, by, done } => state.remove(me, grant, by, done),
            GateMsg::RuleStored { grant, stored } => state.rules.change([(grant, stored)])?,
            GateMsg::Reread => state.reread(me),
            GateMsg::Configure { permission, done } => {
                let configured = state.rules.configure(&permission);
                done.answer(configured.map_err(|error| error.to_string()));
            }
            GateMsg::WhollyDenied { tools, rules, done } => {
                done.answer(state.rules.wholly_denied(tools, &rules));
            }
            GateMsg::Rules { done } => done.answer(state.rules.lines()),
        }
        Ok(())
    }
}

/// Judges a request; in a separate task when files have to be read first.
fn judge(judge: Judge, request: Box<JudgeRequest>, done: Done<Judgement>) {
    match written(&request.subject) {
        None => done.answer(judge.judge(&request)),
        Some(near) => {
            tokio::spawn(async move { done.answer(judge.judge_writing(&request, near).await) });
        }
    }
}

impl State {
    fn add(
        &self,
        me: ActorRef<GateMsg>,
        grant: &Grant,
        approval: Option<ApprovalId>,
        by: Principal,
        done: Done<Result<(), String>>,
    ) {
        let Grant { rule, reach } =
            match Rules::normal(grant).and_then(|rule| self.rules.room().map(|()| rule)) {
                Ok(grant) if self.rules.has(&grant) => return done.answer(Ok(())),
                Ok(grant) => grant,
                Err(error) => return done.answer(Err(error.to_string())),
            };
        let added = RuleAdded {
            rule,
            approval,
            reach,
        };
        self.write(me, added.into(), by, |stored| done.answer(stored));
    }

    /// If the rule is no longer in force, because someone else removed it, there is nothing to remove.
    fn remove(&self, me: ActorRef<GateMsg>, grant: Grant, by: Principal, done: Done<Result<bool, String>>) {
        if self.rules.has(&grant) {
            let Grant { rule, reach } = grant;
            let removed = RuleRemoved { rule, reach }.into();
            self.write(me, removed, by, |stored| done.answer(stored.map(|()| true)));
        } else {
            done.answer(Ok(false));
        }
    }

    /// Brings changes of other nodes into force.
    fn reread(&self, me: ActorRef<GateMsg>) {
        let journal = Arc::clone(&self.journal);
        tokio::spawn(async move {
            match journal.lock().await.read().await {
                Ok(changes) => {
                    for (grant, stored) in changes {
                        let _ = me.cast(GateMsg::RuleStored { grant, stored });
                    }
                }
                Err(error) => tracing::warn!(%error, "could not read the always-rules of other nodes"),
            }
        });
    }

    /// Stores a change, and then reports that it is in force.
    fn write(
        &self,
        me: ActorRef<GateMsg>,
        change: EventBody,
        by: Principal,
        done: impl FnOnce(Result<(), String>) + Send + 'static,
    ) {
        let Ok(permit) = Arc::clone(&self.pending).try_acquire_owned() else {
            return done(Err(GateError::TooMany(
                "rules waiting to be stored; try again later",
            )
            .to_string()));
        };
        let journal = Arc::clone(&self.journal);
        tokio::spawn(async move {
            let stored = journal.lock().await.write(&change, &by).await;
            drop(permit);
            match stored {
                Ok(changes) => {
                    // Apply the change before answering, so that the caller can rely on it.
                    for (grant, stored) in changes {
                        let _ = me.cast(GateMsg::RuleStored { grant, stored });
                    }
                    done(Ok(()));
                }
                Err(error) => {
                    tracing::warn!(change = change.kind(), %error, "could not store a change of the always-rules");
                    done(Err(error.to_string()));
                }
            }
        });
    }
}
