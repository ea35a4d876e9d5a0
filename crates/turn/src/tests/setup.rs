//! Setup commands run before the first model call of a session with a workspace of its own.

use super::world::{World, config, created};
use crate::{Answer, CheckpointRule, Command, Config, Input, Question};
use agentd_protocol::{
    EVENT_VERSION, EndReason, Event, EventBody, LoopLimits, Principal, RunState, SessionCreated, SessionId,
    SessionMoved, Timestamp, Workspace, WorkspaceKind, WorkspacePrepared, WorkspaceRestored,
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
        left_out: Vec::new(),
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
    let status = world.agent.status(Timestamp(world.now));
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
    let status = world.agent.status(Timestamp(world.now));
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
    world.input(Input::Recover);
    assert_eq!(times_asked(&world), 1, "by this incarnation");
    prepared(&mut world, None);
    world.crash();
    world.input(Input::Recover);
    assert_eq!(times_asked(&world), 0, "the log has that they ran");
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
fn a_turn_without_its_workspace_ends_and_calls_no_model() {
    let mut world = World::with(own());
    world.agent.lose_workspace("it is gone".to_owned());
    world.send("go");
    assert_eq!(world.reason(), EndReason::InitializationFailed);
    let end = world.log.last().expect("the end of the turn");
    let end = serde_json::to_string(end).unwrap();
    assert!(
        end.contains("workspace_lost") && end.contains("it is gone"),
        "{end}"
    );
    assert!(world.models.is_empty());
}

#[test]
fn the_model_is_told_once_that_its_files_were_made_again() {
    let mut world = World::with(own());
    world.send("go");
    world.say("done");
    let restored = WorkspaceRestored {
        workspace: Workspace {
            path: "/elsewhere".to_owned(),
            ..own().workspace.map(|workspace| *workspace).expect("it has one")
        },
        tree: "a".repeat(40),
        as_of: 3,
        missing: vec!["Bash make".to_owned()],
    };
    let event = Event {
        v: EVENT_VERSION,
        session: SessionId::NIL,
        seq: world.log.len() as u64 + 1,
        at: Timestamp(world.now),
        by: Principal::agentd(),
        turn: None,
        body: restored.into(),
    };
    world.log.push(event);
    world.crash();
    world.input(Input::Recover);
    world.send("again");
    world.say("done");
    world.send("and again");
    let told = world.log.iter().filter_map(|event| match &event.body {
        EventBody::NoteInjected(note) => Some(note.text.as_str()),
        _ => None,
    });
    let told: Vec<&str> = told.filter(|text| text.contains("made again")).collect();
    assert_eq!(told.len(), 1, "{told:?}");
    for part in ["/elsewhere", "event 3", "Bash make"] {
        assert!(told[0].contains(part), "{told:?}");
    }
    let settings = world.agent.durable().settings.as_ref().expect("it was created");
    assert_eq!(settings.workdir, "/elsewhere");
}

#[test]
fn a_shared_directory_is_not_set_up() {
    let world = world(created(LoopLimits::default()));
    assert_eq!((times_asked(&world), world.models.len()), (0, 1));
}

fn moved(workdir: &str) -> Box<SessionMoved> {
    Box::new(SessionMoved {
        node: "b".to_owned(),
        epoch: 2,
        workdir: Some(workdir.to_owned()),
    })
}

fn resume(moved: Box<SessionMoved>) -> Command {
    Command::Resume {
        reason: "r".to_owned(),
        moved: Some(moved),
    }
}

#[test]
fn a_person_moves_a_session_to_another_directory_and_the_model_is_told() {
    let mut world = World::with(own());
    world.send("go");
    let refused = world.command(resume(moved("/new"))).unwrap_err();
    assert_eq!(refused.code, "call_running");
    world.say("done");
    world.agent.lose_workspace("it is gone".to_owned());
    world.command(resume(moved("/new"))).unwrap();
    let settings = world.agent.durable().settings.clone().expect("it was created");
    assert_eq!((settings.workdir.as_str(), settings.workspace), ("/new", None));
    let place = world.agent.summary(Timestamp(world.now)).place;
    assert_eq!((place.home.as_str(), place.kept), ("b", false));
    let events = world.log.len();
    world.command(resume(moved("/new"))).unwrap();
    assert_eq!(world.log.len(), events, "it is there already");
    world.send("again");
    let told = world
        .log
        .iter()
        .filter(|event| matches!(&event.body, EventBody::NoteInjected(note) if note.text.contains("/new")));
    assert_eq!(told.count(), 1);
}
