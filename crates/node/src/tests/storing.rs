//! Tests failures of the session store and the loop supervisor.

use super::script::{MODEL, READ, TALK};
use super::world::{How, World, assert_gap_free, attempts, kinds, rename};
use crate::children::Child;
use agentd_protocol::{Event, EventBody};
use std::time::Duration;

/// After the restart, the open turn continued by itself in a second attempt, exactly once.
async fn assert_the_turn_went_on(world: &World, session: agentd_protocol::SessionId) {
    let events = world.finished(session).await;
    assert_eq!(attempts(&events), [1, 2]);
    assert!(
        kinds(&events).contains(&"session.recovered"),
        "{:?}",
        kinds(&events)
    );
    // No second loop works on it: nothing follows the end.
    world.pass(Duration::from_secs(30)).await;
    assert_eq!(kinds(&world.events(session).await), kinds(&events));
}

#[tokio::test(start_paused = true)]
async fn i1_i2_a_store_failure_restarts_the_supervisor_and_open_turns_continue() {
    let world = World::new().await;
    let before = world.ids();
    let session = world.create(TALK).await;
    world.until(session, "model.started").await;
    world.ask(session, rename("kept")).await.unwrap().unwrap();
    world.bring_down(&Child::SessionStore, How::Kill);
    world.restarted(1).await;
    assert_eq!(
        world.replaced(&before),
        [Child::SessionStore, Child::LoopSupervisor]
    );
    assert_the_turn_went_on(&world, session).await;
    assert_eq!(titles(&world.events(session).await), ["kept"]);
    world.assert_it_works().await;
}

#[tokio::test(start_paused = true)]
async fn i9_the_supervisor_fails_alone_and_open_turns_continue() {
    for how in [How::Kill, How::Panic] {
        let world = World::new().await;
        let before = world.ids();
        let session = world.create(TALK).await;
        world.until(session, "model.started").await;
        world.bring_down(&Child::LoopSupervisor, how);
        world.restarted(1).await;
        assert_eq!(world.replaced(&before), [Child::LoopSupervisor], "{how:?}");
        assert_the_turn_went_on(&world, session).await;
        world.assert_it_works().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_turn_survives_a_failure_of_store_and_supervisor() {
    for (first, second) in [
        (Child::SessionStore, Child::LoopSupervisor),
        (Child::LoopSupervisor, Child::SessionStore),
    ] {
        let world = World::new().await;
        let session = world.create(READ).await;
        world.until(session, "model.started").await;
        world.bring_down(&first, How::Kill);
        world.bring_down(&second, How::Kill);
        let events = world.finished(session).await;
        assert_eq!(
            events
                .iter()
                .filter(|event| event.body.kind() == "tool.finished")
                .count(),
            1
        );
        world.assert_it_works().await;
        assert_eq!(world.health.borrow().fatal, None);
    }
}

#[tokio::test(start_paused = true)]
async fn i1_commands_acknowledged_during_a_failure_are_in_the_log() {
    for child in [Child::SessionStore, Child::LoopSupervisor] {
        let world = World::new().await;
        let mut sessions = Vec::new();
        for _ in 0..8 {
            sessions.push(world.create(TALK).await);
        }
        let asks = |session, title| {
            let world = &world;
            async move { (session, title, world.ask(session, rename(title)).await) }
        };
        // Some requests are sent before the failure, some during it, some after it.
        let mut first = std::pin::pin!(asks(sessions[0], "zero"));
        let acknowledged = first.as_mut().await;
        let asking = async {
            tokio::join!(
                asks(sessions[1], "one"),
                asks(sessions[2], "two"),
                asks(sessions[3], "three"),
                async {
                    tokio::task::yield_now().await;
                    asks(sessions[4], "four").await
                },
                async {
                    world.bring_down(&child, How::Kill);
                    asks(sessions[5], "five").await
                },
                async {
                    world.restarted(1).await;
                    asks(sessions[6], "six").await
                },
            )
        };
        let (a, b, c, d, e, f) = asking.await;
        let mut kept = 0;
        for (session, title, answer) in [acknowledged, a, b, c, d, e, f] {
            let acknowledged = matches!(answer, Ok(Ok(_)));
            kept += u32::from(acknowledged);
            let there = titles(&world.events(session).await) == [title];
            assert!(
                there || !acknowledged,
                "{child}: {title} was acknowledged and is lost"
            );
        }
        assert!(kept >= 2, "{child}: {kept}");
        for session in sessions {
            assert_gap_free(&world.finished(session).await);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn failing_all_other_actors_costs_only_attempts() {
    let world = World::new().await;
    let before = world.ids();
    let session = world.create(READ).await;
    world.until(session, "model.started").await;
    let all = [
        Child::Feed,
        Child::PermissionGate,
        Child::ModelClient(MODEL.to_owned()),
        Child::ToolExecutor,
        Child::SessionStore,
        Child::LoopSupervisor,
    ];
    for child in &all {
        world.bring_down(child, How::Kill);
    }
    world.finished(session).await;
    world.assert_it_works().await;
    assert_eq!(world.replaced(&before).len(), all.len());
    assert_eq!(world.health.borrow().fatal, None);
}

fn titles(events: &[Event]) -> Vec<String> {
    let title = |event: &Event| match &event.body {
        EventBody::SessionUpdated(updated) => updated.title.clone(),
        _ => None,
    };
    events.iter().filter_map(title).collect()
}
