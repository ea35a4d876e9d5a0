//! Tests when the tree gives up, and when it does not.

use super::world::{How, World};
use crate::children::Child;
use agentd_store::SessionLog as _;
use std::time::Duration;

#[tokio::test(start_paused = true)]
async fn three_failures_of_a_singleton_within_a_minute_are_tolerated_and_the_fourth_is_fatal() {
    for child in [Child::Feed, Child::SessionStore, Child::LoopSupervisor] {
        let world = World::new().await;
        for times in 1..=3 {
            world.bring_down(&child, How::Kill);
            world.restarted(times).await;
        }
        world.assert_it_works().await;
        world.bring_down(&child, How::Kill);
        let why = format!("{child} failed more than 3 times within a minute");
        assert_eq!(world.fatal().await, why);
    }
}

#[tokio::test(start_paused = true)]
async fn failures_a_minute_apart_are_always_tolerated() {
    let world = World::new().await;
    for times in 1..=9 {
        world.bring_down(&Child::Feed, How::Kill);
        world.restarted(times).await;
        world.pass(Duration::from_millis(20_001)).await;
    }
    world.assert_it_works().await;
}

#[tokio::test(start_paused = true)]
async fn failures_of_different_singletons_do_not_add_up() {
    let world = World::new().await;
    for times in 0..3 {
        for (nth, child) in [Child::Feed, Child::PermissionGate, Child::ToolExecutor]
            .iter()
            .enumerate()
        {
            world.bring_down(child, How::Kill);
            world.restarted(times * 3 + nth as u64 + 1).await;
        }
    }
    world.assert_it_works().await;
}

#[tokio::test(start_paused = true)]
async fn starting_a_singleton_is_retried_while_another_is_down() {
    for (first, second) in [
        (Child::PermissionGate, Child::SessionStore),
        (Child::SessionStore, Child::PermissionGate),
    ] {
        let world = World::new().await;
        let before = world.ids();
        world.bring_down(&first, How::Kill);
        world.bring_down(&second, How::Kill);
        world.restarted(2).await;
        let replaced = [Child::SessionStore, Child::PermissionGate, Child::LoopSupervisor];
        assert_eq!(world.replaced(&before), replaced);
        world.assert_it_works().await;
    }
}

#[tokio::test(start_paused = true)]
async fn i7_a_gate_that_cannot_read_its_rules_is_not_started_and_that_is_fatal() {
    let world = World::new().await;
    world.log.close().await.unwrap();
    world.bring_down(&Child::PermissionGate, How::Kill);
    let why = world.fatal().await;
    assert_eq!(
        why,
        "the permission gate failed more than 3 times within a minute"
    );
}

#[tokio::test(start_paused = true)]
async fn a_store_that_stopped_for_good_is_fatal() {
    let world = World::new().await;
    world.log.break_down("the disk is gone");
    assert_eq!(world.fatal().await, "the disk is gone");
    assert_eq!(world.health.borrow().restarts, 0);
}

#[tokio::test(start_paused = true)]
async fn a_store_that_stopped_for_good_while_its_actor_was_down_is_fatal() {
    let world = World::new().await;
    world.bring_down(&Child::SessionStore, How::Kill);
    world.log.break_down("the disk is gone");
    assert_eq!(world.fatal().await, "the disk is gone");
}
