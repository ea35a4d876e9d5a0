//! Step caps, budgets, presets.

use super::world::*;
use crate::*;
use agentd_protocol::*;
use agentd_settings::{LimitOverrides, Loaded};
use serde_json::json;

/// Takes tool steps until the turn does something other than another step.
fn take_steps(world: &mut World, most: usize) -> usize {
    for taken in 0..most {
        if world.models.is_empty() {
            return taken;
        }
        world.tool_step("Read", json!({"at": world.now}), ok());
    }
    most
}

fn budget(budget: Budget) -> World {
    let mut world = World::with(SessionCreated {
        budget,
        ..created(LoopLimits::default())
    });
    world.send("do it");
    world
}

#[test]
fn max_turns_0_is_chat_disabled_and_the_input_stays() {
    let mut world = World::idle(LoopLimits {
        max_turns: 0,
        ..LoopLimits::default()
    });
    let input = world.send("hello");
    assert_eq!(world.kinds(), ["input.accepted", "turn.started", "turn.finished"]);
    assert_eq!(world.reason(), EndReason::ChatDisabled);
    assert_eq!(
        world
            .summary()
            .queue
            .iter()
            .map(|queued| queued.input)
            .collect::<Vec<_>>(),
        [input]
    );
    assert!(world.agent.at_rest());
    assert!(!world.summary().resumable);
}

#[test]
fn at_the_cap_a_person_is_asked_and_going_on_gives_as_many_steps_again() {
    let mut world = World::running(LoopLimits {
        max_turns: 3,
        ..LoopLimits::default()
    });
    assert_eq!(take_steps(&mut world, 99), 3);
    assert_eq!(
        world.kinds(),
        ["tool.finished", "limit.reached", "approval.asked"]
    );
    assert_eq!(world.state(), RunState::Waiting(WaitReason::Limit));
    assert!(world.agent.at_rest());
    let approval = world.approval();
    let answer = |answer: &str| Command::Decide {
        approval,
        decision: Decision::Answer,
        scope: Scope::Once,
        answer: Some(answer.into()),
        message: None,
        basis: Some(Basis::Policy),
    };
    assert_eq!(
        world.command(answer("maybe")).unwrap_err().class,
        FaultClass::Invalid
    );
    world.command(answer("continue")).unwrap();
    assert_eq!(world.kinds(), ["approval.decided", "model.started"]);
    let EventBody::ModelStarted(started) = &world.step.events[1].body else {
        panic!()
    };
    assert_eq!((started.step, started.max_steps), (4, 6));
    assert_eq!(take_steps(&mut world, 99), 3);
    let approval = world.approval();
    let stop = Command::Decide {
        approval,
        decision: Decision::Answer,
        scope: Scope::Once,
        answer: Some("stop".into()),
        message: None,
        basis: Some(Basis::Policy),
    };
    world.command(stop).unwrap();
    assert_eq!(world.kinds(), ["approval.decided", "turn.finished"]);
    assert_eq!((world.reason(), world.ended().steps), (EndReason::MaxTurns, 6));
}

#[test]
fn a_limit_that_nobody_answers_in_time_stops_the_turn() {
    let limits = LoopLimits {
        max_turns: 1,
        ask_timeout_ms: Some(5_000),
        ..LoopLimits::default()
    };
    let mut world = World::running(limits);
    take_steps(&mut world, 9);
    let approval = world.approval();
    assert_eq!(world.summary().wake_at, Some(Timestamp(world.now + 5_000)));
    world.fire(TimerKey::Expiry(approval));
    assert_eq!(world.reason(), EndReason::MaxTurns);
    world.check_log();
}

#[test]
fn headless_sessions_are_never_asked_about_limits() {
    let mut world = World::running(LoopLimits {
        max_turns: 2,
        headless: true,
        ..LoopLimits::default()
    });
    assert_eq!(take_steps(&mut world, 99), 2);
    assert_eq!(world.kinds(), ["tool.finished", "limit.reached", "turn.finished"]);
    assert_eq!(world.reason(), EndReason::MaxTurns);
}

#[test]
fn a_summary_at_the_cap_is_one_more_call_without_tools() {
    let limits = LoopLimits {
        max_turns: 2,
        on_limit: OnLimit::Summarize,
        ..LoopLimits::default()
    };
    let mut world = World::running(limits);
    take_steps(&mut world, 2);
    assert_eq!(
        world.kinds(),
        ["tool.finished", "limit.reached", "note.injected", "model.started"]
    );
    assert!(matches!(
        world.step.effects.last(),
        Some(Effect::StartModel { tools_off: true, .. })
    ));
    world.fail(FailureClass::Transient);
    world.fire(TimerKey::Backoff);
    assert!(
        world
            .step
            .effects
            .iter()
            .any(|effect| matches!(effect, Effect::StartModel { tools_off: true, .. }))
    );
    world.answer(
        vec![Block::text("Half is done."), tool_use("Bash", json!({}))],
        StopReason::ToolUse,
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
        (world.reason(), world.ended().text.as_str()),
        (EndReason::MaxTurns, "Half is done.")
    );
    world.check_log();
}

