//! Recovery after a restart, by what was in flight; and draining before one.

use super::world::*;
use crate::*;
use agentd_protocol::*;

fn closed(world: &World) -> Vec<(String, String)> {
    let EventBody::SessionRecovered(recovered) = &world.step.events[0].body else {
        panic!("{:?}", world.kinds())
    };
    recovered
        .closed
        .iter()
        .map(|item| (item.what.clone(), item.how.clone()))
        .collect()
}

fn pair(what: &str, how: &str) -> (String, String) {
    (what.to_owned(), how.to_owned())
}

#[test]
fn waking_an_idle_session_writes_nothing() {
    let mut world = World::idle(LoopLimits::default());
    world.restart();
    assert_eq!(world.step, Step::default());
    world.send("x");
    world.say("Done.");
    world.restart();
    assert_eq!(world.step, Step::default());
}

#[test]
fn a_lost_stream_is_a_new_attempt_and_no_failure() {
    let mut world = World::running(LoopLimits::default());
    for attempt in 2..12 {
        world.restart();
        assert_eq!(world.kinds(), ["session.recovered", "model.started"]);
        assert_eq!(closed(&world), [pair("model_call", "retried")]);
        assert_eq!(world.models[0].1, attempt);
    }
    world.fail(FailureClass::Transient);
    assert_eq!(
        world.kinds(),
        ["model.failed"],
        "lost attempts do not use up retries"
    );
}

#[test]
fn an_answer_that_was_being_judged_is_asked_for_again() {
    let mut world = World::running(LoopLimits::default());
    world.call(&["Bash"]);
    world.restart();
    assert_eq!(world.kinds(), ["session.recovered", "model.started"]);
}

#[test]
fn a_back_off_goes_on_from_the_logged_time() {
    let mut world = World::running(LoopLimits::default());
    world.fail_with(FailureClass::RateLimited, Some(100_000));
    let due = world.timers[&TimerKey::Backoff].1;
    world.now += 40_000;
    world.restart();
    assert_eq!((world.kinds(), world.timers[&TimerKey::Backoff].1), (vec![], due));
    world.crash();
    world.now = due + 1;
    world.input(Input::Recover);
    assert_eq!(world.kinds(), ["model.started"]);
}

#[test]
fn i4_dangling_call_is_not_run_again() {
    let mut world = World::running(LoopLimits::default());
    world.call(&["Bash"]);
    world.judge(VerdictKind::Allow);
    world.restart();
    assert_eq!(
        world.kinds(),
        ["session.recovered", "tool.finished", "model.started"]
    );
    assert_eq!(closed(&world), [pair("tool_call", "interrupted")]);
    let EventBody::ToolFinished(finished) = &world.step.events[1].body else {
        panic!()
    };
    assert_eq!(
        (finished.outcome.status, finished.outcome.outcome_unknown),
        (ToolStatus::Interrupted, true)
    );
    assert!(finished.outcome.llm_text.contains("outcome unknown"));
    assert!(world.running.is_empty());
    world.check_log();
}

#[test]
fn i4_an_idempotent_call_is_run_again_with_the_same_id() {
    let mut world = World::running(LoopLimits::default());
    world.idempotent = true;
    world.call(&["Read", "Grep"]);
    world.judge_all(VerdictKind::Allow);
    let ids = world.running.clone();
    world.restart();
    assert_eq!((world.kinds(), &world.running), (vec!["session.recovered"], &ids));
    assert_eq!(
        closed(&world),
        [pair("tool_call", "run_again"), pair("tool_call", "run_again")]
    );
    world.end_tool(ok());
    world.end_tool(ok());
    assert_eq!(world.kinds(), ["tool.finished", "model.started"]);
}

#[test]
fn an_allowed_call_that_was_not_started_is_started_now() {
    let mut world = World::running(LoopLimits::default());
    world.call(&["Bash", "Write"]);
    world.judge_all(VerdictKind::Allow);
    world.restart();
    assert_eq!(world.kinds(), ["session.recovered", "tool.finished"]);
    assert_eq!(
        world.judging.len(),
        1,
        "its plan was lost, so it is prepared again"
    );
    world.judge(VerdictKind::Ask);
    assert_eq!(world.kinds(), ["tool.started"], "the logged verdict stands");
    world.end_tool(ok());
    assert_eq!(world.kinds(), ["tool.finished", "model.started"]);
}

#[test]
fn i7_a_call_that_was_allowed_and_is_denied_now_does_not_run() {
    let mut world = World::running(LoopLimits::default());
    world.call(&["Bash", "Write"]);
    world.judge_all(VerdictKind::Allow);
    world.restart();
    world.judge(VerdictKind::Deny);
    assert_eq!(world.kinds(), ["verdict.given", "tool.finished", "model.started"]);
    assert_eq!(world.statuses(), [ToolStatus::Interrupted, ToolStatus::Denied]);
}

