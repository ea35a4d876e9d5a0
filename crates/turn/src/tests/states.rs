//! Folding refuses impossible events; the derived status gives the reason.

use super::world::*;
use crate::*;
use agentd_protocol::*;

#[test]
fn i2_a_log_with_a_gap_a_repetition_or_a_stranger_is_refused() {
    let world = World::running(LoopLimits::default());
    let fold = |events: Vec<Event>| {
        Agent::fold(SessionId::NIL, config(), &events)
            .map(|_| ())
            .unwrap_err()
    };
    let mut gap = world.log.clone();
    gap.remove(1);
    assert_eq!(
        fold(gap),
        FoldError::Gap {
            session: SessionId::NIL,
            expected: 2,
            found: 3
        }
    );
    let mut twice = world.log.clone();
    twice.insert(1, twice[1].clone());
    assert_eq!(
        fold(twice),
        FoldError::Gap {
            session: SessionId::NIL,
            expected: 3,
            found: 2
        }
    );
    let mut stranger = world.log;
    let found = SessionId::from_bytes([7; 16]);
    stranger[2].session = found;
    assert_eq!(
        fold(stranger),
        FoldError::OtherSession {
            seq: 3,
            session: SessionId::NIL,
            found
        }
    );
}

#[test]
fn an_event_of_a_newer_version_faults_the_session() {
    let mut world = World::running(LoopLimits::default());
    world.log[3].body = EventBody::Unknown;
    let error = Agent::fold(SessionId::NIL, config(), &world.log)
        .map(|_| ())
        .unwrap_err();
    assert_eq!(
        error,
        FoldError::UnknownType {
            session: SessionId::NIL,
            seq: 4
        }
    );
}

#[test]
fn i3_a_log_that_calls_a_model_with_an_unanswered_call_is_refused() {
    let mut world = World::running(LoopLimits::default());
    world.tool_step("Bash", serde_json::json!({}), ok());
    let result = world
        .log
        .iter()
        .position(|event| event.body.kind() == "tool.finished")
        .unwrap();
    world.log.remove(result);
    for (seq, event) in (1..).zip(&mut world.log) {
        event.seq = seq;
    }
    let error = Agent::fold(SessionId::NIL, config(), &world.log)
        .map(|_| ())
        .unwrap_err();
    assert!(
        matches!(
            error,
            FoldError::Impossible {
                kind: "model.started",
                ..
            }
        ),
        "{error}"
    );
}

#[test]
fn an_impossible_fact_changes_nothing() {
    let world = World::running(LoopLimits::default());
    let mut agent = world.agent.clone();
    let mut event = world.log[3].clone();
    event.seq = 5;
    for body in [
        EventBody::SessionCreated(created(LoopLimits::default())),
        EventBody::InputCancelled(InputCancelled {
            input: InputId::NIL,
            reason: None,
        }),
        EventBody::TurnStarted(TurnStarted { inputs: vec![] }),
        EventBody::RuleRemoved(RuleRemoved {
            rule: "x".into(),
            reach: None,
        }),
        event.body.clone(),
    ] {
        event.body = body;
        assert!(matches!(
            agent.apply(&event),
            Err(FoldError::Impossible { seq: 5, .. })
        ));
        assert_eq!(agent.durable(), world.agent.durable());
    }
}

