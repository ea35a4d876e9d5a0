//! A store that refuses, does not answer, or goes down.

use super::peers::Trick;
use super::world::{World, input, rename};
use agentd_protocol::{FaultClass, LoopLimits};
use agentd_store::{Outcome, Placement as _};
use agentd_turn::Command;

#[tokio::test(start_paused = true)]
async fn i9_a_loop_whose_append_is_fenced_stops_and_its_state_is_forgotten() {
    let mut world = World::new().await;
    let session = world.create().await;
    let model = world.model().await;
    // Another owner takes the session.
    world.strings.log.claim(session).await.unwrap();
    let fault = world.ask(session, rename("mine")).await.unwrap_err();
    assert_eq!(fault.class, FaultClass::Unavailable);
    model.gone().await;
    world.until_cold(session).await;
    assert!(!world.kinds(session).await.contains(&"session.updated"));
    // A command claims it again, and the turn continues from the log.
    world.ask(session, rename("again")).await.unwrap();
    assert_eq!(world.model().await.job.attempt, 2);
}

#[tokio::test(start_paused = true)]
async fn i1_without_an_answer_of_the_store_nothing_is_acknowledged() {
    for trick in [
        Trick::Drop,
        Trick::WriteAndDrop,
        Trick::Swallow,
        Trick::Answer(Outcome::Unknown),
    ] {
        let world = World::new().await;
        let session = world.create_with(LoopLimits::default(), None).await;
        let told = format!("{trick:?}");
        world.trick(trick);
        let fault = world.ask(session, rename("x")).await.unwrap_err();
        assert_eq!(fault.class, FaultClass::Storage, "{told}");
        world.ask(session, rename("y")).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_turn_goes_on_after_the_store_lost_an_append() {
    let mut world = World::new().await;
    let session = world.create().await;
    world.trick(Trick::Drop);
    world.model().await.answer("done");
    let second = world.model().await;
    assert_eq!(second.job.attempt, 2);
    second.answer("done");
    world.until(session, "turn.finished").await;
}

/// Found by the simulator: the list row is read without waiting for the writer, so it may be older than a pending append.
#[tokio::test(start_paused = true)]
async fn i6_an_input_that_a_slow_disk_keeps_after_all_is_not_forgotten() {
    let mut world = World::new().await;
    let session = world.create_with(LoopLimits::default(), None).await;
    world.trick(Trick::Stall);
    let fault = world
        .ask(session, Command::Send(input("do it")))
        .await
        .unwrap_err();
    assert_eq!(fault.class, FaultClass::Storage);
    world.model().await.gone().await;
    // No further command arrives, and the turn begins anyway.
    world.model().await.answer("done");
    world.until(session, "turn.finished").await;
}
