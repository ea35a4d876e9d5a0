//! Files are recorded while model calls run, and before the next effect.

use super::world::{World, config, created, ok};
use crate::{Answer, CheckpointRule, Config};
use agentd_protocol::{EventBody, LoopLimits, StopReason, VerdictKind, WorkspaceCheckpointed};
use serde_json::json;
use std::sync::Arc;

fn world(checkpoints: CheckpointRule) -> World {
    let config = Config {
        checkpoints,
        ..Config::clone(&config())
    };
    let mut world = World::configured(created(LoopLimits::default()), Arc::new(config));
    world.send("go");
    world
}

/// The files are recorded, or not.
fn recorded(world: &mut World, tree: Result<&str, &str>) {
    let id = world.recording.pop().expect("the turn asked for a recording");
    let taken = tree.map(|tree| WorkspaceCheckpointed {
        tree: tree.to_owned(),
        left_out: Vec::new(),
        kept: None,
        not_kept: None,
    });
    world.reply_to(id, Answer::Checkpoint(taken.map_err(str::to_owned)));
}

fn trees(world: &World) -> Vec<String> {
    let trees = world.log.iter().filter_map(|event| match &event.body {
        EventBody::WorkspaceCheckpointed(taken) => Some(taken.tree.clone()),
        _ => None,
    });
    trees.collect()
}

fn calls(world: &mut World, names: &[&str]) {
    let calls = names.iter().map(|name| super::world::tool_use(name, json!({})));
    world.answer(calls.collect(), StopReason::ToolUse);
    world.judge_all(VerdictKind::Allow);
}

const STARTED: [&str; 5] = [
    "model.finished",
    "tool.proposed",
    "verdict.given",
    "workspace.checkpointed",
    "tool.started",
];

#[test]
fn a_command_waits_for_the_files_and_names_them_in_its_own_append() {
    let mut world = world(CheckpointRule::Step);
    assert_eq!(
        world.recording.len(),
        1,
        "they are recorded while the model call runs"
    );
    calls(&mut world, &["Bash"]);
    assert!(
        world.kinds().is_empty() && world.running.is_empty(),
        "{:?}",
        world.kinds()
    );
    recorded(&mut world, Ok("A"));
    assert_eq!(world.kinds(), STARTED);
    world.end_tool(ok());
    assert_eq!(
        world.kinds(),
        ["tool.finished", "model.started"],
        "the next model call does not wait"
    );
    recorded(&mut world, Ok("B"));
    assert!(world.kinds().is_empty(), "no append of its own");
    calls(&mut world, &["Bash"]);
    assert_eq!(world.kinds(), STARTED);
    world.end_tool(ok());
    recorded(&mut world, Ok("B"));
    world.say("Done.");
    assert_eq!(
        world.kinds(),
        ["model.finished", "workspace.checkpointed", "turn.finished"]
    );
    assert_eq!(trees(&world), ["A", "B", "B"]);
}

#[test]
fn what_only_reads_does_not_wait_and_says_nothing() {
    let mut world = world(CheckpointRule::Step);
    calls(&mut world, &["Read"]);
    assert_eq!(world.running.len(), 1);
    world.end_tool(ok());
    recorded(&mut world, Ok("A"));
    world.say("Done.");
    assert_eq!(trees(&world), ["A"], "the first one is always named");
    world.send("again");
    recorded(&mut world, Ok("A"));
    world.say("Done.");
    assert_eq!(trees(&world), ["A"], "no file has changed");
    world.send("again");
    recorded(&mut world, Ok("B"));
    world.say("Done.");
    assert_eq!(trees(&world), ["A", "B"], "a person did");
}

#[test]
fn a_turn_ends_with_its_files_and_one_that_is_cancelled_names_them_later() {
    let mut world = world(CheckpointRule::Step);
    recorded(&mut world, Ok("A"));
    calls(&mut world, &["Bash"]);
    world.end_tool(ok());
    world.say("Done.");
    assert_eq!(world.kinds(), ["model.finished"]);
    assert!(!world.agent.at_rest());
    recorded(&mut world, Ok("B"));
    assert_eq!(world.kinds(), ["workspace.checkpointed", "turn.finished"]);
    world.send("again");
    recorded(&mut world, Ok("B"));
    calls(&mut world, &["Bash"]);
    world.cancel().unwrap();
    assert_eq!(world.reason(), agentd_protocol::EndReason::Cancelled);
    recorded(&mut world, Ok("C"));
    assert_eq!(world.kinds(), ["workspace.checkpointed"]);
    assert!(world.agent.at_rest());
}

#[test]
fn without_recorded_files_the_session_goes_on_and_says_so_once() {
    let mut world = world(CheckpointRule::Step);
    recorded(&mut world, Err("git is not installed"));
    assert_eq!(world.kinds(), ["warning.raised"]);
    calls(&mut world, &["Bash"]);
    world.end_tool(ok());
    assert!(world.recording.is_empty(), "it is tried again in the next turn");
    world.say("Done.");
    world.send("again");
    recorded(&mut world, Err("git is not installed"));
    assert!(world.kinds().is_empty());
    calls(&mut world, &["Bash"]);
    assert_eq!(world.running.len(), 1);
}

#[test]
fn i4_after_a_crash_the_files_are_recorded_before_the_next_effect() {
    let mut world = world(CheckpointRule::Step);
    recorded(&mut world, Ok("A"));
    calls(&mut world, &["Bash", "Bash"]);
    world.restart();
    assert_eq!(world.recording.len(), 1);
    world.judge_all(VerdictKind::Allow);
    assert!(world.running.is_empty());
    recorded(&mut world, Ok("B"));
    assert_eq!(world.kinds(), ["workspace.checkpointed", "tool.started"]);
}

#[test]
fn i4_after_a_crash_during_a_model_call_the_files_wait_for_its_answer() {
    let mut world = world(CheckpointRule::Step);
    recorded(&mut world, Ok("A"));
    calls(&mut world, &["Bash"]);
    world.end_tool(ok());
    assert_eq!(world.recording.len(), 1);
    world.restart();
    assert!(world.recording.is_empty(), "nothing needs them yet");
    calls(&mut world, &["Bash"]);
    assert!(world.kinds().is_empty() && world.running.is_empty());
    recorded(&mut world, Ok("B"));
    assert_eq!(world.kinds(), STARTED);
    world.end_tool(ok());
    world.restart();
    assert!(world.recording.is_empty());
    world.say("Done.");
    assert_eq!(world.kinds(), ["model.finished"], "the turn ends with its files");
    recorded(&mut world, Ok("C"));
    assert_eq!(world.kinds(), ["workspace.checkpointed", "turn.finished"]);
    assert_eq!(trees(&world), ["A", "B", "C"]);
}

#[test]
fn by_turn_they_are_recorded_at_its_start_and_its_end() {
    let mut world = world(CheckpointRule::Turn);
    recorded(&mut world, Ok("A"));
    calls(&mut world, &["Bash"]);
    world.end_tool(ok());
    assert!(world.recording.is_empty());
    calls(&mut world, &["Bash"]);
    assert_eq!(world.running.len(), 1);
    world.end_tool(ok());
    world.say("Done.");
    recorded(&mut world, Ok("B"));
    assert_eq!(trees(&world), ["A", "B"]);
}

#[test]
fn a_drain_does_not_wait_for_files() {
    let mut world = world(CheckpointRule::Step);
    calls(&mut world, &["Bash"]);
    world.input(crate::Input::Drain);
    assert!(world.recording.is_empty());
    assert!(world.agent.at_rest());
}
