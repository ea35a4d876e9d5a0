//! Each predicate finds the violations that it exists for.

use super::world::*;
use crate::{Violation, Witness, sound_request, stable_prefix};
use agentd_protocol::*;
use serde_json::json;
use std::sync::Arc;

/// A log with a call that needed approval, a crash, and a second turn.
fn life() -> Vec<Event> {
    let mut world = World::running(LoopLimits::default());
    world.answer(vec![tool_use("Bash", json!({}))], StopReason::ToolUse);
    world.judge(VerdictKind::Ask);
    world.decide(Decision::Allow, Scope::Once).unwrap();
    world.end_tool(ok());
    world.restart();
    world.say("Done.");
    world.send("again");
    world.say("Done again.");
    world.log
}

fn told(log: &[Event]) -> Result<Witness, Violation> {
    let mut witness = Witness::default();
    log.iter().try_for_each(|event| witness.see(event))?;
    Ok(witness)
}

/// The log with events removed or replaced, renumbered.
fn changed(change: impl Fn(&Event) -> Vec<EventBody>) -> Vec<Event> {
    let mut log = Vec::new();
    for event in life() {
        for body in change(&event) {
            let seq = log.len() as u64 + 1;
            log.push(Event {
                seq,
                body,
                ..event.clone()
            });
        }
    }
    log
}

fn invariant(change: impl Fn(&Event) -> Vec<EventBody>) -> &'static str {
    told(&changed(change)).expect_err("a broken log").invariant
}

fn without(kind: &'static str) -> &'static str {
    invariant(move |event| {
        let keep = event.body.kind() != kind;
        keep.then(|| event.body.clone()).into_iter().collect()
    })
}

fn twice(kind: &'static str) -> &'static str {
    invariant(move |event| {
        let times = if event.body.kind() == kind { 2 } else { 1 };
        vec![event.body.clone(); times]
    })
}

#[test]
fn a_life_breaks_nothing() {
    let witness = told(&life()).unwrap();
    assert_eq!(witness.settled(), Ok(()));
    assert_eq!(witness.seen(), life().len() as u64);
}

#[test]
fn i2_a_gap_and_a_duplicate_are_found() {
    let mut log = life();
    log.remove(3);
    assert_eq!(told(&log).unwrap_err().invariant, "I2");
    let mut log = life();
    log.insert(3, log[2].clone());
    assert_eq!(told(&log).unwrap_err().invariant, "I2");
}

#[test]
fn i3_a_call_without_its_one_result_is_found() {
    assert_eq!(without("tool.finished"), "I3");
    assert_eq!(twice("tool.finished"), "I3");
    assert_eq!(twice("model.finished"), "I3");
}

#[test]
fn i4_a_second_start_of_a_call_is_found() {
    assert_eq!(twice("tool.started"), "I4");
}

#[test]
fn i7_a_start_that_nobody_allowed_is_found() {
    assert_eq!(without("approval.decided"), "I7");
    let denied = invariant(|event| match &event.body {
        EventBody::ApprovalDecided(decided) => vec![
            ApprovalDecided {
                decision: Decision::Deny,
                ..decided.clone()
            }
            .into(),
        ],
        other => vec![other.clone()],
    });
    assert_eq!(denied, "I7");
}

#[test]
fn i1_an_input_that_joins_without_having_been_accepted_is_found() {
    assert_eq!(without("input.accepted"), "I1");
    assert_eq!(twice("input.accepted"), "I1");
}

#[test]
fn i4_a_run_before_its_durable_intent_and_a_second_one_are_found() {
    let log = life();
    let at = log
        .iter()
        .position(|event| event.body.kind() == "tool.started")
        .unwrap();
    let EventBody::ToolStarted(started) = &log[at].body else {
        panic!("{:?}", log[at])
    };
    let mut witness = told(&log[..=at]).unwrap();
    let (call, seq) = (started.tool_call, log[at].seq);
    assert!(witness.is_running(call));
    assert_eq!(
        witness.clone().runs_tool(call, seq - 1).unwrap_err().invariant,
        "I4"
    );
    assert_eq!(witness.runs_tool(call, seq), Ok(()));
    assert_eq!(witness.runs_tool(call, seq).unwrap_err().invariant, "I4");
}

#[test]
fn a_step_beyond_the_budget_is_found() {
    let broken = invariant(|event| match &event.body {
        EventBody::SessionCreated(created) => {
            let budget = Budget {
                steps: 1,
                ..Budget::default()
            };
            vec![
                SessionCreated {
                    budget,
                    ..created.clone()
                }
                .into(),
            ]
        }
        other => vec![other.clone()],
    });
    assert_eq!(broken, "budget");
}

fn message(role: Role, content: Vec<Block>) -> Arc<Message> {
    Arc::new(Message { role, content })
}

#[test]
fn i3_an_unanswered_call_in_a_request_is_found() {
    let call = || message(Role::Assistant, vec![tool_use("Bash", json!({}))]);
    let person = || message(Role::User, vec![Block::text("x")]);
    let result = || {
        let (tool_use_id, content, is_error) = ("call_1".to_owned(), String::new(), false);
        message(
            Role::User,
            vec![Block::ToolResult {
                tool_use_id,
                content,
                is_error,
            }],
        )
    };
    assert_eq!(sound_request(&[person(), call(), result()]), Ok(()));
    assert!(sound_request(&[person(), call(), person()]).is_err());
    assert!(sound_request(&[person(), call()]).is_err());
    assert!(sound_request(&[person(), result()]).is_err());
    assert!(sound_request(&[call(), result()]).is_err());
    let (one, two) = ([person()], [person(), call(), result()]);
    assert_eq!(stable_prefix((&one, 1), (&two, 1)), Ok(()));
    assert!(stable_prefix((&two, 1), (&one, 1)).is_err());
    assert_eq!(stable_prefix((&two, 1), (&one, 2)), Ok(()));
}
