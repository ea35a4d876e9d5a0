//! Going cold and coming back.

use super::puppets::bash;
use super::world::{World, input, rename};
use crate::Bounds;
use agentd_actor_kit::{LoopId, SupervisorMsg};
use agentd_protocol::{
    Basis, Decision, EventBody, FailureClass, LoopLimits, Scope, SessionId, ToolStatus, VerdictKind,
};
use agentd_turn::Command;
use proptest::prelude::*;
use std::time::Duration;
use tokio::time::Instant;

async fn titles(world: &World, session: SessionId) -> Vec<String> {
    let title = |body: EventBody| match body {
        EventBody::SessionUpdated(updated) => updated.title,
        _ => None,
    };
    world
        .events(session)
        .await
        .into_iter()
        .filter_map(|event| title(event.body))
        .collect()
}

#[tokio::test(start_paused = true)]
async fn an_idle_session_leaves_memory_and_comes_back() {
    let mut world = World::new().await;
    let session = world.create().await;
    world.model().await.answer("done");
    world.until(session, "turn.finished").await;
    assert_eq!(world.stats().await.hot, 1);
    let idle = Instant::now();
    world.until_cold(session).await;
    assert_eq!(idle.elapsed().as_secs(), 60);
    assert_eq!(world.stats().await.hot, 0);
    world.ask(session, Command::Send(input("go"))).await.unwrap();
    world.model().await.answer("done");
    world.until(session, "turn.finished").await;
    // Waking an idle session writes nothing by itself.
    assert_eq!(
        world
            .kinds(session)
            .await
            .iter()
            .filter(|kind| **kind == "session.recovered")
            .count(),
        0
    );
}

#[tokio::test(start_paused = true)]
async fn a_session_that_was_created_and_left_alone_leaves_at_once() {
    let mut world = World::new().await;
    let before = Instant::now();
    let session = world.create_with(LoopLimits::default(), None).await;
    world.until_cold(session).await;
    assert!(before.elapsed() < Duration::from_secs(5));
    assert_eq!(world.stats().await.hot, 0);
}

#[tokio::test(start_paused = true)]
async fn a_closed_session_leaves_at_once() {
    let mut world = World::new().await;
    let session = world.create_with(LoopLimits::default(), None).await;
    let before = Instant::now();
    world
        .ask(
            session,
            Command::Close {
                reason: "done".into(),
                force: false,
            },
        )
        .await
        .unwrap();
    world.until_cold(session).await;
    assert!(before.elapsed() < Duration::from_millis(100));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    /// Commands at random distances from the passivation: each is answered, and is in the log once and in order.
    #[test]
    fn i1_passivation_loses_no_command(gaps in prop::collection::vec(prop_oneof![
        Just(0u64), Just(59_999), Just(60_000), Just(60_001), 59_990u64..60_010, 0u64..130_000,
    ], 1..12)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let world = World::new().await;
            let session = world.create_with(LoopLimits::default(), None).await;
            let mut answers = Vec::new();
            for (n, gap) in gaps.iter().enumerate() {
                world.pass(Duration::from_millis(*gap)).await;
                answers.push(world.post(session, rename(&n.to_string())));
            }
            for answer in answers {
                answer.await.expect("an answer").expect("a good one");
            }
            let expected: Vec<String> = (0..gaps.len()).map(|n| n.to_string()).collect();
            assert_eq!(titles(&world, session).await, expected);
        });
    }
}

#[tokio::test(start_paused = true)]
async fn i1_a_loop_that_wants_to_sleep_stays_for_a_command_on_its_way() {
    let mut world = World::new().await;
    let session = world.create().await;
    let model = world.model().await;
    let who = LoopId(model.job.to.get_id().pid());
    // The loop reported one command as handled when a second one was already in its mailbox.
    let answer = world.post(session, rename("in time"));
    let idle = SupervisorMsg::Idle {
        session,
        who,
        handled: 1,
        wake_at: None,
    };
    world.supervisor.cast(idle).unwrap();
    answer.await.unwrap().unwrap();
    assert_eq!(world.stats().await.hot, 1);
    // A report from an earlier incarnation is ignored.
    let other = world.create().await;
    let stranger = SupervisorMsg::Idle {
        session: other,
        who,
        handled: 1,
        wake_at: None,
    };
    world.supervisor.cast(stranger).unwrap();
    assert_eq!(world.stats().await.hot, 2);
}

