//! Guards: announced actions, loops, failing steps, stutter; and what must not trigger them.

use super::world::*;
use crate::*;
use agentd_protocol::*;
use serde_json::json;

fn failing() -> ToolOutcome {
    ToolOutcome::text(ToolStatus::Error, "no such file")
}

#[test]
fn an_announced_action_is_nudged_twice_and_then_the_turn_is_over() {
    let mut world = World::running(LoopLimits::default());
    world.say("Let me check the log.");
    assert_eq!(
        world.kinds(),
        ["model.finished", "note.injected", "model.started"]
    );
    world.say("好的，让我先查看文件。");
    world.say("Now I do it:");
    assert_eq!(world.reason(), EndReason::Completed);
    let notes = world.notes();
    assert_eq!(notes.len(), 2);
    assert!(notes.iter().all(|(kind, _)| *kind == NoteKind::IntentNudge));
    assert!(
        notes[0].1.is_ascii() && !notes[1].1.is_ascii(),
        "in the conversation's language"
    );
}

#[test]
fn a_tool_call_resets_the_nudges() {
    let mut world = World::running(LoopLimits {
        intent_retries: 1,
        ..LoopLimits::default()
    });
    world.say("Let me check...");
    world.tool_step("Read", json!({}), ok());
    world.say("Let me look...");
    assert_eq!(
        world.kinds(),
        ["model.finished", "note.injected", "model.started"]
    );
    world.say("Let me look...");
    assert_eq!(world.reason(), EndReason::Completed);
}

#[test]
fn a_plain_answer_and_a_switched_off_guard_do_not_nudge() {
    for (retries, text) in [(2, "All tests pass."), (0, "Let me check:")] {
        let mut world = World::running(LoopLimits {
            intent_retries: retries,
            ..LoopLimits::default()
        });
        world.say(text);
        assert_eq!((world.reason(), world.notes()), (EndReason::Completed, vec![]));
    }
}

#[test]
fn an_empty_answer_is_asked_for_once_more_and_then_warned_about() {
    for (preset, empty) in [
        (LoopLimits::default(), ""),
        (
            LoopLimits {
                intent_retries: 0,
                ..LoopLimits::default()
            },
            " \n",
        ),
    ] {
        let mut world = World::running(preset);
        world.tool_step("Read", json!({}), ok());
        world.say(empty);
        assert_eq!(
            world.kinds(),
            ["model.finished", "note.injected", "model.started"]
        );
        let mut answered = World::running(LoopLimits::default());
        answered.say("");
        answered.say("Done.");
        assert_eq!(
            (answered.reason(), answered.warnings()),
            (EndReason::Completed, vec![])
        );
        world.say(empty);
        assert_eq!(
            world.kinds(),
            ["model.finished", "warning.raised", "turn.finished"]
        );
        assert_eq!(world.warnings()[0].0, "empty_answer");
        assert!(world.ended().reason == EndReason::Completed && !world.ended().succeeded());
        world.check_log();
    }
}

#[test]
fn text_before_an_empty_answer_is_an_answer() {
    let mut world = World::running(LoopLimits::default());
    world.answer(
        vec![Block::text("The file is there."), tool_use("Read", json!({}))],
        StopReason::ToolUse,
    );
    world.judge(VerdictKind::Allow);
    world.end_tool(ok());
    world.say("");
    assert_eq!(world.warnings(), []);
    assert!(world.ended().succeeded());
}

#[test]
fn nobody_is_asked_for_more_steps_only_to_nudge() {
    let mut world = World::running(LoopLimits {
        max_turns: 1,
        ..LoopLimits::default()
    });
    world.say("Let me check:");
    assert_eq!(world.reason(), EndReason::Completed);
}

#[test]
fn the_same_call_three_times_earns_a_note_and_once_more_ends_the_turn() {
    let mut world = World::running(LoopLimits::default());
    for _ in 0..2 {
        world.tool_step("Bash", json!({"a": 1, "b": 2}), ok());
    }
    assert_eq!(world.notes(), []);
    world.tool_step("Bash", json!({"b": 2, "a": 1}), ok());
    assert_eq!(world.kinds(), ["tool.finished", "note.injected", "model.started"]);
    assert_eq!(world.notes()[0].0, NoteKind::Guard);
    world.answer(
        vec![tool_use("Bash", json!({"a": 1, "b": 2}))],
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
        (world.reason(), world.state()),
        (EndReason::LoopDetected, RunState::Failed)
    );
    assert!(world.judging.is_empty(), "the fourth is not even judged");
    world.check_log();
}

