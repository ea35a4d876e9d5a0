//! Tool calls: the order of facts, barriers, parallel reads, refusals, cut-off answers.

use super::world::*;
use crate::*;
use VerdictKind::{Allow, Ask, Deny};
use agentd_protocol::*;
use serde_json::json;

#[test]
fn a_step_of_one_allowed_call_costs_two_appends() {
    let mut world = World::running(LoopLimits::default());
    let before = world.appends;
    world.call(&["Bash"]);
    assert_eq!(
        world.kinds(),
        Vec::<&str>::new(),
        "nothing is written before the verdict"
    );
    world.judge(Allow);
    assert_eq!(
        world.kinds(),
        ["model.finished", "tool.proposed", "verdict.given", "tool.started"]
    );
    world.end_tool(ok());
    assert_eq!(world.kinds(), ["tool.finished", "model.started"]);
    for _ in 0..9 {
        world.tool_step("Bash", json!({"at": world.now}), ok());
    }
    assert_eq!(world.appends - before, 20);
    world.say("Done.");
    assert_eq!(world.kinds(), ["model.finished", "turn.finished"]);
}

#[test]
fn tool_call_ids_are_ours_although_the_provider_repeats_its_own() {
    let mut world = World::running(LoopLimits::default());
    world.call(&["Read", "Read"]);
    world.judge_all(Allow);
    let EventBody::ModelFinished(finished) = &world.step.events[0].body else {
        panic!()
    };
    let ids: Vec<String> = finished
        .content
        .iter()
        .map(|block| match block {
            Block::ToolUse { id, .. } => id.clone(),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(
        ids,
        world.running.iter().map(ToString::to_string).collect::<Vec<_>>()
    );
    assert_ne!(ids[0], ids[1]);
}

#[test]
fn adjacent_reads_run_together_and_anything_else_is_a_barrier() {
    let mut world = World::running(LoopLimits::default());
    world.call(&["Read", "Grep", "Bash", "Read", "Ls"]);
    let order: Vec<ToolCallId> = world.judging.iter().map(|(id, _)| *id).collect();
    world.judge_all(Allow);
    assert_eq!(world.running, order[..2]);
    world.end_tool(ok());
    assert_eq!(world.running, order[1..2], "the barrier waits for both");
    world.end_tool(ok());
    assert_eq!(world.running, order[2..3]);
    world.end_tool(ok());
    assert_eq!(world.running, order[3..]);
    world.end_tool(ok());
    world.end_tool(ok());
    assert_eq!(world.kinds(), ["tool.finished", "model.started"]);
}

#[test]
fn no_more_reads_run_together_than_allowed() {
    let mut world = World::running(LoopLimits {
        max_parallel_tools: 2,
        ..LoopLimits::default()
    });
    world.call(&["Read", "Read", "Read", "Read", "Read"]);
    world.judge_all(Allow);
    for left in [2, 2, 2, 2, 1] {
        assert_eq!(world.agent.volatile.running.len(), left);
        world.end_tool(ok());
    }
    assert_eq!(world.agent.volatile.running.len(), 0);
}

#[test]
fn reads_run_while_a_later_call_waits_for_a_person() {
    let mut world = World::running(LoopLimits::default());
    world.call(&["Read", "Bash", "Read"]);
    world.judge(Allow);
    world.judge(Ask);
    world.judge(Allow);
    let kinds = world.kinds();
    assert_eq!(kinds[kinds.len() - 2..], ["approval.asked", "tool.started"]);
    assert_eq!(world.running.len(), 1, "the last read stays behind the barrier");
    world.end_tool(ok());
    assert_eq!(world.state(), RunState::Waiting(WaitReason::Approval));
    assert!(world.agent.at_rest());
    world.decide(Decision::Allow, Scope::Once).unwrap();
    assert_eq!(world.kinds(), ["approval.decided", "tool.started"]);
    world.end_tool(ok());
    assert_eq!(world.kinds(), ["tool.finished", "tool.started"]);
    world.end_tool(ok());
    assert_eq!(world.kinds(), ["tool.finished", "model.started"]);
}

#[test]
fn reads_behind_a_read_that_waits_for_a_person_run() {
    let mut world = World::running(LoopLimits::default());
    world.call(&["Read", "Read"]);
    world.judge(Ask);
    world.judge(Allow);
    assert_eq!(world.running.len(), 1);
}

#[test]
fn an_unknown_tool_is_a_result_without_a_verdict() {
    let mut world = World::running(LoopLimits::default());
    world.call(&["Fly"]);
    world.refuse();
    assert_eq!(
        world.kinds(),
        [
            "model.finished",
            "tool.proposed",
            "tool.finished",
            "model.started"
        ]
    );
    assert_eq!(
        world.results(),
        [(ToolStatus::Error, "there is no such tool".to_owned())]
    );
}

#[test]
fn a_denied_call_tells_the_model_which_rule_and_why() {
    let mut world = World::running(LoopLimits::default());
    world.call(&["Bash"]);
    world.judge(Deny);
    assert_eq!(
        world.kinds(),
        [
            "model.finished",
            "tool.proposed",
            "verdict.given",
            "tool.finished",
            "model.started"
        ]
    );
    let (status, text) = world.results().remove(0);
    assert_eq!(status, ToolStatus::Denied);
    assert!(text.contains("`mode:default`: so it is"), "{text}");
}

#[test]
fn with_on_deny_stop_a_denial_closes_everything_and_ends_the_turn() {
    let mut world = World::running(LoopLimits {
        on_deny: OnDeny::Stop,
        ..LoopLimits::default()
    });
    world.call(&["Read", "Bash", "Bash"]);
    world.judge(Allow);
    world.judge(Ask);
    world.judge(Ask);
    world.decide(Decision::Deny, Scope::Once).unwrap();
    assert_eq!(
        world.kinds(),
        [
            "approval.decided",
            "tool.finished",
            "tool.finished",
            "approval.decided",
            "tool.finished",
            "turn.finished"
        ]
    );
    assert_eq!(
        world.statuses(),
        [
            ToolStatus::Denied,
            ToolStatus::Interrupted,
            ToolStatus::Interrupted
        ]
    );
    assert!(world.running.is_empty(), "the read was killed");
    assert_eq!(world.reason(), EndReason::Denied);
    assert_eq!(world.state(), RunState::Idle);
    world.check_log();
}

#[test]
fn i7_what_is_not_judged_in_time_is_denied() {
    let mut world = World::running(LoopLimits::default());
    world.call(&["Read", "Bash"]);
    world.judge(Allow);
    let late = world.judging.clone();
    world.fire(TimerKey::Questions);
    let verdicts: Vec<Verdict> = world
        .step
        .events
        .iter()
        .filter_map(|event| match &event.body {
            EventBody::VerdictGiven(given) => Some(given.verdict.clone()),
            _ => None,
        })
        .collect();
    assert_eq!(
        verdicts.iter().map(|verdict| verdict.kind).collect::<Vec<_>>(),
        [Allow, Deny]
    );
    assert_eq!(verdicts[1].rule, "gate:timeout");
    let judged = Judged::Verdict {
        verdict: Verdict {
            kind: Allow,
            rule: "late".into(),
            reason: "late".into(),
        },
        plan: world.plan("Bash"),
    };
    world.judged(late[0].0, judged);
    assert_eq!(world.step, Step::default(), "a late verdict changes nothing");
    assert_eq!(world.running.len(), 1);
}

#[test]
fn i3_calls_of_a_cut_off_answer_are_not_run_and_have_results() {
    for (stop, reason) in [
        (StopReason::ContextWindow, EndReason::Truncated),
        (StopReason::Refusal, EndReason::Refused),
        (StopReason::ContentFilter, EndReason::Refused),
    ] {
        let mut world = World::running(LoopLimits::default());
        world.answer(
            vec![Block::text("I will"), tool_use("Bash", json!("{\"cmd"))],
            stop,
        );
        assert_eq!(
            world.kinds(),
            [
                "model.finished",
                "tool.proposed",
                "tool.finished",
                "turn.finished"
            ]
        );
        assert_eq!(
            (world.reason(), world.statuses()),
            (reason, vec![ToolStatus::Interrupted])
        );
        assert_eq!(
            (world.state(), world.ended().text.as_str()),
            (RunState::Failed, "I will")
        );
        assert!(world.judging.is_empty());
        world.check_log();
    }
}

#[test]
fn calls_win_over_the_stop_reason_end_turn() {
    let mut world = World::running(LoopLimits::default());
    world.answer(vec![tool_use("Read", json!({}))], StopReason::EndTurn);
    world.judge(Allow);
    assert_eq!(world.running.len(), 1);
}

#[test]
fn a_result_that_comes_after_its_call_was_closed_is_dropped() {
    let mut world = World::running(LoopLimits::default());
    world.call(&["Bash"]);
    world.judge(Allow);
    let killed = world.running[0];
    world.cancel().unwrap();
    world.input(Input::ToolEnded {
        tool_call: killed,
        outcome: ok(),
    });
    assert_eq!(world.step, Step::default());
    world.check_log();
}