#[test]
fn i7_a_gate_that_is_silent_after_a_restart_denies() {
    let mut world = World::running(LoopLimits::default());
    world.call(&["Bash", "Write"]);
    world.judge_all(VerdictKind::Allow);
    world.restart();
    world.fire(TimerKey::Questions);
    assert_eq!(world.statuses(), [ToolStatus::Interrupted, ToolStatus::Denied]);
}

#[test]
fn an_open_approval_survives_a_restart_with_its_id_and_its_time() {
    let limits = LoopLimits {
        ask_timeout_ms: Some(100_000),
        ..LoopLimits::default()
    };
    let mut world = World::running(limits);
    world.call(&["Bash"]);
    world.judge(VerdictKind::Ask);
    let (approval, due) = (
        world.approval(),
        world.timers[&TimerKey::Expiry(world.approval())].1,
    );
    world.now += 30_000;
    world.restart();
    assert_eq!(world.kinds(), Vec::<&str>::new(), "nothing was in flight");
    assert_eq!(world.timers[&TimerKey::Expiry(approval)].1, due);
    world.decide(Decision::Allow, Scope::Once).unwrap();
    assert_eq!(world.kinds(), ["approval.decided"]);
    world.judge(VerdictKind::Ask);
    assert_eq!(world.kinds(), ["tool.started"], "the person's word stands");
}

#[test]
fn a_limit_question_survives_a_restart() {
    let mut world = World::running(LoopLimits {
        max_turns: 1,
        ..LoopLimits::default()
    });
    world.tool_step("Read", serde_json::json!({}), ok());
    world.restart();
    assert_eq!(
        (world.kinds(), world.state()),
        (vec![], RunState::Waiting(WaitReason::Limit))
    );
    world.decide(Decision::Allow, Scope::Once).unwrap();
    assert_eq!(world.kinds(), ["approval.decided", "model.started"]);
}

#[test]
fn draining_finishes_what_runs_and_starts_nothing() {
    let mut world = World::running(LoopLimits::default());
    world.call(&["Read", "Bash"]);
    world.judge_all(VerdictKind::Allow);
    world.input(Input::Drain);
    assert!(!world.agent.at_rest());
    world.end_tool(ok());
    assert_eq!(world.kinds(), ["tool.finished"]);
    assert!(world.agent.at_rest() && world.running.is_empty());
    assert!(world.summary().resumable);
    let late = world
        .deliver("queued while it drains", Some(Delivery::Queue))
        .unwrap();
    world.restart();
    assert_eq!(world.kinds(), Vec::<&str>::new());
    world.judge(VerdictKind::Allow);
    world.end_tool(ok());
    world.say("Done.");
    assert_eq!(world.joined().last(), Some(&vec![late]));
}

#[test]
fn a_drained_answer_is_kept_and_its_turn_goes_on_after_the_restart() {
    let mut world = World::running(LoopLimits::default());
    world.call(&["Read"]);
    world.judge(VerdictKind::Allow);
    world.input(Input::Drain);
    world.end_tool(ok());
    assert!(world.agent.at_rest());
    world.now += 1_000_000;
    let worked = world.agent.durable().totals.time_ms;
    world.restart();
    assert_eq!(
        world.kinds(),
        ["model.started"],
        "nothing was in flight, the turn just goes on"
    );
    assert_eq!(world.agent.durable().totals.time_ms, worked);
}

#[test]
fn an_input_accepted_while_draining_starts_its_turn_after_the_restart() {
    let mut world = World::idle(LoopLimits::default());
    world.input(Input::Drain);
    let input = world.send("x");
    assert_eq!(world.kinds(), ["input.accepted"]);
    assert!(world.summary().resumable);
    world.restart();
    assert_eq!(world.kinds(), ["turn.started", "model.started"]);
    assert_eq!(world.joined(), [vec![input]]);
}

/// Found by the simulator: such a session was never woken, and lists showed a streaming model.
#[test]
fn i6_an_attempt_that_is_lost_in_a_pause_does_not_run_for_ever() {
    let mut world = World::running(LoopLimits::default());
    world.command(Command::Pause { reason: "x".into() }).unwrap();
    assert_eq!(world.state(), RunState::RunningModel);
    assert!(world.summary().resumable, "a new incarnation closes what is gone");
    world.restart();
    assert_eq!(world.kinds(), ["session.recovered"]);
    assert_eq!(world.state(), RunState::Paused);
    assert!(world.agent.at_rest() && !world.summary().resumable);
}
