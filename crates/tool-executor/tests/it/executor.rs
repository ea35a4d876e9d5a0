//! The executor and its workers with real commands.

use agentd_actor_kit::{Handle, Pointer, RunEvent, SessionMsg, StoreMsg, ToolMsg};
use agentd_process_tests::{Case, Group, cases, gone};
use agentd_protocol::{Delta, SessionId, ToolCallId, ToolOutcome, ToolStatus};
use agentd_sandbox::Environment;
use agentd_store::Blob;
use agentd_tool_executor::{ExecutorArgs, ToolCall, ToolExecutor, ToolStart};
use agentd_tools::{FilesSeen, Registry, ToolLimits};
use ractor::{Actor, ActorCell, ActorProcessingErr, ActorRef, SupervisionEvent};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::timeout;

pub(crate) fn group() -> Group {
    let all: &[Case] = &cases![
        a_command_runs_and_its_output_is_shown_while_it_comes,
        i5_a_kill_of_the_kid_stops_its_command,
        i5_the_end_of_a_session_ends_what_its_commands_left_behind,
        i5_the_end_of_the_executor_ends_all_wardens,
        i5_a_background_job_outlives_its_call_and_ends_with_its_session,
        a_large_output_is_kept_by_the_store_and_named_in_the_result,
        a_file_written_by_one_call_is_known_to_the_next,
    ];
    Group::new("executor", Duration::from_secs(300), all)
}

/// Records the messages of the workers.
struct Parent;

impl Actor for Parent {
    type Msg = SessionMsg;
    type State = mpsc::UnboundedSender<RunEvent>;
    type Arguments = mpsc::UnboundedSender<RunEvent>;

    async fn pre_start(
        &self,
        _: ActorRef<SessionMsg>,
        notes: Self::Arguments,
    ) -> Result<Self::State, ActorProcessingErr> {
        Ok(notes)
    }

    async fn handle(
        &self,
        _: ActorRef<SessionMsg>,
        message: SessionMsg,
        notes: &mut Self::State,
    ) -> Result<(), ActorProcessingErr> {
        if let SessionMsg::Tool { event, .. } = message {
            let _ = notes.send(event);
        }
        Ok(())
    }

    async fn handle_supervisor_evt(
        &self,
        _: ActorRef<SessionMsg>,
        _: SupervisionEvent,
        _: &mut Self::State,
    ) -> Result<(), ActorProcessingErr> {
        Ok(())
    }
}

/// Stores blobs.
struct Store;

impl Actor for Store {
    type Msg = StoreMsg;
    type State = ();
    type Arguments = ();

    async fn pre_start(&self, _: ActorRef<StoreMsg>, (): ()) -> Result<(), ActorProcessingErr> {
        Ok(())
    }

    async fn handle(
        &self,
        _: ActorRef<StoreMsg>,
        message: StoreMsg,
        (): &mut (),
    ) -> Result<(), ActorProcessingErr> {
        if let StoreMsg::PutBlob { bytes, done, .. } = message {
            done.answer(Ok(format!("{}:{}", bytes.len(), Blob::new(bytes).name())));
        }
        Ok(())
    }
}

struct World {
    dir: tempfile::TempDir,
    parent: ActorRef<SessionMsg>,
    notes: mpsc::UnboundedReceiver<RunEvent>,
    executor: ActorRef<ToolMsg>,
    pointer: Pointer<ToolMsg>,
    store: Handle<StoreMsg>,
    seen: FilesSeen,
    jobs: agentd_tools::Jobs,
}

const SESSION: SessionId = SessionId::from_bytes([7; 16]);

async fn world() -> World {
    let dir = tempfile::tempdir().unwrap();
    let (tx, notes) = mpsc::unbounded_channel();
    let (parent, _) = Actor::spawn(None, Parent, tx).await.unwrap();
    let args = ExecutorArgs {
        protected: agentd_protected::ProtectedPaths::default(),
        exe: PathBuf::from("/proc/self/exe"),
        environment: Environment::allowed([], &[]),
        sandboxing: agentd_sandbox::Sandboxing::None,
        bounds: agentd_sandbox::Bounds::default(),
        network: None,
        spill_dir: dir.path().join("spill"),
        map_dir: dir.path().join("maps"),
        search: None,
        parsers: None,
        tools: ToolLimits::default(),
    };
    let executor = ToolExecutor::start(args, parent.get_cell()).await.unwrap();
    let (store, _) = Actor::spawn(None, Store, ()).await.unwrap();
    let pointer = Pointer::new("the tool executor");
    pointer.set(executor.clone());
    World {
        dir,
        parent,
        notes,
        executor,
        pointer,
        store: Handle::fixed("the store", store),
        seen: FilesSeen::default(),
        jobs: agentd_tools::Jobs::unheard(),
    }
}

impl World {
    async fn start(&self, name: &str, input: Value) -> ActorCell {
        let start = ToolStart {
            to: self.parent.clone(),
            session: SESSION,
            tool_call: ToolCallId::NIL,
            attempt: 1,
            prepared: Registry::builtin(&ToolLimits::default())
                .prepare(name, &input)
                .unwrap(),
            workdir: self.dir.path().to_owned(),
            seen: Arc::new(self.seen.clone()),
            jobs: self.jobs.clone(),
            executor: self.pointer.handle(),
            store: self.store.clone(),
            remote: None,
            mandate: agentd_tool_executor::Mandate::default(),
        };
        ToolCall::start(start, self.parent.get_cell()).await.unwrap()
    }

    async fn next(&mut self) -> RunEvent {
        timeout(Duration::from_secs(60), self.notes.recv())
            .await
            .unwrap()
            .unwrap()
    }

