//! Workers controlled by the test.

use agentd_actor_kit::{CallEvent, RunEvent, SessionMsg};
use agentd_hooks::{Ended, Launch};
use agentd_protocol::{Block, Delta, FailureClass, Latency, StopReason, ToolOutcome, ToolStatus, Usage};
use agentd_session_loop::{ModelJob, ToolJob, Workers};
use agentd_settings::HookConfig;
use agentd_turn::{ModelAnswer, ModelFailure};
use async_trait::async_trait;
use ractor::{Actor, ActorCell, ActorProcessingErr, ActorRef, SpawnErr};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::oneshot;

/// A command of the test to a worker.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "a few of them in a test")]
pub(super) enum Order {
    Say(SessionMsg),
    Panic,
    End,
}

struct Puppet;

impl Actor for Puppet {
    type Msg = Order;
    type State = ActorRef<SessionMsg>;
    type Arguments = ActorRef<SessionMsg>;

    async fn pre_start(
        &self,
        _: ActorRef<Order>,
        to: ActorRef<SessionMsg>,
    ) -> Result<Self::State, ActorProcessingErr> {
        Ok(to)
    }

    async fn handle(
        &self,
        me: ActorRef<Order>,
        order: Order,
        to: &mut Self::State,
    ) -> Result<(), ActorProcessingErr> {
        match order {
            Order::Say(message) => to.cast(message)?,
            Order::Panic => panic!("ordered to"),
            Order::End => me.stop(None),
        }
        Ok(())
    }
}

/// A started worker, in order of start.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "a few of them in a test")]
pub(super) enum Job {
    Model(ModelPuppet),
    Tool(ToolPuppet),
}

#[derive(Debug)]
pub(super) struct ModelPuppet {
    pub(super) job: ModelJob,
    pub(super) worker: ActorRef<Order>,
}

#[derive(Debug)]
pub(super) struct ToolPuppet {
    pub(super) job: ToolJob,
    pub(super) worker: ActorRef<Order>,
}

impl ModelPuppet {
    pub(super) fn say(&self, event: CallEvent) {
        let (call, attempt) = (self.job.call, self.job.attempt);
        self.worker
            .cast(Order::Say(SessionMsg::Model { call, attempt, event }))
            .unwrap();
    }

    pub(super) fn text(&self, text: &str) {
        let fragment = agentd_protocol::Fragment {
            call: self.job.call,
            attempt: self.job.attempt,
            block: 0,
            offset: 0,
            text: text.to_owned(),
        };
        self.say(CallEvent::Delta(
            Delta::Text(fragment),
            agentd_actor_kit::Credit(None),
        ));
    }

    /// Answers with text and exits, as a real worker does.
    pub(super) fn answer(self, text: &str) {
        self.finish(vec![Block::text(text)], StopReason::EndTurn);
    }

    /// Requests tool calls and exits.
    pub(super) fn call(self, calls: &[(&str, Value)]) {
        let block = |(n, (name, input)): (usize, &(&str, Value))| Block::ToolUse {
            id: format!("provider-{n}"),
            name: (*name).to_owned(),
            input: input.clone(),
        };
        self.finish(calls.iter().enumerate().map(block).collect(), StopReason::ToolUse);
    }

    fn finish(self, content: Vec<Block>, stop_reason: StopReason) {
        let usage = Usage {
            input: 10,
            output: 5,
            ..Usage::default()
        };
        let latency = Latency::default();
        let answer = ModelAnswer {
            content,
            stop_reason,
            usage,
            cost_usd: None,
            latency,
            credential: None,
            reading: agentd_protocol::Reading::default(),
        };
        self.say(CallEvent::Answered(Box::new(answer)));
        self.worker.cast(Order::End).unwrap();
    }

    /// Fails and exits.
    pub(super) fn fail(self, class: FailureClass, retry_after_ms: Option<u64>) {
        let failure = ModelFailure {
            retry_after_ms,
            ..ModelFailure::new(class, "no luck")
        };
        self.say(CallEvent::Failed(failure));
        self.worker.cast(Order::End).unwrap();
    }

