//! WorkerTable and executor with real ractor actors and fake tools.

use super::*;
use crate::run::Runner;
use crate::worker::spawn;
use agentd_actor_kit::{Down, Handle, RunEvent, SessionMsg, ToolMsg, Work, WorkerTable};
use agentd_protocol::{Delta, EffectClass, SessionId, ToolCallId, ToolOutcome, ToolStatus, Truncated};
use agentd_sandbox::Environment;
use agentd_tools::{FilesSeen, Finished, Prepared, Progress, Registry, Spilled, ToolContext, ToolLimits};
use ractor::{Actor, ActorCell, ActorProcessingErr, ActorRef, SupervisionEvent};
use serde_json::json;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::timeout;

/// A fake session loop: records all messages, and the end of each worker after its last message.
struct Parent;

struct ParentState {
    notes: mpsc::UnboundedSender<SessionMsg>,
    workers: WorkerTable<Work>,
}

impl Actor for Parent {
    type Msg = SessionMsg;
    type State = ParentState;
    type Arguments = mpsc::UnboundedSender<SessionMsg>;

    async fn pre_start(
        &self,
        _: ActorRef<SessionMsg>,
        notes: Self::Arguments,
    ) -> Result<ParentState, ActorProcessingErr> {
        Ok(ParentState {
            notes,
            workers: WorkerTable::default(),
        })
    }

    async fn handle(
        &self,
        _: ActorRef<SessionMsg>,
        message: SessionMsg,
        state: &mut ParentState,
    ) -> Result<(), ActorProcessingErr> {
        let _ = state.notes.send(message);
        Ok(())
    }

    async fn handle_supervisor_evt(
        &self,
        me: ActorRef<SessionMsg>,
        event: SupervisionEvent,
        state: &mut ParentState,
    ) -> Result<(), ActorProcessingErr> {
        // The workers of these tests all do the same work.
        if let SupervisionEvent::ActorFailed(cell, _) | SupervisionEvent::ActorTerminated(cell, _, _) = &event
        {
            state.workers.add(cell.clone(), WORK);
        }
        if let Some((work, why)) = state.workers.fell(event) {
            let _ = me.cast(SessionMsg::Down { work, why });
        }
        Ok(())
    }
}

const CALL: ToolCallId = ToolCallId::NIL;
const WORK: Work = Work::Tool {
    tool_call: CALL,
    attempt: 1,
};

const SECRET: &str = "a key that only the daemon knows";

/// A fake tool whose command says what it does.
struct Played {
    running: Arc<AtomicUsize>,
}

impl Runner for Played {
    async fn run(&self, prepared: &Prepared, ctx: ToolContext) -> Finished {
        self.running.fetch_add(1, Ordering::SeqCst);
        let _gone = Gone(Arc::clone(&self.running));
        match prepared.input["command"].as_str().unwrap_or("read") {
            "panic" => panic!("the tool is broken"),
            "hang" => std::future::pending().await,
            "talk" => {
                for offset in 0..100 {
                    ctx.progress.report(Progress {
                        offset,
                        text: "x".to_owned(),
                    });
                }
                ToolOutcome::text(ToolStatus::Ok, "said").into()
            }
            "leak" => {
                let said = |text: &str| text.replace("KEY", SECRET);
                ctx.progress.report(Progress {
                    offset: 0,
                    text: said("live KEY"),
                });
                let outcome = ToolOutcome {
                    display: Some(said("shown KEY")),
                    details: Some(json!({ "deep": [said("KEY")] })),
                    truncated: Some(Truncated {
                        bytes: 5,
                        lines: 1,
                        spill: None,
                    }),
                    ..ToolOutcome::text(ToolStatus::Ok, said("read KEY"))
                };
                Finished {
                    outcome,
                    spilled: Some(Spilled::Memory(said("whole KEY").into_bytes())),
                    pre_images: Vec::new(),
                }
            }
            "spill" => {
                let truncated = Some(Truncated {
                    bytes: 5,
                    lines: 1,
                    spill: None,
                });
                let outcome = ToolOutcome {
                    truncated,
                    ..ToolOutcome::text(ToolStatus::Ok, "cut")
                };
                Finished {
                    outcome,
                    spilled: Some(Spilled::Memory(b"whole".to_vec())),
                    pre_images: Vec::new(),
                }
            }
            _ => ToolOutcome::text(ToolStatus::Ok, "done").into(),
        }
    }
}

struct Gone(Arc<AtomicUsize>);

