//! Sub-agents, from both sides.

use super::world::*;
use crate::*;
use agentd_protocol::*;
use std::sync::Arc;

pub(super) fn parent(max_children: u32) -> World {
    let config = Config {
        max_children,
        ..Config::default()
    };
    let mut world = World::configured(created(LoopLimits::default()), Arc::new(config));
    world.send("do it");
    world
}

pub(super) fn delegate(world: &mut World, names: &[&str]) {
    world.call(names);
    world.judge_all(VerdictKind::Allow);
}

/// A sub-agent of this depth with its task.
pub(super) fn child(depth: u32) -> World {
    let (parent, tool_call) = (
        SessionId::from_parts(5, [1; 10]),
        ToolCallId::from_parts(5, [2; 10]),
    );
    let created = SessionCreated {
        title: "a part".into(),
        parent: Some(parent),
        lineage: Some(Box::new(Lineage {
            root: SessionId::from_parts(5, [9; 10]),
            tool_call,
            depth,
            path: vec!["all of it".into()],
            grants: Vec::new(),
            shares: None,
        })),
        ..created(LoopLimits::default())
    };
    World::of(child_of(parent, tool_call), created, config())
}

fn kinds(world: &World, from: usize) -> Vec<&'static str> {
    world.log[from..].iter().map(|event| event.body.kind()).collect()
}

fn result(world: &World) -> (ToolStatus, String) {
    let results = world.log.iter().filter_map(|event| match &event.body {
        EventBody::ToolFinished(finished) => {
            Some((finished.outcome.status, finished.outcome.llm_text.clone()))
        }
        _ => None,
    });
    results.collect::<Vec<_>>().pop().unwrap()
}

#[test]
fn i4_a_call_becomes_a_session_after_its_intent_and_its_result_is_delivered_once() {
    let mut world = parent(8);
    delegate(&mut world, &["Task"]);
    let (_, session) = world.children[0];
    let status = world.agent.status(Timestamp(world.now));
    assert_eq!(status.state, RunState::Waiting(WaitReason::Child));
    assert!(world.agent.at_rest(), "it may go cold while it waits");
    let from = world.log.len();
    world.end_child(session, EndReason::Completed).unwrap();
    assert_eq!(
        kinds(&world, from),
        ["subagent.finished", "tool.finished", "model.started"]
    );
    assert_eq!(result(&world), (ToolStatus::Ok, "what it found".into()));
    let again = world.end_child(session, EndReason::Completed).unwrap_err();
    assert_eq!(again.code, "not_awaited");
    assert_eq!(world.agent.durable().below.steps, 1);
    world.calm();
    world.check_log();
}

#[test]
fn sub_agents_work_side_by_side_up_to_the_limit_and_the_others_wait_in_line() {
    let mut world = parent(2);
    delegate(&mut world, &["Task", "Task", "Task", "Bash"]);
    assert_eq!(world.children.len(), 2);
    world
        .end_child(world.children[1].1, EndReason::Completed)
        .unwrap();
    assert_eq!(
        (world.children.len(), world.running.len()),
        (3, 0),
        "the command waits for all of them"
    );
    world
        .end_child(world.children[0].1, EndReason::Completed)
        .unwrap();
    world
        .end_child(world.children[2].1, EndReason::Completed)
        .unwrap();
    assert_eq!(world.running.len(), 1);
    world.calm();
    world.check_log();
}

#[test]
fn after_a_crash_the_parent_looks_for_the_same_child_again() {
    let mut world = parent(8);
    delegate(&mut world, &["Task"]);
    let before = world.children.clone();
    let events = world.log.len();
    world.crash();
    assert!(world.agent.summary(Timestamp(world.now)).resumable);
    world.input(Input::Recover);
    assert_eq!(world.children, before);
    assert_eq!(world.log.len(), events, "nothing is interrupted");
    world.calm();
    world.check_log();
}

#[test]
fn i3_a_cancel_reaches_the_children_also_after_a_crash_and_their_spending_counts() {
    let mut world = parent(8);
    delegate(&mut world, &["Task", "Task"]);
    let children: Vec<_> = world.children.iter().map(|(_, child)| *child).collect();
    world.cancel().unwrap();
    assert_eq!(world.stopped, children);
    world.crash();
    assert!(world.agent.summary(Timestamp(world.now)).resumable);
    world.input(Input::Recover);
    assert_eq!(world.stopped.len(), 2, "they are told again");
    for child in children {
        world.end_child(child, EndReason::Cancelled).unwrap();
    }
    assert_eq!(world.agent.durable().below.tokens, 10);
    assert!(!world.agent.summary(Timestamp(world.now)).resumable);
    world.check_log();
}

#[test]
fn a_child_tells_its_parent_and_closes_when_that_is_heard() {
    let mut world = child(1);
    let number = world.tree.unwrap();
    world.look_up(number, Spent::default(), Budget::default());
    world.say("I found it.");
    let told = world.told.clone();
    assert_eq!(told.len(), 1);
    assert_eq!(
        (told[0].reason, told[0].text.as_str()),
        (Some(EndReason::Completed), "I found it.")
    );
    assert_eq!((told[0].spent.tokens, told[0].spent.steps), (100, 1));
    assert!(!world.agent.at_rest() && world.agent.summary(Timestamp(world.now)).resumable);
    world.crash();
    world.input(Input::Recover);
    assert_eq!(world.told, told, "what was lost is told again");
    world.reported();
    assert!(world.agent.durable().closed.is_some() && world.agent.at_rest());
    world.command(Command::Tell).unwrap();
    assert_eq!(world.told.len(), 2, "who asks is told, also when it is closed");
}

