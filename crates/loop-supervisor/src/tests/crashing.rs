//! Loops that crash.

use super::world::{World, input, rename};
use agentd_actor_kit::SupervisorMsg;
use agentd_protocol::{FaultClass, LoopLimits, RunState};
use agentd_turn::Command;

#[tokio::test(start_paused = true)]
async fn i6_a_crashed_loop_is_woken_again_and_its_turn_goes_on() {
    let mut world = World::new().await;
    let other = world.create_with(LoopLimits::default(), None).await;
    let session = world.create_with(LoopLimits::default(), None).await;
    world.panic_at_starts(1);
    let lost = world.post(session, Command::Send(input("go")));
    // The handler that panicked had not sent its append: nobody was told otherwise.
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
    assert_eq!(overlay[&session].state, RunState::Faulted);
    world
        .ask(
            session,
            Command::Resume {
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
