//! Workers that fail, panic, or answer too late.

use super::puppets::bash;
use super::world::{World, assert_every_call_has_one_result};
use agentd_actor_kit::{CallEvent, SupervisorMsg};
use agentd_protocol::{EventBody, FailureClass, RunState, ToolStatus, WaitReason};
use std::time::Duration;
use tokio::time::Instant;

#[tokio::test(start_paused = true)]
async fn the_result_of_a_kid_counts_although_its_end_is_seen_first() {
    let mut world = World::new().await;
    for _ in 0..50 {
        let session = world.create().await;
        // The answer and the exit are sent together: the supervision event overtakes the answer.
        world.model().await.answer("done");
        world.until(session, "turn.finished").await;
        assert!(!world.kinds(session).await.contains(&"model.failed"));
    }
}

#[tokio::test(start_paused = true)]
async fn i6_a_model_call_that_panics_is_made_again() {
    let mut world = World::new().await;
    let session = world.create().await;
    world.model().await.panic();
    let second = world.model().await;
    assert_eq!(second.job.attempt, 2);
    second.answer("done");
    world.until(session, "turn.finished").await;
    let failure = world
        .events(session)
        .await
        .into_iter()
        .find_map(|event| match event.body {
            EventBody::ModelFailed(failed) => Some(failed.class),
            _ => None,
        });
    assert_eq!(failure, Some(FailureClass::Internal));
}

#[tokio::test(start_paused = true)]
async fn i6_a_tool_that_panics_is_an_error_for_the_model() {
    let mut world = World::new().await;
    let session = world.create().await;
    world.model().await.call(&[bash("true")]);
    world.tool().await.panic();
    world.model().await.answer("it broke");
    world.until(session, "turn.finished").await;
    let events = world.events(session).await;
    assert_every_call_has_one_result(&events);
    let outcome = events.into_iter().find_map(|event| match event.body {
        EventBody::ToolFinished(finished) => Some(finished.outcome),
        _ => None,
    });
    let outcome = outcome.unwrap();
    assert_eq!(outcome.status, ToolStatus::Error);
    assert!(outcome.llm_text.contains("panicked"), "{}", outcome.llm_text);
}

#[tokio::test(start_paused = true)]
async fn what_an_earlier_attempt_says_is_ignored() {
    let mut world = World::new().await;
    let session = world.create().await;
    let first = world.model().await;
    first.say(CallEvent::Failed(agentd_turn::ModelFailure::new(
        FailureClass::Transient,
        "cut",
    )));
    let second = world.model().await;
    first.text("too late ");
    first.answer("too late");
    second.answer("in time");
    world.until(session, "turn.finished").await;
    let text = world
        .events(session)
        .await
        .into_iter()
        .find_map(|event| match event.body {
            EventBody::TurnFinished(finished) => Some(finished.text),
            _ => None,
        });
    assert_eq!(text.as_deref(), Some("in time"));
}

#[tokio::test(start_paused = true)]
async fn attempts_back_off_twice_as_long_each_time() {
    let mut world = World::new().await;
    let session = world.create().await;
    let mut model = world.model().await;
    for seconds in [1, 2, 4, 8, 16] {
        let failed = Instant::now();
        model.fail(FailureClass::Overloaded, None);
        model = world.model().await;
        let waited = failed.elapsed();
        let plain = Duration::from_secs(seconds);
        assert!(
            waited >= plain * 3 / 4 && waited <= plain * 5 / 4,
            "{waited:?} instead of {plain:?}"
        );
    }
    model.fail(FailureClass::Overloaded, None);
    world.until(session, "turn.finished").await;
}

#[tokio::test(start_paused = true)]
async fn the_servers_wish_wins_over_our_back_off() {
    let mut world = World::new().await;
    world.create().await;
    let failed = Instant::now();
    world.model().await.fail(FailureClass::RateLimited, Some(20_000));
    world.model().await;
    let waited = failed.elapsed();
    assert!(
        waited >= Duration::from_secs(20) && waited < Duration::from_secs(26),
        "{waited:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_call_without_a_permit_is_seen_to_wait_for_one() {
    let mut world = World::new().await;
    let session = world.create().await;
    let model = world.model().await;
    model.say(CallEvent::Waiting(None));
    world
        .until_state(session, RunState::Waiting(WaitReason::Permit))
        .await;
    let overlay = world.get(|done| SupervisorMsg::Overlay { done }).await;
    assert_eq!(
        overlay[&session].status.state,
        RunState::Waiting(WaitReason::Permit)
    );
    model.say(CallEvent::Granted { window: None });
    world.until_state(session, RunState::RunningModel).await;
}