impl Drop for Gone {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

struct World {
    parent: ActorRef<SessionMsg>,
    notes: mpsc::UnboundedReceiver<SessionMsg>,
    executor: ActorRef<ToolMsg>,
    running: Arc<AtomicUsize>,
    dir: tempfile::TempDir,
}

impl World {
    async fn new(max_running: u32) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let (tx, notes) = mpsc::unbounded_channel();
        let (parent, _) = Actor::spawn(None, Parent, tx).await.unwrap();
        let args = ExecutorArgs {
            protected: agentd_protected::ProtectedPaths::default(),
            exe: PathBuf::from("/nonexistent"),
            environment: Environment::default(),
            sandboxing: agentd_sandbox::Sandboxing::None,
            bounds: agentd_sandbox::Bounds::default(),
            network: None,
            spill_dir: dir.path().join("spill"),
            map_dir: dir.path().join("maps"),
            search: None,
            parsers: None,
            tools: ToolLimits {
                max_running,
                ..ToolLimits::default()
            },
        };
        let (executor, _) = Actor::spawn(None, ToolExecutor, args).await.unwrap();
        Self {
            parent,
            notes,
            executor,
            running: Arc::default(),
            dir,
        }
    }

    async fn start(&self, command: &str) -> ActorCell {
        let registry = Registry::builtin(&ToolLimits::default());
        let start = ToolStart {
            to: self.parent.clone(),
            session: SessionId::NIL,
            tool_call: CALL,
            attempt: 1,
            prepared: registry.prepare("Bash", &json!({ "command": command })).unwrap(),
            workdir: self.dir.path().to_owned(),
            seen: Arc::new(FilesSeen::default()),
            jobs: agentd_tools::Jobs::unheard(),
            executor: Handle::fixed("the tool executor", self.executor.clone()),
            store: agentd_actor_kit::Pointer::new("the store").handle(),
            remote: None,
            mandate: crate::Mandate::default(),
        };
        spawn(
            Played {
                running: Arc::clone(&self.running),
            },
            start,
            self.parent.get_cell(),
        )
        .await
        .unwrap()
    }

    async fn next(&mut self) -> String {
        let message = timeout(Duration::from_secs(60), self.notes.recv())
            .await
            .unwrap()
            .unwrap();
        match message {
            SessionMsg::Tool {
                event: RunEvent::Waiting,
                ..
            } => "waiting".to_owned(),
            SessionMsg::Tool {
                event: RunEvent::Granted,
                ..
            } => "granted".to_owned(),
            SessionMsg::Tool {
                event: RunEvent::Output(Delta::ToolOutput { offset, .. }, _),
                ..
            } => {
                format!("output {offset}")
            }
            SessionMsg::Tool {
                tool_call,
                attempt: 1,
                event: RunEvent::Ended(outcome, blobs),
            } if tool_call == CALL => {
                let names: Vec<_> = blobs.iter().map(|blob| &blob.name()[..8]).collect();
                format!("ended {} {names:?}", outcome.llm_text)
            }
            SessionMsg::Down {
                why: Down::Failed(why),
                ..
            } => format!("failed {why}"),
            SessionMsg::Down {
                why: Down::Killed(why),
                ..
            } => format!("killed {why}"),
            other => format!("{other:?}"),
        }
    }

    async fn expect(&mut self, expected: &[&str]) {
        for note in expected {
            assert_eq!(self.next().await, *note);
        }
    }
}

const ENDED: &str = "killed ended without a result";

