//! A conversation that is too long for the model.

use super::world::*;
use crate::*;
use agentd_protocol::*;

fn overflow(world: &mut World) {
    world.fail(FailureClass::ContextOverflow);
}

fn full() -> World {
    let mut world = World::running(LoopLimits::default());
    world.tokens = 90_000;
    world
}

fn asked(world: &World) -> Vec<(Shrink, u64)> {
    world
        .shrinks
        .iter()
        .map(|(_, how, target)| (*how, *target))
        .collect()
}

#[test]
fn an_overflow_is_compacted_and_then_the_same_call_goes_on() {
    let mut world = full();
    overflow(&mut world);
    assert_eq!(world.kinds(), ["model.failed"]);
    assert_eq!(asked(&world), [(Shrink::Compact, 54_000)]);
    assert_eq!(world.state(), RunState::Compacting);
    assert!(!world.agent.at_rest() && world.timers.is_empty());
    world.shrink();
    assert_eq!(world.kinds(), ["context.compacted", "model.started"]);
    let EventBody::ModelStarted(started) = &world.step.events[1].body else {
        panic!()
    };
    assert_eq!((started.attempt, started.input_tokens_estimate), (2, 54_000));
    world.say("Done.");
    assert_eq!((world.reason(), world.ended().steps), (EndReason::Completed, 1));
    assert_eq!(world.remedies(), [Some(Remedy::Compact)]);
}

#[test]
fn three_compactions_one_truncation_and_then_the_turn_ends_with_the_numbers() {
    let mut world = full();
    for target in [54_000, 21_600, 5_400] {
        overflow(&mut world);
        assert_eq!(asked(&world), [(Shrink::Compact, target)]);
        world.shrink();
    }
    overflow(&mut world);
    assert_eq!(asked(&world), [(Shrink::TruncateResults, 2_700)]);
    world.shrink();
    assert_eq!(world.kinds(), ["context.truncated", "model.started"]);
    overflow(&mut world);
    assert_eq!(world.kinds(), ["model.failed", "turn.finished"]);
    assert_eq!(world.reason(), EndReason::ContextOverflow);
    let error = world.ended().error.unwrap();
    assert_eq!(error.class, "context_overflow");
    assert_eq!(
        error.message,
        "it failed (the conversation has about 2700 tokens, the window of sonnet has 100000, and it cannot be made \
         shorter without losing the task; start a new session, or use a model with a larger window)"
    );
    world.check_log();
}

#[test]
fn the_budget_of_compactions_is_the_turns_and_the_one_of_truncations_the_calls() {
    let mut world = full();
    for _ in 0..4 {
        overflow(&mut world);
        world.shrink();
    }
    world.tool_step("Read", serde_json::json!({}), ok());
    overflow(&mut world);
    assert_eq!(asked(&world)[0].0, Shrink::TruncateResults, "another call");
    world.shrink();
    world.say("Done.");
    world.send("more");
    overflow(&mut world);
    assert_eq!(asked(&world)[0].0, Shrink::Compact, "another turn");
}

#[test]
fn where_there_is_nothing_to_compact_results_are_cut_and_where_there_are_none_the_turn_ends() {
    let mut world = full();
    overflow(&mut world);
    world.shrunk(Shrunk::Nothing);
    assert_eq!(asked(&world), [(Shrink::TruncateResults, 45_000)]);
    assert_eq!(world.state(), RunState::Compacting);
    let mut other = world.clone();
    other.shrink();
    assert_eq!(other.kinds(), ["context.truncated", "model.started"]);
    overflow(&mut other);
    other.shrunk(Shrunk::Nothing);
    assert_eq!(
        other.reason(),
        EndReason::ContextOverflow,
        "results were cut before"
    );
    world.shrunk(Shrunk::Nothing);
    assert_eq!(world.kinds(), ["turn.finished"]);
    assert_eq!(world.reason(), EndReason::ContextOverflow);
    world.check_log();
}

#[test]
fn the_servers_own_numbers_win_over_ours() {
    let mut world = full();
    world.fail_as(ModelFailure {
        advice: Some(Advice::Window {
            tokens: 8_192,
            sent: Some(45_000),
        }),
        ..failure(FailureClass::ContextOverflow)
    });
    // The server counts half as many tokens as we do: its 8,192 are our 16,384. Half of them are reserved for the answer.
    assert_eq!(asked(&world), [(Shrink::Compact, 8_192 * 60 / 100)]);
    world.shrunk(Shrunk::Nothing);
    world.shrunk(Shrunk::Nothing);
    let message = world.ended().error.unwrap().message;
    assert!(
        message.contains("about 45000 tokens, the window of sonnet has 8192"),
        "{message}"
    );
}

#[test]
fn where_only_the_answer_had_too_much_room_it_gets_less_and_nothing_is_lost() {
    let mut world = World::running(LoopLimits::default());
    world.tokens = 90;
    let told = |sent| ModelFailure {
        advice: Some(Advice::Window { tokens: 8_192, sent }),
        ..failure(FailureClass::ContextOverflow)
    };
    for sent in [Some(20), Some(10_020), None] {
        let mut world = world.clone();
        assert_eq!(world.start().window, None);
        world.fail_as(told(sent));
        assert_eq!(
            (asked(&world), world.remedies()),
            (vec![], vec![None]),
            "{sent:?}"
        );
        assert_eq!(world.start().window, Some(8_192));
        let mut again = world.clone();
        again.fail_as(told(sent));
        assert_eq!(asked(&again).len(), 1, "less is not asked twice");
        world.say("Done.");
        world.send("more");
        assert_eq!(world.start().window, Some(8_192), "it is kept");
    }
}

#[test]
fn a_crash_while_the_conversation_is_made_shorter_begins_that_again() {
    let mut world = full();
    overflow(&mut world);
    let before = asked(&world);
    world.restart();
    assert_eq!(world.step.events, []);
    assert_eq!(asked(&world), before);
    assert!(!world.agent.at_rest());
    world.shrink();
    world.restart();
    assert_eq!(
        world.kinds(),
        ["session.recovered", "model.started"],
        "it is not made shorter twice"
    );
    assert!(world.shrinks.is_empty());
}

#[test]
fn a_pause_or_a_cancel_while_the_conversation_is_made_shorter_is_heeded() {
    let mut world = full();
    overflow(&mut world);
    let mut cancelled = world.clone();
    let (late, ..) = cancelled.shrinks[0];
    cancelled.cancel().unwrap();
    assert_eq!(cancelled.kinds(), ["turn.finished"]);
    assert_eq!(asked(&cancelled), [], "it is stopped");
    let shrunk = Shrunk::Compacted(ContextCompacted::default());
    cancelled.reply_to(late, Answer::Shortened(shrunk));
    assert_eq!(cancelled.step, Step::default(), "too late");
    cancelled.check_log();
    world.command(Command::Pause { reason: "x".into() }).unwrap();
    world.shrink();
    assert_eq!(world.kinds(), ["context.compacted"]);
    assert!(world.agent.at_rest());
    world.restart();
    world
        .command(Command::Resume {
            moved: None,
            reason: "x".into(),
        })
        .unwrap();
    assert_eq!(world.kinds(), ["session.resumed", "model.started"]);
}