#[test]
fn budgets_warn_once_near_the_end_and_then_stop_hard() {
    for (limit, of) in [
        (
            LimitKind::Tokens,
            Budget {
                tokens: 1_000,
                ..Budget::default()
            },
        ),
        (
            LimitKind::Cost,
            Budget {
                usd: 2.5,
                ..Budget::default()
            },
        ),
        (
            LimitKind::Steps,
            Budget {
                steps: 10,
                ..Budget::default()
            },
        ),
    ] {
        let mut world = budget(of);
        assert_eq!(take_steps(&mut world, 99), 10, "{limit:?}");
        assert_eq!(
            world.limits_reached(),
            [(limit, "warn".to_owned()), (limit, "stop".to_owned())]
        );
        assert_eq!(
            world.notes().iter().map(|(kind, _)| *kind).collect::<Vec<_>>(),
            [NoteKind::LimitNotice]
        );
        assert_eq!(
            (world.reason(), world.state()),
            (EndReason::Budget, RunState::Failed)
        );
        world.send("more");
        assert_eq!(world.reason(), EndReason::Budget, "the budget is the session's");
        set_budget(&mut world, of);
        assert_eq!(world.state(), RunState::Failed, "the same budget is used up, too");
        set_budget(&mut world, Budget::default());
        assert_eq!(
            world.joined().last().map(Vec::len),
            Some(2),
            "what could not join before joins now"
        );
        world.say("Done.");
        assert_eq!(world.reason(), EndReason::Completed);
        set_budget(&mut world, of);
        assert_eq!(
            world.kinds(),
            ["session.updated"],
            "nothing was stopped that could go on"
        );
        world.check_log();
    }
}

fn set_budget(world: &mut World, budget: Budget) {
    let command = Command::Update {
        expect: None,
        title: None,
        model: None,
        mode: None,
        labels: None,
        budget: Some(budget),
    };
    world.command(command).unwrap();
}

#[test]
fn a_paused_session_goes_on_with_a_raised_budget_when_it_is_resumed() {
    let mut world = budget(Budget {
        steps: 2,
        ..Budget::default()
    });
    take_steps(&mut world, 99);
    assert_eq!(world.reason(), EndReason::Budget);
    let reason = "wait".to_owned();
    world.command(Command::Pause { reason }).unwrap();
    set_budget(&mut world, Budget::default());
    assert_eq!(world.state(), RunState::Paused);
    set_budget(&mut world, Budget::default());
    let reason = "go".to_owned();
    world.command(Command::Resume { moved: None, reason }).unwrap();
    assert_eq!(world.state(), RunState::RunningModel);
    assert_eq!(world.joined().last().map(Vec::len), Some(1), "it is told once");
}

#[test]
fn a_budget_that_is_used_up_while_a_call_backs_off_ends_the_turn_before_the_next_attempt() {
    let mut world = budget(Budget {
        time_ms: 20_000,
        ..Budget::default()
    });
    world.fail_with(FailureClass::Overloaded, Some(29_000));
    world.fire(TimerKey::Backoff);
    assert_eq!(world.limits_reached(), [(LimitKind::Time, "stop".to_owned())]);
    assert_eq!(world.kinds(), ["limit.reached", "turn.finished"]);
    assert_eq!(world.reason(), EndReason::Budget);
    world.check_log();
}

#[test]
fn the_last_step_of_a_budget_may_be_retried() {
    let mut world = budget(Budget {
        steps: 1,
        ..Budget::default()
    });
    world.fail(FailureClass::Overloaded);
    world.fire(TimerKey::Backoff);
    world.say("Done.");
    assert_eq!((world.reason(), world.ended().steps), (EndReason::Completed, 1));
}

fn warnings(world: &World) -> Vec<String> {
    let raised = world.log.iter().filter_map(|event| match &event.body {
        EventBody::WarningRaised(raised) => Some(raised.code.clone()),
        _ => None,
    });
    raised.collect()
}

#[test]
fn a_token_budget_holds_although_the_server_counts_nothing() {
    let mut world = budget(Budget {
        tokens: 40,
        ..Budget::default()
    });
    for _ in 0..4 {
        let answer = ModelAnswer {
            usage: Usage::default(),
            ..answer_of(vec![Block::text("x".repeat(50))], StopReason::PauseTurn)
        };
        if world.models.is_empty() {
            break;
        }
        world.answer_with(answer);
    }
    assert_eq!(world.reason(), EndReason::Budget);
    // Seven tokens of conversation and thirteen of answer, twice.
    assert_eq!((world.ended().usage.total(), world.ended().steps), (40, 2));
    assert_eq!(warnings(&world), ["usage_estimated"], "once a turn");
}

