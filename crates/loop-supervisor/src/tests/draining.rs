//! Drain.

use super::puppets::bash;
use super::world::{World, input};
use agentd_actor_kit::{CallEvent, SupervisorMsg};
use agentd_protocol::{FaultClass, LoopLimits, RunState, ToolStatus, WaitReason};
use agentd_turn::Command;

#[tokio::test(start_paused = true)]
async fn a_drain_lets_a_running_call_end_and_starts_nothing_after_it() {
    let mut world = World::new().await;
    let session = world.create().await;
    let idle = world.create_with(LoopLimits::default(), None).await;
    world.model().await.call(&[bash("true")]);
    let tool = world.tool().await;
    let (done, drained) = agentd_actor_kit::Done::channel();
    world
        .supervisor
        .cast(SupervisorMsg::Drain {
            deadline_ms: 30_000,
            done,
        })
        .unwrap();
    let fault = world.ask(idle, Command::Send(input("more"))).await.unwrap_err();
    assert_eq!(
        (fault.class, fault.code.as_str()),
        (FaultClass::Unavailable, "draining")
    );
    tool.end(ToolStatus::Ok, "fine");
    assert_eq!(drained.await, Ok(0));
    assert_eq!(world.kinds(session).await.last(), Some(&"tool.finished"));
    assert!(world.no_job());
    // The next start continues the turn.
    world.crash().await;
    world.model().await.answer("done");
    world.until(session, "turn.finished").await;
}

#[tokio::test(start_paused = true)]
async fn at_the_deadline_of_a_drain_the_rest_is_killed_and_counted() {
    let mut world = World::new().await;
    let session = world.create().await;
    let model = world.model().await;
    let left = world
        .get(|done| SupervisorMsg::Drain {
            deadline_ms: 30_000,
            done,
        })
        .await;
    assert_eq!(left, 1);
    model.gone().await;
    world.crash().await;
    let again = world.model().await;
    assert_eq!((again.job.ask.session, again.job.attempt), (session, 2));
}

#[tokio::test(start_paused = true)]
async fn a_drain_does_not_wait_for_a_call_that_stands_in_line() {
    let mut world = World::new().await;
    let session = world.create().await;
    let model = world.model().await;
    model.say(CallEvent::Waiting(None));
    world
        .until_state(session, RunState::Waiting(WaitReason::Permit))
        .await;
    let left = world
        .get(|done| SupervisorMsg::Drain {
            deadline_ms: 30_000,
            done,
        })
        .await;
    assert_eq!(left, 0);
    model.gone().await;
    assert_eq!(world.kinds(session).await.last(), Some(&"model.failed"));
    assert!(world.no_job());
    world.crash().await;
    let again = world.model().await;
    assert_eq!((again.job.ask.session, again.job.attempt), (session, 2));
    again.answer("done");
    world.until(session, "turn.finished").await;
}
