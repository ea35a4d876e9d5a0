//! Shortening before a model call so that the conversation fits, and at a person's request.

use super::world::*;
use crate::*;
use agentd_protocol::*;
use serde_json::json;

/// A session in the middle of a turn whose next call is prepared with this many tokens in the conversation. The window
/// has 100,000, the answer takes 10,000, and a conversation is compacted from 80,000 on.
fn before_a_call(tokens: u64, sizes: Sizes) -> World {
    let mut world = World::running(LoopLimits::default());
    world.call(&["Read"]);
    world.judge_all(VerdictKind::Allow);
    // The result itself is one token.
    (world.tokens, world.sizes) = (tokens - 1, sizes);
    world.end_tool(ok());
    world.tokens = tokens;
    world
}

fn full(tokens: u64) -> World {
    let mut world = before_a_call(tokens, Sizes::default());
    // Pruning is tried first.
    assert_eq!(asked(&world), [(Shrink::Prune, 80_000)]);
    world.shrunk(Shrunk::Nothing);
    world
}

fn asked(world: &World) -> Vec<(Shrink, u64)> {
    let shrinks = world.shrinks.iter();
    shrinks.map(|(_, how, target)| (*how, *target)).collect()
}

fn kept(world: &World) -> Vec<String> {
    let events = world.log.iter().filter_map(|event| match &event.body {
        EventBody::ContextKept(kept) => Some(kept.reason.clone()),
        _ => None,
    });
    events.collect()
}

#[test]
fn a_short_conversation_is_left_alone() {
    let world = before_a_call(40_000, Sizes::default());
    assert_eq!(
        (asked(&world), world.kinds()),
        (vec![], vec!["tool.finished", "model.started"])
    );
}

#[test]
fn at_the_line_it_is_compacted_before_the_call_and_not_after_a_refusal() {
    assert_eq!(full(80_000).kinds(), ["model.started"], "it still fits");
    let mut world = full(80_001);
    assert_eq!(asked(&world), [(Shrink::Compact, 35_000)]);
    assert_eq!(world.state(), RunState::Compacting);
    assert!(!world.agent.at_rest());
    world.shrink();
    assert_eq!(world.kinds(), ["context.compacted", "model.started"]);
    let EventBody::ContextCompacted(compacted) = &world.step.events[0].body else {
        panic!()
    };
    assert_eq!(compacted.cause, CompactionCause::Threshold);
    world.say("Done.");
    assert_eq!(world.reason(), EndReason::Completed);
    world.check_log();
}

#[test]
fn what_waits_and_what_frames_the_conversation_count() {
    let sizes = Sizes {
        waiting_tokens: 30_000,
        frame_tokens: 11_000,
        ..Sizes::default()
    };
    let mut world = before_a_call(39_500, sizes);
    world.shrunk(Shrunk::Nothing);
    assert_eq!(asked(&world), [(Shrink::Compact, 0)], "no room is left by them");
}

#[test]
fn the_answers_room_and_the_operators_reserve_lower_the_line() {
    let mut world = World::running(LoopLimits::default());
    let facts = ModelFacts {
        max_output: 45_000,
        ..plain("sonnet")
    };
    world.facts.insert("sonnet".into(), facts);
    world.call(&["Read"]);
    world.judge_all(VerdictKind::Allow);
    world.tokens = 55_000;
    world.end_tool(ok());
    world.tokens = 55_001;
    world.shrunk(Shrunk::Nothing);
    assert_eq!(asked(&world), [(Shrink::Compact, 27_500)]);
}