#[tokio::test(start_paused = true)]
async fn a_session_that_waits_long_for_a_provider_is_cold_until_its_time() {
    let mut world = World::new().await;
    let session = world.create().await;
    let failed = Instant::now();
    let model = world.model().await;
    let worker = model.worker.clone();
    model.fail(FailureClass::RateLimited, Some(600_000));
    world.until_cold(session).await;
    assert!(failed.elapsed() < Duration::from_secs(5));
    let stats = world.stats().await;
    assert_eq!((stats.hot, stats.timed), (0, 1));
    // Its worker is gone, and the permit with it.
    worker.get_cell().wait(None).await.unwrap();
    let second = world.model().await;
    assert_eq!(second.job.attempt, 2);
    assert!(failed.elapsed() >= Duration::from_secs(600) && failed.elapsed() < Duration::from_secs(610));
}

#[tokio::test(start_paused = true)]
async fn a_session_that_waits_for_a_person_is_cold_until_the_answer() {
    let mut world = World::new().await;
    let session = world.create().await;
    world.verdict("Bash", Some(VerdictKind::Ask));
    world.model().await.call(&[bash("true")]);
    world.until_cold(session).await;
    world.pass(Duration::from_secs(86_400)).await;
    assert_eq!(world.stats().await.hot, 0);
    let events = world.events(session).await;
    let approval = events.iter().find_map(|event| match &event.body {
        EventBody::ApprovalAsked(asked) => Some(asked.approval),
        _ => None,
    });
    let decide = |decision| Command::Decide {
        approval: approval.unwrap(),
        decision,
        scope: Scope::Once,
        answer: None,
        message: None,
        basis: Some(Basis::Policy),
    };
    world.ask(session, decide(Decision::Allow)).await.unwrap();
    world.tool().await.end(ToolStatus::Ok, "fine");
    world.model().await.answer("done");
    world.until(session, "turn.finished").await;
    let late = world.ask(session, decide(Decision::Deny)).await.unwrap_err();
    assert_eq!(late.class, agentd_protocol::FaultClass::Conflict);
}

#[tokio::test(start_paused = true)]
async fn an_unattended_approval_is_denied_at_its_time_although_the_session_is_cold() {
    let mut world = World::new().await;
    let limits = LoopLimits {
        headless: true,
        unattended_ms: Some(600_000),
        ..LoopLimits::default()
    };
    let session = world.create_with(limits, Some("do it")).await;
    world.verdict("Bash", Some(VerdictKind::Ask));
    world.model().await.call(&[bash("true")]);
    let asked = Instant::now();
    world.model().await.answer("I was not allowed");
    assert!(asked.elapsed() >= Duration::from_secs(600));
    world.until(session, "turn.finished").await;
}

#[tokio::test(start_paused = true)]
async fn with_memory_full_of_sessions_a_command_waits_for_room() {
    let mut world = World::with(Bounds {
        hot: 1,
        waiting_for_room: 1,
        ..Bounds::default()
    })
    .await;
    let first = world.create().await;
    let model = world.model().await;
    let (second, third) = (world.clock.stamp().session(), world.clock.stamp().session());
    let mut waits = world.post(second, super::world::creation(LoopLimits::default(), None));
    let busy = world
        .ask(third, super::world::creation(LoopLimits::default(), None))
        .await
        .unwrap_err();
    assert_eq!(busy.class, agentd_protocol::FaultClass::Busy);
    assert!(waits.try_recv().is_err());
    model.answer("done");
    world.until_cold(first).await;
    waits.await.unwrap().unwrap();
}
