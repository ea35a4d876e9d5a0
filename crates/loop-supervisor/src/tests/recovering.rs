//! The whole supervisor is killed in each phase; another starts on the same log and continues.

use super::peers::Trick;
use super::puppets::{bash, read};
use super::world::{World, assert_every_call_has_one_result, assert_gap_free, creation, input};
use agentd_protocol::{Event, EventBody, FailureClass, LoopLimits, SessionId, ToolStatus, VerdictKind};
use agentd_turn::Command;
use std::time::Duration;

async fn finished(world: &mut World, session: SessionId) -> Vec<Event> {
    world.until(session, "turn.finished").await;
    let events = world.events(session).await;
    assert_gap_free(&events);
    assert_every_call_has_one_result(&events);
    events
}

fn outcomes(events: &[Event]) -> Vec<(ToolStatus, bool)> {
    let outcome = |event: &Event| match &event.body {
        EventBody::ToolFinished(finished) => {
            Some((finished.outcome.status, finished.outcome.outcome_unknown))
        }
        _ => None,
    };
    events.iter().filter_map(outcome).collect()
}

#[tokio::test(start_paused = true)]
async fn a_lost_model_call_is_made_again() {
    let mut world = World::new().await;
    let session = world.create().await;
    let first = world.model().await;
    world.crash().await;
    let second = world.model().await;
    assert_eq!((second.job.call, second.job.attempt), (first.job.call, 2));
    second.answer("done");
    let events = finished(&mut world, session).await;
    assert!(
        events
            .iter()
            .any(|event| event.body.kind() == "session.recovered")
    );
}

#[tokio::test(start_paused = true)]
async fn i1_i2_what_is_committed_after_the_restart_continues_too() {
    let mut world = World::new().await;
    world.trick(Trick::Stall);
    let session = world.clock.stamp().session();
    let lost = world.post(session, creation(LoopLimits::default(), Some("go")));
    while world.strings.queued.lock().unwrap().is_none() {
        tokio::task::yield_now().await;
    }
    world.crash().await;
    assert!(!matches!(lost.await, Ok(Ok(_))), "nobody has acknowledged it");
    world.pass(Duration::from_millis(500)).await;
    assert_eq!(world.stats().await.hot, 0, "the restart has not found it");
    // Its append is written with that of the next session.
    world.create().await;
    for _ in 0..2 {
        world.model().await.answer("done");
    }
    finished(&mut world, session).await;
}

#[tokio::test(start_paused = true)]
async fn i4_dangling_call_is_not_run_again() {
    let mut world = World::new().await;
    let session = world.create().await;
    world.model().await.call(&[bash("deploy")]);
    let tool = world.tool().await;
    world.crash().await;
    tool.gone().await;
    world.model().await.answer("I do not know what came of it");
    let events = finished(&mut world, session).await;
    assert_eq!(outcomes(&events), [(ToolStatus::Interrupted, true)]);
}

#[tokio::test(start_paused = true)]
async fn i4_a_call_that_may_be_repeated_is_run_again() {
    let mut world = World::new().await;
    let session = world.create().await;
    world.model().await.call(&[read("a")]);
    world.tool().await;
    world.crash().await;
    world.tool().await.end(ToolStatus::Ok, "text");
    world.model().await.answer("done");
    let events = finished(&mut world, session).await;
    assert_eq!(outcomes(&events), [(ToolStatus::Ok, false)]);
}

#[tokio::test(start_paused = true)]
async fn i3_calls_that_were_being_judged_are_judged_by_a_new_attempt() {
    let mut world = World::new().await;
    let session = world.create().await;
    *world.strings.hang.lock().unwrap() = true;
    world.model().await.call(&[bash("true")]);
    while world.strings.hanging.lock().unwrap().is_empty() {
        tokio::task::yield_now().await;
    }
    world.crash().await;
    *world.strings.hang.lock().unwrap() = false;
    let second = world.model().await;
    assert_eq!(second.job.attempt, 2);
    second.call(&[bash("true")]);
    world.tool().await.end(ToolStatus::Ok, "fine");
    world.model().await.answer("done");
    finished(&mut world, session).await;
}

#[tokio::test(start_paused = true)]
async fn a_back_off_goes_on_where_it_was() {
    let mut world = World::new().await;
    let session = world.create().await;
    world.model().await.fail(FailureClass::RateLimited, Some(20_000));
    world.until(session, "model.failed").await;
    let failed = tokio::time::Instant::now();
    world.crash().await;
    let second = world.model().await;
    assert!(failed.elapsed().as_secs() >= 19, "{:?}", failed.elapsed());
    second.answer("done");
    finished(&mut world, session).await;
}

#[tokio::test(start_paused = true)]
async fn a_session_that_waits_for_a_person_stays_cold_after_a_restart() {
    let mut world = World::new().await;
    let session = world.create().await;
    world.verdict("Bash", Some(VerdictKind::Ask));
    world.model().await.call(&[bash("true")]);
    world.until(session, "approval.asked").await;
    let before = world.events(session).await;
    world.crash().await;
    world.pass(Duration::from_secs(3_600)).await;
    assert_eq!(world.stats().await.hot, 0);
    assert_eq!(world.events(session).await, before);
}

#[tokio::test(start_paused = true)]
async fn an_idle_session_is_not_woken_by_a_restart() {
    let mut world = World::new().await;
    let session = world.create().await;
    world.model().await.answer("done");
    let before = finished(&mut world, session).await;
    world.crash().await;
    world.pass(Duration::from_secs(10)).await;
    assert_eq!(world.stats().await.hot, 0);
    world.ask(session, Command::Send(input("more"))).await.unwrap();
    let second = world.model().await;
    assert_eq!(second.job.messages.len(), 3);
    second.answer("done");
    let after = finished(&mut world, session).await;
    assert_eq!(after[..before.len()], before[..]);
}

#[tokio::test(start_paused = true)]
async fn many_open_turns_are_woken_at_a_measured_pace() {
    let mut world = World::new().await;
    for _ in 0..20 {
        world.create_with(LoopLimits::default(), Some("go")).await;
        world.model().await;
    }
    let before = tokio::time::Instant::now();
    world.crash().await;
    for _ in 0..20 {
        world.model().await;
    }
    // Five per tenth of a second.
    assert!(before.elapsed().as_millis() >= 300, "{:?}", before.elapsed());
}