#[test]
fn a_child_that_is_closed_by_force_tells_its_parent_after_its_own_children_ended() {
    let mut world = child(1);
    let number = world.tree.unwrap();
    world.look_up(number, Spent::default(), Budget::default());
    delegate(&mut world, &["Task"]);
    let below = world.children[0].1;
    let reason = "the turn was cancelled".to_owned();
    world.command(Command::Close { reason, force: true }).unwrap();
    assert_eq!(
        (world.stopped.as_slice(), world.told.len()),
        ([below].as_slice(), 0)
    );
    world.end_child(below, EndReason::Cancelled).unwrap();
    assert_eq!(world.told[0].reason, Some(EndReason::Cancelled));
    assert_eq!(world.told[0].spent.steps, 2, "its own step and that below it");
}

#[test]
fn the_deepest_sub_agent_has_none_of_its_own() {
    let mut world = child(3);
    let number = world.tree.unwrap();
    world.look_up(number, Spent::default(), Budget::default());
    delegate(&mut world, &["Task"]);
    assert!(world.children.is_empty());
    let (status, text) = result(&world);
    assert_eq!(status, ToolStatus::Error);
    assert!(text.starts_with("Sub-agents go at most 3 deep"), "{text}");
}

#[test]
fn i7_a_child_takes_no_step_before_it_is_known_what_its_tree_spent() {
    let budget = Budget {
        steps: 10,
        ..Budget::default()
    };
    let spent = |steps| Spent {
        steps,
        ..Spent::default()
    };
    let mut world = child(1);
    assert!(world.models.is_empty() && !world.agent.at_rest());
    let number = world.tree.unwrap();
    world.look_up(number, spent(9), budget);
    assert_eq!(world.models.len(), 1, "there is room for one more");
    world.call(&["Read"]);
    world.judge_all(VerdictKind::Allow);
    world.end_tool(ok());
    let number = world.tree.unwrap();
    world.look_up(number, spent(9), budget);
    assert!(world.models.is_empty());
    assert_eq!(world.told[0].reason, Some(EndReason::Budget));

    let mut world = child(1);
    world.look_in_vain();
    assert_eq!(world.told[0].reason, Some(EndReason::Cancelled));

    let mut world = child(1);
    let number = world.tree.unwrap();
    world.reply_to(number, Answer::Nobody("it cannot be read".into()));
    assert_eq!(world.told[0].reason, Some(EndReason::Budget));
}

/// Found by the simulator: its parent took a faulted child for ended, and a person resumed it.
#[test]
fn i5_a_child_whose_parent_stopped_waiting_makes_no_other_attempt() {
    let mut world = child(1);
    world.look_above(PermissionMode::Default, false);
    world.fail(FailureClass::Transient);
    world.restart();
    world.fire(TimerKey::Backoff);
    assert!(world.models.is_empty(), "it looks first");
    world.look_in_vain();
    assert!(world.models.is_empty());
    assert_eq!(world.told[0].reason, Some(EndReason::Cancelled));
    world.check_log();
}

#[test]
fn a_copy_of_a_log_has_no_children_and_no_parent() {
    let mut world = parent(8);
    delegate(&mut world, &["Task"]);
    let other = SessionId::from_parts(7, [7; 10]);
    let log: Vec<Event> = world
        .log
        .iter()
        .cloned()
        .map(|event| Event {
            session: other,
            ..event
        })
        .collect();
    let copy = Agent::fold(other, config(), &log).unwrap();
    assert!(copy.durable().children.is_empty());
    let child = child(1);
    let log: Vec<Event> = child
        .log
        .iter()
        .cloned()
        .map(|event| Event {
            session: other,
            ..event
        })
        .collect();
    assert_eq!(Agent::fold(other, config(), &log).unwrap().durable().depth(), 0);
}

#[test]
fn redteam_60_i7_a_sub_agent_has_its_parents_grants_with_their_reach() {
    let grant = Grant {
        rule: "Bash(it)".into(),
        reach: Some(reach()),
    };
    let sub_agent = |lineage: Lineage, parent: SessionId, session: SessionId| {
        let created = SessionCreated {
            parent: Some(parent),
            lineage: Some(Box::new(lineage)),
            ..created(LoopLimits::default())
        };
        World::of(session, created, config())
    };
    let (parent, tool_call) = (
        SessionId::from_parts(5, [1; 10]),
        ToolCallId::from_parts(5, [2; 10]),
    );
    let workdir = created(LoopLimits::default()).workdir;
    let lineage = |dir: &str| Lineage {
        root: parent,
        tool_call,
        depth: 1,
        path: Vec::new(),
        grants: vec![grant.clone()],
        shares: Some(SharedPlace {
            dir: dir.to_owned(),
            place: "/project".into(),
        }),
    };
    let child = sub_agent(lineage(&workdir), parent, child_of(parent, tool_call));
    assert_eq!(child.agent.durable().grants, vec![grant.clone()]);
    assert_eq!(child.agent.durable().project(), "/project");
    let elsewhere = sub_agent(lineage("/else"), parent, child_of(parent, tool_call));
    assert_eq!(
        elsewhere.agent.durable().project(),
        workdir,
        "another directory is another project"
    );
    let forged = sub_agent(lineage(&workdir), parent, SessionId::from_parts(9, [9; 10]));
    assert_eq!(forged.agent.durable().grants, []);
    assert_eq!(
        forged.agent.durable().project(),
        workdir,
        "a copy works for no one"
    );
}