#[test]
fn three_compactions_in_a_row_then_results_are_cut_and_then_it_is_sent_as_it_is() {
    let mut world = full(90_000);
    for _ in 0..3 {
        assert_eq!(asked(&world), [(Shrink::Compact, 35_000)]);
        // It frees far too little.
        world.shrunk(Shrunk::Compacted(ContextCompacted {
            tokens_after: 89_000,
            ..ContextCompacted::default()
        }));
    }
    assert_eq!(asked(&world), [(Shrink::TruncateResults, 80_000)]);
    world.shrunk(Shrunk::Nothing);
    assert_eq!(world.kinds(), ["model.started"]);
    // The server rejects it: the overflow budget applies, then the turn ends with a clear error.
    while world.agent.durable().turn.is_some() {
        world.fail(FailureClass::ContextOverflow);
        while !world.shrinks.is_empty() {
            world.shrunk(Shrunk::Nothing);
        }
    }
    assert_eq!(world.reason(), EndReason::ContextOverflow);
    world.check_log();
}

#[test]
fn a_step_between_them_begins_a_new_row() {
    let mut world = full(90_000);
    for _ in 0..3 {
        world.shrunk(Shrunk::Compacted(ContextCompacted {
            tokens_after: 89_000,
            ..ContextCompacted::default()
        }));
    }
    world.shrunk(Shrunk::Nothing);
    world.tokens = 10_000;
    world.tool_step("Read", json!({"n": 1}), ok());
    world.tokens = 90_000;
    world.tool_step("Read", json!({"n": 2}), ok());
    while asked(&world)
        .first()
        .is_some_and(|(how, _)| *how == Shrink::Prune)
    {
        world.shrunk(Shrunk::Nothing);
    }
    assert_eq!(asked(&world), [(Shrink::Compact, 35_000)]);
}

#[test]
fn pruning_is_asked_again_only_when_the_conversation_has_grown() {
    let mut world = before_a_call(45_000, Sizes::default());
    assert_eq!(asked(&world), [(Shrink::Prune, 80_000)]);
    world.shrunk(Shrunk::Nothing);
    world.tokens = 49_000;
    world.tool_step("Read", json!({"n": 3}), ok());
    assert_eq!(asked(&world), []);
    world.tokens = 50_000;
    world.tool_step("Read", json!({"n": 4}), ok());
    assert_eq!(asked(&world), [(Shrink::Prune, 80_000)]);
    world.shrink();
    assert_eq!(world.kinds(), ["context.pruned", "model.started"]);
}

#[test]
fn a_result_that_is_too_long_for_the_window_is_cut_first() {
    let sizes = Sizes {
        longest_new_result: 90_001,
        ..Sizes::default()
    };
    let mut world = before_a_call(30_000, sizes);
    assert_eq!(asked(&world), [(Shrink::CapResults, 30_000)]);
    world.sizes = Sizes::default();
    world.shrink();
    assert_eq!(world.kinds(), ["context.truncated", "model.started"]);
    let at_the_edge = Sizes {
        longest_new_result: 90_000,
        ..Sizes::default()
    };
    assert_eq!(asked(&before_a_call(30_000, at_the_edge)), []);
}

#[test]
fn messages_are_trimmed_to_the_operators_number() {
    let mut world = World::running(LoopLimits {
        max_messages: 30,
        ..LoopLimits::default()
    });
    world.call(&["Read"]);
    world.judge_all(VerdictKind::Allow);
    world.sizes.messages = 30;
    world.end_tool(ok());
    assert_eq!(asked(&world), [(Shrink::Trim, 0)]);
    world.sizes.messages = 20;
    world.shrink();
    assert_eq!(world.kinds(), ["context.trimmed", "model.started"]);
}

#[test]
fn a_veto_leaves_the_conversation_as_it_is_for_this_call() {
    let mut world = full(90_000);
    world.shrunk(Shrunk::Vetoed("not now".into()));
    assert_eq!(asked(&world), [(Shrink::TruncateResults, 80_000)]);
    world.shrunk(Shrunk::Nothing);
    assert_eq!((world.kinds(), kept(&world)), (vec!["model.started"], vec![]));
}

