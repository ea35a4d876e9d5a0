//! Loops that crash.

use super::world::{World, input, rename};
use agentd_actor_kit::{NewSubagent, SubagentSource, SupervisorMsg};
use agentd_protocol::{Fault, FaultClass, LoopLimits, RunState, SessionCreated};
use agentd_turn::Command;
use async_trait::async_trait;
use serde_json::json;

#[tokio::test(start_paused = true)]
async fn i6_a_crashed_loop_is_woken_again_and_its_turn_goes_on() {
    let mut world = World::new().await;
    let other = world.create_with(LoopLimits::default(), None).await;
    let session = world.create_with(LoopLimits::default(), None).await;
    world.panic_at_starts(1);
    let lost = world.post(session, Command::Send(input("go")));
    // The handler panicked before it sent its append: the caller was not told that it succeeded.
    assert!(lost.await.is_err());
    world.ask(other, rename("still here")).await.unwrap();
    world.ask(session, Command::Send(input("go"))).await.unwrap();
    world.model().await.answer("done");
    world.until(session, "turn.finished").await;
    assert_eq!(world.stats().await.crashes, 1);
}

#[tokio::test(start_paused = true)]
async fn a_loop_that_crashes_with_an_open_turn_is_woken_without_being_asked() {
    let mut world = World::new().await;
    let session = world.create().await;
    world.panic_at_starts(1);
    world
        .model()
        .await
        .fail(agentd_protocol::FailureClass::Transient, None);
    let again = world.model().await;
    assert_eq!(again.job.ask.session, session);
    assert_eq!(world.stats().await.crashes, 1);
}

#[tokio::test(start_paused = true)]
async fn three_crashes_in_five_minutes_fault_a_session_until_it_is_resumed() {
    let mut world = World::new().await;
    let session = world.create_with(LoopLimits::default(), None).await;
    world.panic_at_starts(3);
    for _ in 0..3 {
        assert!(world.post(session, Command::Send(input("go"))).await.is_err());
    }
    let fault = world.ask(session, rename("x")).await.unwrap_err();
    assert_eq!(
        (fault.class, fault.code.as_str()),
        (FaultClass::Conflict, "faulted")
    );
    let overlay = world.get(|done| SupervisorMsg::Overlay { done }).await;
    assert_eq!(overlay[&session].status.state, RunState::Faulted);
    world
        .ask(
            session,
            Command::Resume {
                moved: None,
                reason: "looked at it".into(),
            },
        )
        .await
        .unwrap();
    world.ask(session, Command::Send(input("go"))).await.unwrap();
    world.model().await.answer("done");
    world.until(session, "turn.finished").await;
}

#[tokio::test(start_paused = true)]
async fn an_evicted_session_is_gone_with_its_kids_and_comes_back_from_its_log() {
    let mut world = World::new().await;
    let session = world.create().await;
    let model = world.model().await;
    world.get(|done| SupervisorMsg::Evict { session, done }).await;
    model.gone().await;
    assert_eq!(world.stats().await.hot, 0);
    world.ask(session, rename("x")).await.unwrap();
    assert_eq!(world.model().await.job.attempt, 2);
}

/// Sub-agents configured like their parents.
#[derive(Debug)]
struct Alike;

#[async_trait]
impl SubagentSource for Alike {
    async fn first_event(&self, new: NewSubagent) -> Result<SessionCreated, Fault> {
        Ok(SessionCreated {
            parent: Some(new.parent),
            lineage: Some(Box::new(new.lineage)),
            ..new.settings
        })
    }
}

/// A parent whose sub-agent crashes too often: immediately, or when it runs a tool.
async fn parent_of_a_faulted(at_once: bool) {
    let mut world = World::new().await;
    world.make_subagents(Box::new(Alike));
    let session = world.create().await;
    let parent = world.model().await;
    if at_once {
        world.panic_at_starts(3);
    }
    parent.call(&[("Task", json!({ "description": "a part", "prompt": "do a part" }))]);
    if !at_once {
        let child = world.model().await;
        world.panic_at_starts(3);
        child.call(&[("Read", json!({ "file_path": "a" }))]);
    }
    let told = world.model().await;
    assert_eq!(told.job.ask.session, session, "the parent goes on");
    let kinds = world.kinds(session).await;
    let finished = kinds.iter().filter(|kind| **kind == "subagent.finished");
    assert_eq!(finished.count(), 1, "{kinds:?}");
    told.answer("it failed");
    world.until(session, "turn.finished").await;
}

#[tokio::test(start_paused = true)]
async fn i6_a_sub_agent_that_faults_at_work_leaves_nobody_waiting() {
    parent_of_a_faulted(false).await;
}

#[tokio::test(start_paused = true)]
async fn i6_a_sub_agent_that_faults_before_it_is_there_leaves_nobody_waiting() {
    parent_of_a_faulted(true).await;
}
