//! Calls that were cut off, and calls in an answer's text that were not made.

use super::world::*;
use crate::*;
use agentd_protocol::*;
use serde_json::json;

fn unmade(kind: Unmade, stop: StopReason) -> ModelAnswer {
    let problem = "the string that begins here does not end".to_owned();
    ModelAnswer {
        reading: Reading {
            repaired: Vec::new(),
            unmade: Some(UnmadeCall { kind, problem }),
        },
        ..answer_of(vec![Block::text("{\"tool\": \"Bash\"")], stop)
    }
}

const ASKS: [&str; 3] = ["model.finished", "note.injected", "model.started"];

fn cut(world: &mut World) {
    let half = tool_use("Write", json!("{\"content\": \"half"));
    world.answer(vec![Block::text("I will"), half], StopReason::MaxTokens);
}

#[test]
fn i4_a_call_that_the_output_limit_cut_off_is_not_run_and_the_model_may_give_less() {
    let mut world = World::running(LoopLimits::default());
    cut(&mut world);
    let goes_on = [
        "model.finished",
        "tool.proposed",
        "tool.finished",
        "model.started",
    ];
    assert_eq!(world.kinds(), goes_on);
    let expected = (ToolStatus::Interrupted, words::CUT_AT_LIMIT.to_owned());
    assert_eq!(world.results(), [expected]);
    assert!(world.judging.is_empty() && world.running.is_empty());
    cut(&mut world);
    assert_eq!(world.kinds(), goes_on);
    cut(&mut world);
    assert_eq!(
        (world.reason(), world.state()),
        (EndReason::Truncated, RunState::Failed)
    );
    world.check_log();
}

#[test]
fn a_call_that_fits_forgives_those_that_were_cut_off() {
    let mut world = World::running(LoopLimits::default());
    for _ in 0..3 {
        cut(&mut world);
        cut(&mut world);
        world.tool_step("Read", json!({"n": world.log.len()}), ok());
    }
    world.say("Done.");
    assert_eq!(world.reason(), EndReason::Completed);
    world.check_log();
}

#[test]
fn an_answer_that_was_cut_off_without_a_call_ends_the_turn() {
    let mut world = World::running(LoopLimits::default());
    world.answer(vec![Block::text("half")], StopReason::MaxTokens);
    assert_eq!(world.reason(), EndReason::Truncated);
    let mut world = World::running(LoopLimits::default());
    for _ in 0..2 {
        world.answer_with(unmade(Unmade::Cut, StopReason::MaxTokens));
        assert_eq!(world.kinds(), ASKS);
    }
    world.answer_with(unmade(Unmade::Cut, StopReason::MaxTokens));
    assert_eq!(world.reason(), EndReason::Truncated);
    assert!(
        world.notes()[0].1.contains("reached the output limit"),
        "{:?}",
        world.notes()
    );
}

#[test]
fn a_call_in_the_text_that_cannot_be_read_is_asked_for_again() {
    for (retries, asked) in [(2, 2), (0, 1)] {
        let mut world = World::running(LoopLimits {
            intent_retries: retries,
            ..LoopLimits::default()
        });
        for _ in 0..asked {
            world.answer_with(unmade(Unmade::Broken, StopReason::EndTurn));
            assert_eq!(world.kinds(), ASKS);
        }
        let note = &world.notes()[0];
        assert_eq!(note.0, NoteKind::IntentNudge);
        assert!(
            note.1.contains("the string that begins here does not end"),
            "{}",
            note.1
        );
        world.answer_with(unmade(Unmade::Broken, StopReason::EndTurn));
        assert_eq!(
            world.kinds(),
            ["model.finished", "warning.raised", "turn.finished"]
        );
        assert_eq!(world.reason(), EndReason::ToolError);
        assert_eq!(world.warnings()[0].0, "unmade_call");
        world.check_log();
    }
}

#[test]
fn a_doubtful_call_is_asked_about_once_and_stays_text() {
    let mut world = World::running(LoopLimits::default());
    world.answer_with(unmade(Unmade::Unclear, StopReason::EndTurn));
    assert_eq!(world.kinds(), ASKS);
    world.answer_with(unmade(Unmade::Unclear, StopReason::EndTurn));
    assert_eq!(
        (world.reason(), world.warnings().len()),
        (EndReason::Completed, 1)
    );
    let mut clear = World::running(LoopLimits::default());
    clear.answer_with(unmade(Unmade::Unclear, StopReason::EndTurn));
    clear.say("It was only an example.");
    assert_eq!(
        (clear.reason(), clear.warnings()),
        (EndReason::Completed, Vec::new())
    );
    clear.check_log();
}

#[test]
fn a_doubt_is_in_the_log_and_a_plain_answer_says_nothing() {
    let mut world = World::running(LoopLimits::default());
    world.answer_with(unmade(Unmade::Broken, StopReason::EndTurn));
    world.say("Done.");
    let answers = world.log.iter().filter_map(|event| match &event.body {
        EventBody::ModelFinished(finished) => Some(serde_json::to_value(finished).unwrap()),
        _ => None,
    });
    let readings: Vec<_> = answers.map(|answer| answer.get("reading").cloned()).collect();
    let problem = "the string that begins here does not end";
    let expected = json!({"unmade": {"kind": "broken", "problem": problem}});
    assert_eq!(readings, [Some(expected), None]);
}