#[test]
fn a_compaction_that_is_asked_for_between_turns_is_durable_at_once_and_runs() {
    let mut world = World::running(LoopLimits::default());
    world.say("Done.");
    world.tokens = 40_000;
    world.command(Command::Compact).unwrap();
    assert_eq!(world.kinds(), ["compaction.asked"]);
    assert_eq!(asked(&world), [(Shrink::Compact, 20_000)]);
    assert_eq!(world.state(), RunState::Compacting);
    // Two requests count as one, and inputs sent in the meantime wait.
    world.command(Command::Compact).unwrap();
    assert_eq!(world.kinds(), Vec::<&str>::new());
    world.send("go on");
    assert_eq!(world.kinds(), ["input.accepted"]);
    world.shrink();
    assert_eq!(
        world.kinds(),
        ["context.compacted", "turn.started", "model.started"]
    );
    world.check_log();
}

#[test]
fn a_compaction_that_was_asked_for_is_done_after_a_restart() {
    let mut world = World::running(LoopLimits::default());
    world.say("Done.");
    world.command(Command::Compact).unwrap();
    assert!(world.agent.summary(Timestamp(0)).resumable);
    world.restart();
    assert_eq!(asked(&world).len(), 1);
    world.shrunk(Shrunk::Nothing);
    assert_eq!(kept(&world), ["there is nothing to gain: it is short already"]);
    assert!(!world.agent.summary(Timestamp(0)).resumable);
    assert_eq!(world.state(), RunState::Idle);
}

#[test]
fn in_a_running_turn_it_comes_before_the_next_call_and_ends_with_the_turn() {
    let mut world = World::running(LoopLimits::default());
    world.command(Command::Compact).unwrap();
    assert_eq!(asked(&world), [], "the model answers");
    world.tool_step("Read", json!({"n": 5}), ok());
    assert_eq!(asked(&world).len(), 1);
    let mut done = world.clone();
    done.shrink();
    assert_eq!(done.kinds(), ["context.compacted", "model.started"]);
    world.cancel().unwrap();
    assert_eq!(kept(&world), ["the turn was cancelled"]);
    assert_eq!((asked(&world), world.state()), (vec![], RunState::Idle));
    world.check_log();
}

#[test]
fn a_closed_session_compacts_no_more_and_a_paused_one_says_why_not() {
    let mut world = World::running(LoopLimits::default());
    world.say("Done.");
    let mut paused = world.clone();
    let reason = "lunch".to_owned();
    paused.command(Command::Pause { reason }).unwrap();
    assert_eq!(
        paused.command(Command::Compact).unwrap_err().code,
        "session_paused"
    );
    world.command(Command::Compact).unwrap();
    let late = world.shrinks[0];
    let reason = "over".to_owned();
    world.command(Command::Close { reason, force: false }).unwrap();
    assert_eq!(kept(&world), ["the session was closed"]);
    let shrunk = Shrunk::Compacted(ContextCompacted::default());
    world.reply_to(late.0, Answer::Shortened(shrunk));
    assert_eq!(world.kinds(), Vec::<&str>::new(), "it comes too late");
    assert_eq!(
        world.command(Command::Compact).unwrap_err().code,
        "session_closed"
    );
}

#[test]
fn a_summary_costs_and_its_price_is_the_sessions() {
    let mut world = full(90_000);
    let before = (
        world.agent.durable().totals.usage.input,
        world.agent.durable().totals.cost_usd,
    );
    world.shrunk(Shrunk::Compacted(ContextCompacted {
        tokens_after: 10_000,
        usage: Some(Usage {
            input: 500,
            ..Usage::default()
        }),
        cost_usd: Some(0.5),
        ..ContextCompacted::default()
    }));
    let totals = world.agent.durable().totals;
    assert_eq!(
        (totals.usage.input, totals.cost_usd),
        (before.0 + 500, before.1 + 0.5)
    );
    world.say("Done.");
    assert_eq!(world.ended().usage.input, totals.usage.input + 80);
}