#[test]
fn another_call_after_the_note_makes_all_well() {
    let mut world = World::running(LoopLimits::default());
    for _ in 0..3 {
        world.tool_step("Bash", json!({}), ok());
    }
    world.tool_step("Read", json!({}), ok());
    world.tool_step("Bash", json!({}), ok());
    world.say("Done.");
    assert_eq!((world.reason(), world.notes().len()), (EndReason::Completed, 1));
}

/// Two calls in turn with these results.
fn ping_pong(world: &mut World, results: [&str; 2]) {
    for (name, said) in ["Read", "Bash"].into_iter().zip(results) {
        world.tool_step(name, json!({}), ToolOutcome::text(ToolStatus::Ok, said));
    }
}

#[test]
fn two_calls_in_turn_three_times_earn_a_note_and_once_more_end_the_turn() {
    let mut world = World::running(LoopLimits::default());
    for _ in 0..3 {
        assert_eq!(world.notes(), []);
        ping_pong(&mut world, ["a", "b"]);
    }
    let (kind, text) = world.notes().remove(0);
    assert_eq!(kind, NoteKind::Guard);
    assert!(
        text.contains("the same 2 steps in turn 3 times in a row"),
        "{text}"
    );
    ping_pong(&mut world, ["a", "b"]);
    assert_eq!(world.notes().len(), 1);
    assert_eq!(world.reason(), EndReason::LoopDetected);
    let error = world.ended().error.unwrap();
    assert!(
        error.message.contains("the same steps again"),
        "{}",
        error.message
    );
    world.check_log();
}

#[test]
fn polling_that_gets_news_is_no_cycle_and_neither_is_a_way_out() {
    let mut polling = World::running(LoopLimits::default());
    for n in 0..9 {
        ping_pong(&mut polling, [&format!("{n} of 9"), ""]);
    }
    polling.say("Done.");
    assert_eq!(
        (polling.reason(), polling.notes()),
        (EndReason::Completed, vec![])
    );
    let mut left = World::running(LoopLimits::default());
    for _ in 0..3 {
        ping_pong(&mut left, ["a", "b"]);
    }
    left.tool_step("Read", json!({"other": 1}), ok());
    ping_pong(&mut left, ["a", "b"]);
    left.say("Done.");
    assert_eq!((left.reason(), left.notes().len()), (EndReason::Completed, 1));
}

#[test]
fn three_steps_in_which_every_call_failed_earn_a_note() {
    let mut world = World::running(LoopLimits::default());
    for n in 0..3 {
        assert_eq!(world.notes(), []);
        world.tool_step("Read", json!({"n": n}), failing());
    }
    assert_eq!(world.notes().len(), 1);
    for n in 0..2 {
        world.tool_step("Read", json!({"m": n}), failing());
    }
    assert_eq!(world.notes().len(), 1, "it counts again");
    world.tool_step("Read", json!({"m": 3}), failing());
    assert_eq!(world.notes().len(), 2);
}

#[test]
fn one_success_among_failures_resets_the_count() {
    let mut world = World::running(LoopLimits::default());
    for n in 0..2 {
        world.tool_step("Read", json!({"n": n}), failing());
    }
    world.call(&["Read", "Read"]);
    world.judge_all(VerdictKind::Allow);
    world.end_tool(failing());
    world.end_tool(ok());
    for n in 0..2 {
        world.tool_step("Read", json!({"m": n}), failing());
    }
    assert_eq!(world.notes(), []);
}