    pub(super) fn panic(self) {
        self.worker.cast(Order::Panic).unwrap();
    }

    /// Waits until the worker is gone.
    pub(super) async fn gone(&self) {
        self.worker.get_cell().wait(None).await.unwrap();
    }
}

impl ToolPuppet {
    pub(super) fn say(&self, event: RunEvent) {
        let (tool_call, attempt) = (self.job.tool_call, self.job.attempt);
        self.worker
            .cast(Order::Say(SessionMsg::Tool {
                tool_call,
                attempt,
                event,
            }))
            .unwrap();
    }

    pub(super) fn end(self, status: ToolStatus, text: &str) {
        self.say(RunEvent::Ended(
            Box::new(ToolOutcome::text(status, text)),
            Vec::new(),
        ));
        self.worker.cast(Order::End).unwrap();
    }

    pub(super) fn panic(self) {
        self.worker.cast(Order::Panic).unwrap();
    }

    pub(super) async fn gone(&self) {
        self.worker.get_cell().wait(None).await.unwrap();
    }
}

pub(super) fn bash(command: &str) -> (&'static str, Value) {
    ("Bash", json!({ "command": command }))
}

pub(super) fn read(path: &str) -> (&'static str, Value) {
    ("Read", json!({ "file_path": path }))
}

/// Starts controlled workers and notifies the test.
#[derive(Debug)]
pub(super) struct Puppets {
    pub(super) jobs: UnboundedSender<Job>,
    /// The number of starts that panic and crash the loop's handler.
    pub(super) panics: AtomicU32,
}

impl Puppets {
    async fn start(&self, to: ActorRef<SessionMsg>) -> Result<ActorRef<Order>, SpawnErr> {
        let left = self
            .panics
            .try_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
        assert!(left.is_err(), "the test wants this loop to panic");
        let loop_cell = to.get_cell();
        Puppet::spawn_linked(None, Puppet, to, loop_cell)
            .await
            .map(|(worker, _)| worker)
    }
}

#[async_trait]
impl Workers for Puppets {
    async fn model(&self, job: ModelJob) -> Result<ActorCell, SpawnErr> {
        let worker = self.start(job.to.clone()).await?;
        let cell = worker.get_cell();
        let _ = self.jobs.send(Job::Model(ModelPuppet { job, worker }));
        Ok(cell)
    }

    async fn tool(&self, job: ToolJob) -> Result<ActorCell, SpawnErr> {
        let worker = self.start(job.to.clone()).await?;
        let cell = worker.get_cell();
        let _ = self.jobs.send(Job::Tool(ToolPuppet { job, worker }));
        Ok(cell)
    }
}

/// A hook that was asked and gives the answer that the test wants.
#[derive(Debug)]
pub(super) struct HookPuppet {
    pub(super) name: String,
    pub(super) told: Value,
    done: oneshot::Sender<Ended>,
}

impl HookPuppet {
    pub(super) fn exit(self, code: i32, stdout: &Value, stderr: &str) {
        let ended = Ended::Exited {
            code: Some(code),
            stdout: stdout.to_string(),
            stderr: stderr.to_owned(),
        };
        self.done.send(ended).unwrap();
    }

    pub(super) fn panic(self) {
        drop(self.done);
    }

    /// Waits until the request is abandoned.
    pub(super) async fn killed(mut self) {
        self.done.closed().await;
    }
}

/// Notifies the test of each hook.
#[derive(Debug)]
pub(super) struct HookPuppets(pub(super) UnboundedSender<HookPuppet>);

#[async_trait]
impl Launch for HookPuppets {
    async fn launch(&self, hook: &HookConfig, _: &Path, input: Vec<u8>) -> Ended {
        let (done, ended) = oneshot::channel();
        let puppet = HookPuppet {
            name: hook.name.clone(),
            told: serde_json::from_slice(&input).unwrap(),
            done,
        };
        let _ = self.0.send(puppet);
        ended.await.expect("the test wants this hook's worker to panic")
    }
}
