//! Cancel, steer, interrupt and answers in every order against a model and its tools: all interleavings, checked.

use super::world::*;
use crate::*;
use agentd_protocol::*;
use serde_json::json;

/// Actions of people, each once, at any moment.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Act {
    Cancel,
    Steer,
    Queue,
    Interrupt,
    Allow,
    Deny,
    Crash,
}

/// Everything that can happen next around the agent, independent of people.
#[derive(Debug, Clone, Copy)]
enum Turn {
    Answer,
    Fail,
    Judge,
    EndTool,
    Backoff,
}

/// Whether the model's first attempt may fail; excluding failures reduces the number of interleavings.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Model {
    MayFail,
    Answers,
}

fn possible(world: &World, model: Model) -> Vec<Turn> {
    let mut turns = Vec::new();
    if let Some((_, attempt)) = world.models.first() {
        turns.push(Turn::Answer);
        if model == Model::MayFail && *attempt == 1 && world.joined().len() == 1 {
            turns.push(Turn::Fail);
        }
    }
    if !world.judging.is_empty() && world.agent.durable().turn.is_some() {
        turns.push(Turn::Judge);
    }
    if !world.running.is_empty() {
        turns.push(Turn::EndTool);
    }
    if world.timers.contains_key(&TimerKey::Backoff) {
        turns.push(Turn::Backoff);
    }
    turns
}

fn happen(world: &mut World, turn: Turn) {
    match turn {
        // The first answer requests a read and a command; every later answer is plain text.
        Turn::Answer
            if world
                .log
                .iter()
                .any(|event| event.body.kind() == "model.finished") =>
        {
            world.say("Done.");
        }
        Turn::Answer => {
            let calls = vec![tool_use("Read", json!({})), tool_use("Bash", json!({}))];
            world.answer(calls, StopReason::ToolUse);
        }
        Turn::Fail => {
            world.fail(FailureClass::Transient);
        }
        Turn::Judge => {
            let asks = world.judging[0].1 == "Bash";
            world.judge(if asks {
                VerdictKind::Ask
            } else {
                VerdictKind::Allow
            });
        }
        Turn::EndTool => {
            world.end_tool(ok());
        }
        Turn::Backoff => {
            world.fire(TimerKey::Backoff);
        }
    }
}

/// Performs an action and checks that the outcome fits the state.
fn act(world: &mut World, act: Act) {
    let turn_ran = world.agent.durable().turn.is_some();
    let open = world.agent.durable().approvals.first().map(|open| open.approval);
    let asked = world.log.iter().find_map(|event| match &event.body {
        EventBody::ApprovalAsked(asked) => Some(asked.approval),
        _ => None,
    });
    let decide = |decision| Command::Decide {
        approval: open.or(asked).unwrap_or(ApprovalId::NIL),
        decision,
        scope: Scope::Once,
        answer: None,
        message: None,
        basis: Some(Basis::Policy),
    };
    let expected = match (act, open, asked) {
        (Act::Cancel | Act::Steer, ..) if !turn_ran => Some(FaultClass::Conflict),
        (Act::Allow | Act::Deny, None, Some(_)) => Some(FaultClass::Conflict),
        (Act::Allow | Act::Deny, None, None) => Some(FaultClass::NotFound),
        _ => None,
    };
    let got = match act {
        Act::Cancel => world.cancel().map(|_| ()),
        Act::Steer => world.deliver("steer", Some(Delivery::Steer)).map(|_| ()),
        Act::Queue => world.deliver("queue", Some(Delivery::Queue)).map(|_| ()),
        Act::Interrupt => world.deliver("interrupt", Some(Delivery::Interrupt)).map(|_| ()),
        Act::Allow => world.command(decide(Decision::Allow)).map(|_| ()),
        Act::Deny => world.command(decide(Decision::Deny)).map(|_| ()),
        Act::Crash => {
            world.restart();
            Ok(())
        }
    };
    assert_eq!(got.err().map(|fault| fault.class), expected, "{act:?}");
    if act == Act::Cancel && turn_ran {
        assert_eq!(world.reason(), EndReason::Cancelled);
    }
}

/// Explores every order of the remaining actions; returns their number.
fn explore(world: &World, model: Model, left: &[Act], depth: usize) -> usize {
    assert!(depth < 60, "it does not come to rest");
    let turns = possible(world, model);
    if turns.is_empty() && left.is_empty() {
        let mut world = world.clone();
        if !world.agent.durable().approvals.is_empty() {
            assert_eq!(world.state(), RunState::Waiting(WaitReason::Approval));
            assert!(world.agent.at_rest());
            world.decide(Decision::Deny, Scope::Once).unwrap();
            return explore(&world, model, left, depth + 1);
        }
        assert_eq!(world.state(), RunState::Idle);
        assert!(world.timers.is_empty() && world.agent.durable().inbox.is_empty());
        world.check_log();
        return 1;
    }
    let mut orders = 0;
    for turn in turns {
        let mut next = world.clone();
        happen(&mut next, turn);
        orders += explore(&next, model, left, depth + 1);
    }
    for (at, person) in left.iter().enumerate() {
        let mut next = world.clone();
        act(&mut next, *person);
        let mut rest = left.to_vec();
        rest.remove(at);
        orders += explore(&next, model, &rest, depth + 1);
    }
    orders
}

fn check(model: Model, acts: &[Act], at_least: usize) {
    let orders = explore(&World::running(LoopLimits::default()), model, acts, 0);
    assert!(orders >= at_least, "only {orders} orders of {acts:?}");
}

#[test]
fn i3_cancel_against_steer_in_every_order() {
    check(Model::MayFail, &[Act::Cancel, Act::Steer], 50);
}

#[test]
fn i3_cancel_against_an_answer_in_every_order() {
    check(Model::MayFail, &[Act::Cancel, Act::Allow], 50);
    check(Model::MayFail, &[Act::Cancel, Act::Deny], 50);
}

#[test]
fn i3_two_answers_in_every_order() {
    check(Model::MayFail, &[Act::Allow, Act::Deny], 50);
}

#[test]
fn i3_interrupt_against_queue_and_cancel_in_every_order() {
    check(Model::MayFail, &[Act::Interrupt, Act::Queue, Act::Cancel], 200);
}

#[test]
fn i4_a_crash_against_an_answer_and_a_steer_in_every_order() {
    check(Model::MayFail, &[Act::Crash, Act::Allow], 50);
    check(Model::MayFail, &[Act::Crash, Act::Steer], 50);
    check(Model::Answers, &[Act::Crash, Act::Allow, Act::Steer], 200);
}

#[test]
fn i4_a_crash_against_a_cancel_in_every_order() {
    check(Model::MayFail, &[Act::Crash, Act::Cancel], 50);
}