#[test]
fn a_stuttering_stream_is_killed_tried_once_more_and_then_a_loop() {
    let mut world = World::running(LoopLimits::default());
    world.text(&"the ".repeat(90));
    assert_eq!(world.step, Step::default());
    world.text(&"the ".repeat(20));
    assert_eq!(world.kinds(), ["model.failed"]);
    assert!(world.models.is_empty(), "the worker was killed");
    world.fire(TimerKey::Backoff);
    world.say(&"ab".repeat(300));
    assert_eq!(world.kinds(), ["model.failed", "turn.finished"]);
    assert_eq!(
        (world.reason(), world.state()),
        (EndReason::LoopDetected, RunState::Failed)
    );
}

#[test]
fn an_answer_thrown_away_for_stutter_is_paid_for_and_counts_against_the_budget() {
    let mut world = World::with(SessionCreated {
        budget: Budget {
            usd: 0.4,
            ..Budget::default()
        },
        ..created(LoopLimits::default())
    });
    world.send("go");
    world.say(&"ab".repeat(300));
    let totals = world.agent.durable().totals;
    assert_eq!((totals.usage.total(), totals.cost_usd), (100, 0.25));
    world.fire(TimerKey::Backoff);
    world.say(&"ab".repeat(300));
    assert_eq!(world.reason(), EndReason::LoopDetected);
    let ended = world.ended();
    assert_eq!((ended.usage.total(), ended.cost_usd), (200, 0.5));
    world.send("again");
    assert_eq!(world.reason(), EndReason::Budget);
}

#[test]
fn long_json_code_and_tables_do_not_stutter_and_the_guard_can_be_off() {
    let mut world = World::running(LoopLimits::default());
    for text in ["[{", "]}", "|---|---|\n", "    ", "},\n  {\n", "0, ", "====\n"] {
        world.text(&text.repeat(400));
        assert_eq!(world.step, Step::default(), "{text:?}");
    }
    world.say("Done.");
    assert_eq!(world.reason(), EndReason::Completed);
    let mut world = World::running(LoopLimits {
        stutter_guard: false,
        ..LoopLimits::default()
    });
    world.text(&"the ".repeat(900));
    world.say(&"the ".repeat(900));
    assert_eq!(world.reason(), EndReason::Completed);
}

#[test]
fn a_call_that_the_server_cannot_read_is_tried_once_more_and_then_told() {
    let mut world = World::running(LoopLimits::default());
    let miscalled = || ModelFailure {
        advice: Some(Advice::Miscalled {
            name: "Read".into(),
            said: "<function=Read{".into(),
        }),
        spent: Some((
            Usage {
                input: 5,
                ..Usage::default()
            },
            Some(0.5),
        )),
        ..ModelFailure::new(
            FailureClass::InvalidRequest,
            "HTTP 400: Failed to call a function",
        )
    };
    world.fail_as(miscalled());
    assert_eq!(world.kinds(), ["model.failed"]);
    world.fire(TimerKey::Backoff);
    world.fail_as(miscalled());
    assert_eq!(
        world.kinds(),
        [
            "model.finished",
            "tool.proposed",
            "tool.finished",
            "model.started"
        ]
    );
    let totals = world.agent.durable().totals;
    assert_eq!(
        (totals.usage.input, totals.cost_usd),
        (10, 1.0),
        "both attempts are paid for"
    );
    world.say("Done.");
    assert_eq!(world.reason(), EndReason::Completed);
}

#[test]
fn a_model_that_goes_on_after_three_notes_ends_with_tool_error() {
    let mut world = World::running(LoopLimits::default());
    for n in 0..12 {
        assert_eq!(world.notes().len(), n / 3, "step {n}");
        world.tool_step("Read", json!({"n": n}), failing());
    }
    assert_eq!(
        (world.reason(), world.state(), world.notes().len()),
        (EndReason::ToolError, RunState::Failed, 3)
    );
}

#[test]
fn denials_warn_the_model_and_do_not_end_the_turn() {
    let mut world = World::running(LoopLimits::default());
    for n in 0..20 {
        world.tool_step("Read", json!({"n": n}), failing());
        world.call(&["Read"]);
        world.judge_all(VerdictKind::Deny);
    }
    assert!(world.notes().len() > 4, "{:?}", world.notes());
    world.say("I stop.");
    assert_eq!(world.reason(), EndReason::Completed);
}
