//! Setup commands run before the first model call of a session with a workspace of its own.

use super::world::{World, config, created};
use crate::{Answer, CheckpointRule, Config, Question};
use agentd_protocol::{
    EndReason, LoopLimits, RunState, SessionCreated, Workspace, WorkspaceKind, WorkspacePrepared,
};
use std::sync::Arc;

fn own() -> SessionCreated {
    let workspace = Workspace {
        kind: WorkspaceKind::Copy,
        source: "/w".to_owned(),
        path: "/own".to_owned(),
        base: None,
        branch: None,
        repository: None,
        with_changes: false,
    };
    SessionCreated {
        workspace: Some(Box::new(workspace)),
        ..created(LoopLimits::default())
    }
}

fn world(created: SessionCreated) -> World {
    let config = Config {
        setup: true,
        checkpoints: CheckpointRule::Step,
        ..Config::clone(&config())
    };
    let mut world = World::configured(created, Arc::new(config));
    world.send("go");
    world
}

fn times_asked(world: &World) -> usize {
    let asked = world.questions.iter();
    asked.filter(|(_, question)| *question == Question::Setup).count()
}

fn prepared(world: &mut World, error: Option<&str>) {
    let asked = world.questions.iter().rev();
    let id = asked.clone().find(|(_, question)| *question == Question::Setup);
    let prepared = WorkspacePrepared {
        commands: Vec::new(),
        error: error.map(str::to_owned),
    };
    let id = id.expect("the commands are asked for").0;
    world.reply_to(id, Answer::Setup(prepared));
}

#[test]
fn the_first_model_call_and_the_first_checkpoint_wait_for_the_commands() {
    let mut world = world(own());
    assert!(world.models.is_empty() && world.recording.is_empty());
    assert_eq!(times_asked(&world), 1);
    let status = world.agent.status(agentd_protocol::Timestamp(world.now));
    assert_eq!(status.state, RunState::Starting);
    assert_eq!(status.reason, "the workspace is being set up");
    prepared(&mut world, None);
    assert_eq!(world.kinds()[0], "workspace.prepared");
    assert!(world.models.len() == 1 && world.recording.len() == 1);
    world.say("Done.");
    world.send("again");
    assert_eq!((world.models.len(), times_asked(&world)), (1, 1), "only once");
}

#[test]
fn a_failed_command_ends_the_turn_and_the_next_turn_runs_them_again() {
    let mut world = world(own());
    prepared(&mut world, Some("npm ci failed"));
    assert_eq!(world.reason(), EndReason::InitializationFailed);
    let end = world.log.last().expect("the end of the turn");
    assert!(
        serde_json::to_string(end).unwrap().contains("setup_failed"),
        "{end:?}"
    );
    let status = world.agent.status(agentd_protocol::Timestamp(world.now));
    assert_eq!(status.state, RunState::Failed, "{status:?}");
    assert!(status.reason.contains("npm ci failed"), "{status:?}");
    assert!(world.models.is_empty() && world.recording.is_empty());
    world.send("again");
    assert_eq!(times_asked(&world), 2);
    prepared(&mut world, None);
    assert_eq!(world.models.len(), 1);
}

#[test]
fn i4_a_crash_in_the_middle_runs_the_commands_again() {
    let mut world = world(own());
    world.crash();
    assert_eq!(times_asked(&world), 2);
    prepared(&mut world, None);
    world.crash();
    assert_eq!(times_asked(&world), 2, "the log has that they ran");
    assert_eq!(world.models.len(), 1);
}

#[test]
fn a_cancelled_turn_withdraws_the_commands() {
    let mut world = world(own());
    world.cancel().unwrap();
    assert_eq!(world.reason(), EndReason::Cancelled);
    world.send("again");
    assert_eq!(times_asked(&world), 2);
}

#[test]
fn a_shared_directory_is_not_set_up() {
    let world = world(created(LoopLimits::default()));
    assert_eq!((times_asked(&world), world.models.len()), (0, 1));
}
