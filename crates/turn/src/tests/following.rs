//! Sub-agents follow their parent: a stricter mode, a pause and its end.

use super::delegating::{child, delegate, parent};
use super::world::*;
use crate::*;
use agentd_protocol::*;

fn update(mode: PermissionMode) -> Command {
    Command::Update {
        expect: None,
        title: None,
        model: None,
        mode: Some(mode),
        labels: None,
        budget: None,
    }
}

fn pause() -> Command {
    Command::Pause { reason: "x".into() }
}

fn resume() -> Command {
    Command::Resume {
        moved: None,
        reason: "x".into(),
    }
}

fn mode(world: &World) -> PermissionMode {
    world.agent.durable().settings.as_ref().unwrap().mode
}

#[test]
fn whatever_concerns_those_below_has_them_look() {
    let mut world = parent(8);
    delegate(&mut world, &["Task", "Task"]);
    let children: Vec<_> = world.children.iter().map(|(_, child)| *child).collect();
    for command in [pause(), resume(), update(PermissionMode::Plan)] {
        world.led.clear();
        world.command(command).unwrap();
        let mut led = world.led.clone();
        led.sort();
        let mut all = children.clone();
        all.sort();
        assert_eq!(led, all);
    }
    world.led.clear();
    world
        .command(Command::Update {
            expect: None,
            title: Some("another".into()),
            model: None,
            mode: None,
            labels: None,
            budget: None,
        })
        .unwrap();
    assert!(world.led.is_empty(), "a title is the parent's alone");
}

#[test]
fn i7_a_child_takes_the_stricter_mode_of_its_parent_before_its_next_step_and_never_the_looser_one() {
    let mut world = child(1);
    assert_eq!(mode(&world), PermissionMode::Default);
    world.look_above(PermissionMode::Plan, false);
    assert_eq!(
        mode(&world),
        PermissionMode::Plan,
        "before the first step of one that was made meanwhile"
    );
    assert_eq!(world.models.len(), 1);
    world.command(Command::Follow).unwrap();
    assert!(!world.agent.at_rest(), "it looks");
    world.look_above(PermissionMode::Yolo, false);
    assert_eq!(mode(&world), PermissionMode::Plan);
    world.check_log();
}

#[test]
fn a_child_is_paused_with_its_parent_and_goes_on_with_it() {
    let mut world = child(1);
    world.look_above(PermissionMode::Default, true);
    assert!(
        world.models.is_empty(),
        "one that is made in a pause takes no step"
    );
    assert_eq!(world.state(), RunState::Paused);
    assert!(world.agent.summary(Timestamp(world.now)).paused && world.agent.at_rest());
    let refused = world.command(resume()).unwrap_err();
    assert_eq!(refused.code, "paused_with_parent");
    world.crash();
    world.input(Input::Recover);
    assert_eq!(world.state(), RunState::Paused, "it is durable");
    world.command(Command::Follow).unwrap();
    world.look_above(PermissionMode::Default, false);
    assert_ne!(world.state(), RunState::Paused);
    world.look_above(PermissionMode::Default, false);
    assert_eq!(world.models.len(), 1, "the spending of the tree is read again");
    world.check_log();
}

/// Found by the simulator: the parent takes a faulted child for ended, and does not tell it of the end of the pause.
#[test]
fn i6_a_child_that_is_paused_with_a_parent_that_is_gone_ends() {
    let mut world = child(1);
    world.look_above(PermissionMode::Default, true);
    world.restart();
    assert!(!world.agent.at_rest(), "it looks");
    world.look_above(PermissionMode::Default, true);
    assert_eq!(world.state(), RunState::Paused);
    let refused = world.command(resume()).unwrap_err();
    assert_eq!(refused.code, "paused_with_parent");
    world.look_in_vain();
    assert_ne!(world.state(), RunState::Paused);
    world.look_in_vain();
    assert_eq!(world.told[0].reason, Some(EndReason::Cancelled));
    world.check_log();
}

#[test]
fn a_pause_of_the_child_alone_outlives_that_of_its_parent() {
    let mut world = child(1);
    world.command(pause()).unwrap();
    world.look_above(PermissionMode::Default, true);
    world.command(Command::Follow).unwrap();
    world.look_above(PermissionMode::Default, false);
    assert_eq!(world.state(), RunState::Paused);
    world.command(resume()).unwrap();
    assert_ne!(world.state(), RunState::Paused);
    world.check_log();
}

#[test]
fn only_the_last_look_counts_and_one_without_an_answer_costs_no_turn() {
    let mut world = child(1);
    let stale = world.tree.unwrap();
    world.command(Command::Follow).unwrap();
    assert_ne!(world.tree, Some(stale));
    world.reply_to(stale, Answer::Nobody("it cannot be read".into()));
    assert!(
        world.told.is_empty() && world.models.is_empty(),
        "it is not waited for any more"
    );
    world.look_above(PermissionMode::Default, false);
    assert_eq!(
        world.models.len(),
        1,
        "the answer to the second is for the step, too"
    );
    world.command(Command::Follow).unwrap();
    let number = world.tree.take().unwrap();
    world.reply_to(number, Answer::Nobody("it cannot be read".into()));
    assert!(world.told.is_empty(), "the next step asks again");
    world.check_log();
}