    async fn call(&mut self, name: &str, input: Value) -> (ToolOutcome, Vec<Blob>) {
        self.start(name, input).await;
        loop {
            if let RunEvent::Ended(outcome, blobs) = self.next().await {
                self.seen.apply(outcome.details.as_ref());
                return (*outcome, blobs);
            }
        }
    }

    /// The first output of a running command.
    async fn output(&mut self) -> String {
        loop {
            match self.next().await {
                RunEvent::Output(Delta::ToolOutput { text, .. }, _) => return text,
                RunEvent::Ended(outcome, _) => panic!("{outcome:?}"),
                RunEvent::Waiting | RunEvent::Granted | RunEvent::Output(..) => {}
            }
        }
    }
}

fn pid(text: &str) -> i32 {
    text.trim().parse().unwrap()
}

async fn a_command_runs_and_its_output_is_shown_while_it_comes() {
    let mut world = world().await;
    let worker = world
        .start(
            "Bash",
            json!({ "command": "echo hello; read -r x < <(sleep 300)" }),
        )
        .await;
    assert_eq!(world.output().await, "hello\n");
    worker.kill();
    let (outcome, blobs) = world.call("Bash", json!({ "command": "echo again" })).await;
    assert_eq!(
        (outcome.status, outcome.llm_text.as_str(), blobs),
        (ToolStatus::Ok, "again\n", Vec::new())
    );
}

async fn i5_a_kill_of_the_kid_stops_its_command() {
    let mut world = world().await;
    let worker = world
        .start(
            "Bash",
            json!({ "command": "trap '' TERM; echo $$; sleep 300; sleep 300" }),
        )
        .await;
    let pid = pid(&world.output().await);
    worker.kill();
    // On its own the process would end after ten minutes.
    assert!(gone(pid).await, "the process still lives");
}

async fn i5_the_end_of_a_session_ends_what_its_commands_left_behind() {
    let mut world = world().await;
    let (outcome, _) = world
        .call("Bash", json!({ "command": "setsid sleep 300 & echo $!" }))
        .await;
    let pid = pid(&outcome.llm_text);
    assert!(
        Path::new(&format!("/proc/{pid}")).exists(),
        "it goes on as long as the session"
    );
    world
        .executor
        .cast(ToolMsg::SessionEnded { session: SESSION })
        .unwrap();
    assert!(gone(pid).await, "the process still lives");
    let (outcome, _) = world
        .call(
            "Bash",
            json!({ "command": "echo a session that goes on gets a new warden" }),
        )
        .await;
    assert_eq!(outcome.status, ToolStatus::Ok);
}

async fn i5_a_background_job_outlives_its_call_and_ends_with_its_session() {
    let mut world = world().await;
    let (outcome, _) = world
        .call("BashStart", json!({ "command": "echo $$; exec sleep 300" }))
        .await;
    assert_eq!(outcome.status, ToolStatus::Ok, "{}", outcome.llm_text);
    let mut text = String::new();
    while !text.contains("\n[job 1 runs]") || text.starts_with('[') {
        let poll = json!({ "job": 1, "wait_ms": 50 });
        text = world.call("BashPoll", poll).await.0.llm_text;
    }
    let job = pid(text.lines().next().unwrap());
    world
        .executor
        .cast(ToolMsg::SessionEnded { session: SESSION })
        .unwrap();
    assert!(gone(job).await, "the process still lives");
}

async fn i5_the_end_of_the_executor_ends_all_wardens() {
    let mut world = world().await;
    let (outcome, _) = world
        .call("Bash", json!({ "command": "setsid sleep 300 & echo $!" }))
        .await;
    world.executor.stop_and_wait(None, None).await.unwrap();
    assert!(gone(pid(&outcome.llm_text)).await, "the process still lives");
}

async fn a_large_output_is_kept_by_the_store_and_named_in_the_result() {
    let mut world = world().await;
    let (outcome, blobs) = world
        .call("Bash", json!({ "command": "yes | head -c 300000" }))
        .await;
    let spill = outcome.truncated.unwrap().spill.unwrap();
    assert!(spill.starts_with("300000:") && blobs.is_empty(), "{spill}");
    let (outcome, blobs) = world
        .call("Bash", json!({ "command": "yes | head -c 200000" }))
        .await;
    let spill = outcome.truncated.unwrap().spill;
    assert_eq!(
        blobs
            .first()
            .map(|blob| (blob.bytes().len(), Some(blob.name().to_owned()))),
        Some((200_000, spill))
    );
    assert_eq!(
        std::fs::read_dir(world.dir.path().join("spill")).unwrap().count(),
        0
    );
}

async fn a_file_written_by_one_call_is_known_to_the_next() {
    let mut world = world().await;
    let path = world.dir.path().join("a/f");
    world
        .call("Write", json!({ "file_path": path, "content": "one\n" }))
        .await;
    let (outcome, _) = world
        .call(
            "Edit",
            json!({ "file_path": "a/f", "old_string": "one", "new_string": "two" }),
        )
        .await;
    let text = outcome.llm_text;
    assert!(
        text.starts_with("Changed a/f (once replaced). Undo id: "),
        "{text}"
    );
    world.call("Bash", json!({ "command": "echo three > a/f" })).await;
    let (outcome, _) = world
        .call(
            "Edit",
            json!({ "file_path": "a/f", "old_string": "three", "new_string": "four" }),
        )
        .await;
    assert_eq!(outcome.status, ToolStatus::Error);
    assert!(
        outcome.llm_text.contains("changed after you read it"),
        "{}",
        outcome.llm_text
    );
}