#[test]
fn every_state_has_a_reason() {
    let mut world = World::idle(LoopLimits::default());
    let mut seen = vec![world.agent.status(Timestamp(world.now))];
    world.send("x");
    seen.push(world.agent.status(Timestamp(world.now)));
    world.fail(FailureClass::Overloaded);
    seen.push(world.agent.status(Timestamp(world.now)));
    world.fire(TimerKey::Backoff);
    world.call(&["Read", "Read"]);
    seen.push(world.agent.status(Timestamp(world.now)));
    world.judge_all(VerdictKind::Allow);
    seen.push(world.agent.status(Timestamp(world.now)));
    world.end_tool(ok());
    world.end_tool(ok());
    world.call(&["Bash"]);
    world.judge(VerdictKind::Ask);
    seen.push(world.agent.status(Timestamp(world.now)));
    world.cancel().unwrap();
    seen.push(world.agent.status(Timestamp(world.now)));
    let words: Vec<String> = seen
        .iter()
        .map(|status| format!("{}: {}", status.state, status.reason))
        .collect();
    let seconds = (seen[2].until.unwrap().0 - seen[2].since.0).div_ceil(1_000);
    assert_eq!(
        words,
        [
            "idle: waits for its first input".to_owned(),
            "running(model): step 1: sonnet answers".to_owned(),
            format!("backing_off: attempt 2 in {seconds} s: it failed"),
            "running(tool): the calls of the model are being judged".to_owned(),
            "running(tool): Read: it and 1 more".to_owned(),
            "waiting(approval): Bash: it".to_owned(),
            "idle: the last turn was cancelled".to_owned(),
        ]
    );
    assert_eq!(seen[2].attempt, Some(2));
}

#[test]
fn sums_run_over_all_turns() {
    let mut world = World::running(LoopLimits::default());
    world.tool_step("Read", serde_json::json!({}), ok());
    world.say("Done.");
    world.send("again");
    world.say("Done.");
    let summary = world.summary();
    assert_eq!(
        (summary.steps, summary.usage.total(), summary.cost_usd),
        (3, 300, 0.75)
    );
    let ended = world.ended();
    assert_eq!(
        (ended.steps, ended.tool_calls, ended.usage.total(), ended.cost_usd),
        (1, 0, 100, 0.25)
    );
    assert_eq!((summary.seq, summary.turn), (world.log.len() as u64, None));
}

#[test]
fn cancelling_while_calls_are_judged_keeps_the_answer_and_what_it_cost() {
    let mut world = World::running(LoopLimits::default());
    world.call(&["Bash", "Read"]);
    world.cancel().unwrap();
    assert_eq!(
        world.kinds(),
        [
            "model.finished",
            "tool.proposed",
            "tool.proposed",
            "tool.finished",
            "tool.finished",
            "turn.finished"
        ]
    );
    assert_eq!(world.summary().usage.total(), 100);
    assert!(world.timers.is_empty() && world.agent.at_rest());
    world.check_log();
}

fn took(world: &World) -> Vec<u64> {
    let finished = world.step.events.iter().filter_map(|event| match &event.body {
        EventBody::ToolFinished(done) => Some(done.outcome.duration_ms),
        _ => None,
    });
    finished.collect()
}

#[test]
fn cancelling_while_a_call_runs_and_another_is_asked_about_closes_both() {
    let mut world = World::running(LoopLimits::default());
    world.call(&["Read", "Bash"]);
    world.judge(VerdictKind::Allow);
    world.judge(VerdictKind::Ask);
    world.now += 1_500;
    world.cancel().unwrap();
    // The clock advances by 10 ms with every input.
    assert_eq!(took(&world), [1_510, 0], "only the one that ran took time");
    assert_eq!(
        world.kinds(),
        [
            "tool.finished",
            "approval.decided",
            "tool.finished",
            "turn.finished"
        ]
    );
    assert_eq!(
        world.statuses(),
        [ToolStatus::Interrupted, ToolStatus::Interrupted]
    );
    assert!(world.running.is_empty());
    world.check_log();
}

#[test]
fn cancelling_a_back_off_and_a_limit_question_ends_them() {
    let mut world = World::running(LoopLimits {
        max_turns: 1,
        ..LoopLimits::default()
    });
    world.fail(FailureClass::Transient);
    world.cancel().unwrap();
    assert_eq!((world.kinds(), world.timers.len()), (vec!["turn.finished"], 0));
    world.send("again");
    world.tool_step("Read", serde_json::json!({}), ok());
    world.cancel().unwrap();
    assert_eq!(world.kinds(), ["approval.decided", "turn.finished"]);
    world.check_log();
}
