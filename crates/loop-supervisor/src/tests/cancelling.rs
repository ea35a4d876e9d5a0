//! Cancelling in every phase: everything stops, and every call gets its end.

use super::peers::Trick;
use super::puppets::{bash, read};
use super::world::{CANCEL, World, assert_every_call_has_one_result};
use agentd_protocol::{EndReason, EventBody, FailureClass, RunState, SessionId, ToolStatus, VerdictKind};
use std::time::Duration;

async fn cancel(world: &mut World, session: SessionId) {
    world.ask(session, CANCEL).await.unwrap();
    let events = world.events(session).await;
    assert_every_call_has_one_result(&events);
    let Some(EventBody::TurnFinished(finished)) = events.last().map(|event| &event.body) else {
        panic!("{:?}", world.kinds(session).await);
    };
    assert_eq!(finished.reason, EndReason::Cancelled);
}

#[tokio::test(start_paused = true)]
async fn a_streaming_call_is_killed_and_its_text_is_kept() {
    let mut world = World::new().await;
    let session = world.create().await;
    let model = world.model().await;
    model.text("half a sen");
    tokio::task::yield_now().await;
    cancel(&mut world, session).await;
    model.gone().await;
    let partial = world
        .events(session)
        .await
        .into_iter()
        .find_map(|event| match event.body {
            EventBody::ModelFailed(failed) => failed.partial,
            _ => None,
        });
    assert_eq!(partial.as_deref(), Some("half a sen"));
}

#[tokio::test(start_paused = true)]
async fn i3_calls_that_are_being_judged_are_closed() {
    let mut world = World::new().await;
    let session = world.create().await;
    *world.strings.hang.lock().unwrap() = true;
    world.model().await.call(&[bash("true"), read("a")]);
    while world.strings.hanging.lock().unwrap().len() < 2 {
        tokio::task::yield_now().await;
    }
    cancel(&mut world, session).await;
    world.strings.hanging.lock().unwrap().clear();
    assert!(world.no_job());
}

#[tokio::test(start_paused = true)]
async fn i3_an_open_approval_is_withdrawn_and_its_call_closed() {
    let mut world = World::new().await;
    let session = world.create().await;
    world.verdict("Bash", Some(VerdictKind::Ask));
    world.model().await.call(&[bash("true")]);
    world.until(session, "approval.asked").await;
    cancel(&mut world, session).await;
    assert!(world.kinds(session).await.contains(&"approval.decided"));
}

#[tokio::test(start_paused = true)]
async fn i4_a_call_whose_intent_is_on_the_way_to_the_store_never_starts() {
    let mut world = World::new().await;
    let session = world.create().await;
    world.trick(Trick::Swallow);
    world.model().await.call(&[bash("true")]);
    world.until(session, "tool.started").await;
    let answer = world.post(session, CANCEL);
    tokio::task::yield_now().await;
    let done = world.strings.swallowed.lock().unwrap().pop().unwrap();
    let head = world.events(session).await.len() as u64;
    // The loop cancels before it learns of the commit: the paused clock only advances when every task is idle. The end
    // is not durable yet, so it is not announced.
    world.pass(Duration::from_millis(1)).await;
    assert!(!world.tells(session, RunState::Idle), "idle is told too early");
    done.answer(agentd_store::Outcome::Committed { head, cursor: 0 });
    answer.await.unwrap().unwrap();
    world.until_state(session, RunState::Idle).await;
    assert!(world.no_job());
    assert_every_call_has_one_result(&world.events(session).await);
}

#[tokio::test(start_paused = true)]
async fn i3_a_running_tool_is_killed_and_its_late_result_ignored() {
    let mut world = World::new().await;
    let session = world.create().await;
    world.model().await.call(&[bash("sleep 1000")]);
    let tool = world.tool().await;
    let loop_ref = tool.job.to.clone();
    let (tool_call, attempt) = (tool.job.tool_call, tool.job.attempt);
    cancel(&mut world, session).await;
    tool.gone().await;
    let late = agentd_protocol::ToolOutcome::text(ToolStatus::Ok, "late");
    let event = agentd_actor_kit::RunEvent::Ended(Box::new(late), Vec::new());
    loop_ref
        .cast(agentd_actor_kit::SessionMsg::Tool {
            tool_call,
            attempt,
            event,
        })
        .unwrap();
    world.ask(session, super::world::rename("after")).await.unwrap();
    assert_every_call_has_one_result(&world.events(session).await);
}

#[tokio::test(start_paused = true)]
async fn a_back_off_ends_at_once() {
    let mut world = World::new().await;
    let session = world.create().await;
    world.model().await.fail(FailureClass::Overloaded, Some(3_000));
    world.until(session, "model.failed").await;
    cancel(&mut world, session).await;
    world.pass(std::time::Duration::from_secs(10)).await;
    assert!(world.no_job());
}

#[tokio::test(start_paused = true)]
async fn cancelling_nothing_is_a_conflict() {
    let mut world = World::new().await;
    let session = world.create().await;
    world.model().await.answer("done");
    world.until(session, "turn.finished").await;
    let fault = world.ask(session, CANCEL).await.unwrap_err();
    assert_eq!(fault.class, agentd_protocol::FaultClass::Conflict);
}
