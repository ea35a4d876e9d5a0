//! Test doubles of the other actors.

use agentd_actor_kit::{CallDetail, Done, FeedMsg, GateMsg, Read, StoreMsg, ToolMsg};
use agentd_policy::Judgement;
use agentd_protocol::{Binding, Delta, RunState, Scope, SessionId, Verdict, VerdictKind};
use agentd_store::testing::CountingLog;
use agentd_store::{Append, Outcome, Placement as _, SessionLog as _};
use ractor::{Actor, ActorProcessingErr, ActorRef, SupervisionEvent};
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};
use tokio::sync::mpsc::UnboundedSender;

/// Faults of the store at the next append.
#[derive(Debug)]
pub(super) enum Trick {
    Answer(Outcome),
    /// Writes it and never answers.
    Swallow,
    /// Drops the request, as after a crash. Nothing is written.
    Drop,
    /// Writes it, but drops the request.
    WriteAndDrop,
    /// Drops the request, and writes it only with the next change: the disk was stalled.
    Stall,
}

/// The controls of the test doubles, and their observations.
#[derive(Debug)]
pub(super) struct Strings {
    pub(super) log: Arc<CountingLog>,
    pub(super) tricks: Mutex<VecDeque<Trick>>,
    pub(super) swallowed: Mutex<Vec<Done<Outcome>>>,
    /// The append in the writer's queue.
    pub(super) queued: Mutex<Option<Append>>,
    pub(super) commits: UnboundedSender<(SessionId, Vec<String>)>,
    /// By tool; absent: allow. `None`: the gate does not answer (it drops the request).
    pub(super) verdicts: Mutex<BTreeMap<String, Option<VerdictKind>>>,
    /// The gate keeps requests for these tools and never answers.
    pub(super) hanging: Mutex<Vec<Done<Judgement>>>,
    pub(super) hang: Mutex<bool>,
    pub(super) deciders: Mutex<u32>,
    pub(super) cold: UnboundedSender<SessionId>,
    pub(super) states: UnboundedSender<(SessionId, RunState)>,
}

/// A supervisor that ignores all events.
pub(super) struct Root;

impl Actor for Root {
    type Msg = ();
    type State = ();
    type Arguments = ();

    async fn pre_start(&self, _: ActorRef<()>, (): ()) -> Result<(), ActorProcessingErr> {
        Ok(())
    }

    async fn handle_supervisor_evt(
        &self,
        _: ActorRef<()>,
        _: SupervisionEvent,
        (): &mut (),
    ) -> Result<(), ActorProcessingErr> {
        Ok(())
    }
}

macro_rules! peer {
    ($name:ident, $message:ty, $method:ident) => {
        pub(super) struct $name;

        impl Actor for $name {
            type Msg = $message;
            type State = Arc<Strings>;
            type Arguments = Arc<Strings>;

            async fn pre_start(
                &self,
                _: ActorRef<$message>,
                strings: Arc<Strings>,
            ) -> Result<Arc<Strings>, ActorProcessingErr> {
                Ok(strings)
            }

            async fn handle(
                &self,
                _: ActorRef<$message>,
                message: $message,
                strings: &mut Arc<Strings>,
            ) -> Result<(), ActorProcessingErr> {
                strings.$method(message).await;
                Ok(())
            }
        }
    };
}

peer!(Store, StoreMsg, store);
peer!(Gate, GateMsg, gate);
peer!(Tools, ToolMsg, tools);
peer!(Feed, FeedMsg, feed);

impl Strings {
    async fn store(&self, message: StoreMsg) {
        match message {
            StoreMsg::Append { append, done } => self.append(append, done).await,
            StoreMsg::Claim { session, done, .. } => {
                self.catch_up().await;
                done.answer(self.log.claim(session).await);
            }
            StoreMsg::Read(Read::Load { session, range, done }) => {
                done.answer(self.log.load(session, range).await);
            }
            StoreMsg::Read(Read::Row { session, done }) => done.answer(self.log.row(session).await),
            StoreMsg::Read(Read::List { filter, done }) => done.answer(self.log.list(filter).await),
            other => panic!("no loop asks this: {other:?}"),
        }
    }

    async fn append(&self, append: Append, done: Done<Outcome>) {
        let trick = self.tricks.lock().unwrap().pop_front();
        match trick {
            Some(Trick::Answer(outcome)) => return done.answer(outcome),
            Some(Trick::Drop) => return drop(done),
            Some(Trick::Swallow) => {
                self.write(append).await;
                return self.swallowed.lock().unwrap().push(done);
            }
            Some(Trick::WriteAndDrop) => {
                self.write(append).await;
                return drop(done);
            }
            Some(Trick::Stall) => {
                *self.queued.lock().unwrap() = Some(append);
                return drop(done);
            }
            None => {}
        }
        self.catch_up().await;
        done.answer(self.write(append).await);
    }

    /// Writes what was queued before.
    async fn catch_up(&self) {
        let queued = self.queued.lock().unwrap().take();
        if let Some(append) = queued {
            self.write(append).await;
        }
    }

    async fn write(&self, append: Append) -> Outcome {
        let (session, kinds) = (
            append.session,
            append.events.iter().map(|e| e.kind.to_string()).collect(),
        );
        let outcome = self.log.append(append).await;
        if matches!(outcome, Outcome::Committed { .. }) {
            let _ = self.commits.send((session, kinds));
        }
        outcome
    }

    async fn gate(&self, message: GateMsg) {
        match message {
            GateMsg::Judge { request, done } => {
                if *self.hang.lock().unwrap() {
                    return self.hanging.lock().unwrap().push(done);
                }
                let verdict = self.verdicts.lock().unwrap().get(&request.tool).copied();
                if let Some(kind) = verdict.unwrap_or(Some(VerdictKind::Allow)) {
                    done.answer(judgement(kind));
                }
            }
            GateMsg::AddRule { done, .. } => done.answer(Ok(())),
            other => panic!("no loop asks this: {other:?}"),
        }
    }

    async fn tools(&self, message: ToolMsg) {
        match message {
            ToolMsg::Detail { prepared, done, .. } => done.answer(CallDetail {
                text: format!("detail of {}", prepared.name),
                binding: Ok(Binding::default()),
            }),
            ToolMsg::Contents { done, .. } => done.answer(Ok(BTreeMap::new())),
            ToolMsg::SessionEnded { session } => {
                let _ = self.cold.send(session);
            }
            other => panic!("no loop asks this: {other:?}"),
        }
    }

    async fn feed(&self, message: FeedMsg) {
        match message {
            FeedMsg::Deciders { done, .. } => {
                let deciders = *self.deciders.lock().unwrap();
                done.answer(deciders);
            }
            FeedMsg::Delta {
                session,
                delta: Delta::Status(status),
            } => {
                let _ = self.states.send((session, status.state));
            }
            _ => {}
        }
    }
}

fn judgement(kind: VerdictKind) -> Judgement {
    let verdict = Verdict {
        kind,
        rule: "test".into(),
        reason: "the test says so".into(),
    };
    Judgement {
        verdict,
        grant: Some("Bash(true)".into()),
        scopes: vec![Scope::Once, Scope::Session],
        title: String::new(),
        detail: String::new(),
        risks: Vec::new(),
        by_content: false,
    }
}