#[test]
fn the_side_that_the_server_does_not_count_is_estimated() {
    let counted = |input, output| Usage {
        input,
        output,
        ..Usage::default()
    };
    // Seven tokens of conversation, five around it, thirteen of answer.
    for (said, expected, estimated) in [
        (counted(0, 0), counted(12, 13), true),
        (counted(0, 3), counted(12, 3), true),
        (counted(100, 0), counted(100, 13), true),
        (counted(100, 3), counted(100, 3), false),
    ] {
        let mut world = budget(Budget {
            tokens: 4_000,
            ..Budget::default()
        });
        world.sizes.frame_tokens = 5;
        world.answer_with(ModelAnswer {
            usage: said,
            ..answer_of(vec![Block::text("x".repeat(50))], StopReason::EndTurn)
        });
        assert_eq!(world.ended().usage, expected, "{said:?}");
        assert_eq!(!warnings(&world).is_empty(), estimated, "{said:?}");
    }
}

#[test]
fn a_money_budget_says_when_it_cannot_see_the_cost() {
    let mut world = budget(Budget {
        usd: 1.0,
        ..Budget::default()
    });
    let answer = ModelAnswer {
        cost_usd: None,
        ..answer_of(vec![Block::text("Done.")], StopReason::EndTurn)
    };
    world.answer_with(answer);
    assert_eq!(warnings(&world), ["cost_unknown"]);
    assert_eq!(world.reason(), EndReason::Completed);
}

#[test]
fn the_time_budget_counts_work_and_not_the_waiting_for_people() {
    let mut world = budget(Budget {
        time_ms: 60_000,
        ..Budget::default()
    });
    world.call(&["Bash"]);
    world.judge(VerdictKind::Ask);
    world.now += 10_000_000;
    world.decide(Decision::Allow, Scope::Once).unwrap();
    let before = world.agent.durable().totals.time_ms;
    assert!(before < 100, "{before}");
    world.now += 40_000;
    world.end_tool(ok());
    assert_eq!(world.limits_reached(), []);
    world.now += 30_000;
    world.tool_step("Read", json!({}), ok());
    assert_eq!(world.limits_reached(), [(LimitKind::Time, "stop".to_owned())]);
    assert_eq!(world.reason(), EndReason::Budget);
}

#[test]
fn pauses_and_the_time_between_two_incarnations_are_not_work() {
    let mut world = World::running(LoopLimits::default());
    world.now += 500;
    world.fail_with(FailureClass::Overloaded, Some(20_000));
    let worked = world.agent.durable().totals.time_ms + world.backoff_ms();
    world.crash();
    world.now += 9_000_000;
    world.input(Input::Recover);
    assert_eq!(
        world.agent.durable().totals.time_ms,
        worked,
        "a back-off ends when it is over"
    );
    world.crash();
    world.now += 9_000_000;
    world.input(Input::Recover);
    assert_eq!(world.agent.durable().totals.time_ms, worked);
    world.say("Done.");
    world.now += 9_000_000;
    world.send("more");
    assert_eq!(world.agent.durable().totals.time_ms, worked + 10);
}

/// The limits of a session that selects a preset, with the shipped settings.
fn preset(preset: Preset) -> LoopLimits {
    let asked = LimitOverrides {
        preset: Some(preset),
        ..LimitOverrides::default()
    };
    Loaded::default().limits(&asked).0
}

#[test]
fn presets_default_and_clawd_ask_after_100_steps() {
    for name in [Preset::Default, Preset::Clawd] {
        let mut world = World::running(preset(name));
        assert_eq!(take_steps(&mut world, 999), 100);
        assert_eq!(world.state(), RunState::Waiting(WaitReason::Limit));
        let mut world = World::running(LoopLimits {
            max_turns: 500,
            ..preset(name)
        });
        assert_eq!(take_steps(&mut world, 999), 100, "the hard cap wins");
        let mut world = World::running(preset(name));
        for _ in 0..3 {
            world.say("Let me check the file:");
        }
        assert_eq!(world.reason(), EndReason::Completed);
        assert_eq!(world.notes().len(), 2, "nudges");
    }
}

#[test]
fn preset_openclaw_stops_after_30_steps() {
    let mut world = World::running(preset(Preset::Openclaw));
    assert_eq!(take_steps(&mut world, 999), 30);
    assert_eq!(world.reason(), EndReason::MaxTurns);
    let mut world = World::running(preset(Preset::Openclaw));
    world.say("Let me check the file:");
    assert_eq!((world.reason(), world.notes()), (EndReason::Completed, vec![]));
}

#[test]
fn preset_etcode_has_no_cap_and_a_denial_stops_it() {
    let mut world = World::running(preset(Preset::Etcode));
    assert_eq!(take_steps(&mut world, 300), 300);
    world.call(&["Bash"]);
    world.judge(VerdictKind::Deny);
    assert_eq!(world.reason(), EndReason::Denied);
}

#[test]
fn preset_react_stops_after_20_steps_and_watches_for_stutter() {
    let mut world = World::running(preset(Preset::React));
    assert_eq!(take_steps(&mut world, 999), 20);
    assert_eq!(world.reason(), EndReason::MaxTurns);
    let mut world = World::running(preset(Preset::React));
    world.text(&"again ".repeat(100));
    assert_eq!(world.kinds(), ["model.failed"]);
}