#[tokio::test]
async fn i3_the_result_comes_before_the_end_of_the_worker() {
    let mut world = World::new(4).await;
    for _ in 0..50 {
        world.start("read").await;
        world.expect(&["granted", "ended done []", ENDED]).await;
    }
    assert_eq!(world.running.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn i6_a_panic_of_a_tool_fails_only_its_call() {
    let mut world = World::new(2).await;
    for _ in 0..5 {
        world.start("panic").await;
        assert_eq!(world.next().await, "granted");
        let note = world.next().await;
        assert!(
            note.starts_with("failed") && note.contains("the tool is broken"),
            "{note}"
        );
    }
    world.start("read").await;
    world.expect(&["granted", "ended done []", ENDED]).await;
}

#[tokio::test]
async fn i6_a_killed_call_gives_its_permit_to_the_next_one() {
    // One command may run at a time; the other permit is for files.
    let mut world = World::new(2).await;
    let first = world.start("hang").await;
    world.expect(&["granted"]).await;
    world.start("read").await;
    world.expect(&["waiting"]).await;
    first.kill();
    let (a, b) = (world.next().await, world.next().await);
    assert!(
        [&a, &b].iter().any(|note| note.as_str() == "killed killed"),
        "{a} {b}"
    );
    assert!([&a, &b].iter().any(|note| note.as_str() == "granted"), "{a} {b}");
    world.expect(&["ended done []", ENDED]).await;
    assert_eq!(
        world.running.load(Ordering::SeqCst),
        0,
        "the killed run was dropped"
    );
}

#[tokio::test]
async fn i6_a_call_that_is_killed_while_it_waits_costs_no_permit() {
    let mut world = World::new(2).await;
    let first = world.start("hang").await;
    world.expect(&["granted"]).await;
    let waiter = world.start("read").await;
    world.expect(&["waiting"]).await;
    waiter.kill();
    world.expect(&["killed killed"]).await;
    first.kill();
    world.expect(&["killed killed"]).await;
    world.start("read").await;
    world.expect(&["granted", "ended done []", ENDED]).await;
}

#[tokio::test]
async fn i6_output_is_sent_on_credit_only() {
    let mut world = World::new(2).await;
    let worker = world.start("talk").await;
    // Recorded messages keep their credits until they are inspected below.
    worker.wait(Some(Duration::from_secs(60))).await.unwrap();
    let first: Vec<String> = (0..8).map(|offset| format!("output {offset}")).collect();
    world.expect(&["granted"]).await;
    world
        .expect(&first.iter().map(String::as_str).collect::<Vec<_>>())
        .await;
    world.expect(&["ended said []", ENDED]).await;
}

#[tokio::test]
async fn a_small_stored_output_is_attached_to_the_result() {
    let mut world = World::new(2).await;
    world.start("spill").await;
    // The SHA-256 of `whole` starts with this.
    let ended = "ended cut\n[The whole output is kept; do not run it again. Read a part of it: file_path \"blob:5d5766cf2d787016\" with offset and limit.] [\"5d5766cf\"]";
    world.expect(&["granted", ended, ENDED]).await;
}

#[tokio::test]
async fn i8_a_known_credential_in_output_reaches_neither_the_log_nor_a_viewer() {
    agentd_text::register_secret(SECRET);
    let mut world = World::new(2).await;
    world.start("leak").await;
    assert_eq!(world.next().await, "granted");
    let (mut seen, mut blob) = (String::new(), Vec::new());
    while blob.is_empty() {
        let message = timeout(Duration::from_secs(60), world.notes.recv()).await;
        let SessionMsg::Tool { event, .. } = message.unwrap().unwrap() else {
            panic!("the worker has a result first");
        };
        if let RunEvent::Ended(_, blobs) = &event {
            blob = blobs.iter().flat_map(|blob| blob.bytes().to_vec()).collect();
        }
        seen = format!("{seen}{event:?}");
    }
    assert!(!seen.contains(SECRET), "{seen}");
    for safe in [
        "live [redacted]",
        "read [redacted]",
        "shown [redacted]",
        "\"[redacted]\"",
    ] {
        assert!(seen.contains(safe), "{safe}: {seen}");
    }
    assert_eq!(String::from_utf8_lossy(&blob), "whole [redacted]");
}

#[tokio::test]
async fn i8_a_person_is_not_shown_a_known_credential() {
    agentd_text::register_secret(SECRET);
    let world = World::new(2).await;
    let handle = Handle::fixed("the tool executor", world.executor.clone());
    let registry = Registry::builtin(&ToolLimits::default());
    let input = json!({ "command": format!("echo {SECRET}") });
    let prepared = Box::new(registry.prepare("Bash", &input).unwrap());
    let workdir = world.dir.path().to_owned();
    let ask = |done| ToolMsg::Detail {
        prepared,
        workdir,
        done,
    };
    let detail = handle.call(Duration::from_secs(60), ask).await.unwrap();
    assert_eq!(detail.text, "echo [redacted]", "{detail:?}");
}

#[tokio::test]
async fn a_missing_working_directory_is_an_error_result() {
    let mut world = World::new(2).await;
    world.dir = tempfile::tempdir().unwrap();
    let path = world.dir.path().to_owned();
    std::fs::remove_dir(&path).unwrap();
    world.start("read").await;
    assert_eq!(world.next().await, "granted");
    let note = world.next().await;
    assert!(note.contains("cannot open the working directory"), "{note}");
}

#[tokio::test(start_paused = true)]
async fn an_executor_that_is_down_is_an_error_result_in_the_end() {
    let mut world = World::new(2).await;
    world.executor.stop_and_wait(None, None).await.unwrap();
    world.start("read").await;
    let note = world.next().await;
    assert!(note.contains("nothing was done"), "{note}");
}

#[tokio::test]
async fn the_detail_of_a_call_is_made_outside_the_mailbox() {
    let world = World::new(2).await;
    let handle = Handle::fixed("the tool executor", world.executor.clone());
    let registry = Registry::builtin(&ToolLimits::default());
    let path = world.dir.path().join("f");
    let prepared = registry
        .prepare("Write", &json!({ "file_path": path, "content": "1\n" }))
        .unwrap();
    let workdir = world.dir.path().to_owned();
    let detail = handle
        .call(Duration::from_secs(60), |done| ToolMsg::Detail {
            prepared: Box::new(prepared),
            workdir,
            done,
        })
        .await
        .unwrap();
    assert_eq!(detail.text, "--- /dev/null\n+++ b/f\n@@ -0,0 +1 @@\n+1\n");
    assert_eq!(detail.binding.unwrap().files["f"], "absent");
    assert_eq!(EffectClass::Write, registry.get("Write").unwrap().effect);
}
