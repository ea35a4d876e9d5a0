//! Questions to models outside of the turns: titles, summaries, intents, counts. None of them blocks a session for
//! long, and all are charged.

use super::world::*;
use crate::*;
use agentd_protocol::*;
use std::sync::Arc;

const LABEL: &str = r#"{"label": "REPO_ANALYSIS", "confidence": 0.95, "reason": "it wants to know"}"#;

fn rules() -> SideRules {
    SideRules {
        model: "small".into(),
        titles: true,
        summaries: true,
        intents: true,
        intent_below_permille: 800,
        max_output: 500,
        within_ms: 20_000,
    }
}

/// A session without a title, with planning and its gate.
fn world_with(side: SideRules) -> World {
    let limits = LoopLimits {
        planning: Planning {
            enabled: true,
            intent_gate: true,
            ..Planning::default()
        },
        ..LoopLimits::default()
    };
    let config = Arc::new(Config {
        side,
        ..(*config()).clone()
    });
    let created = SessionCreated {
        derived_title: true,
        ..created(limits)
    };
    World::configured(created, config)
}

fn world() -> World {
    world_with(rules())
}

/// Answers the oldest question with this purpose.
fn answer(world: &mut World, purpose: SidePurpose, text: Result<&str, &str>) {
    let at = world.sides.iter().position(|side| side.purpose == purpose);
    let side = world.sides.remove(at.expect("it was asked"));
    let usage = Usage {
        input: 30,
        output: 3,
        ..Usage::default()
    };
    world.side_ended(SideEnded {
        call: side.call,
        purpose,
        model: side.model,
        text: text.map(str::to_owned).map_err(str::to_owned),
        usage,
        cost_usd: Some(0.01),
    });
}

fn purposes(world: &World) -> Vec<SidePurpose> {
    world.sides.iter().map(|side| side.purpose).collect()
}

fn classified(world: &World) -> IntentClassified {
    let mut found = world.log.iter().filter_map(|event| match &event.body {
        EventBody::IntentClassified(classified) => Some(classified.clone()),
        _ => None,
    });
    let one = found.next().expect("it was classified");
    assert_eq!(found.next(), None, "once");
    one
}

/// One turn of one step whose wording makes its intent clear.
fn turn(world: &mut World) {
    world.send("fix the parser");
    world.say("It is fixed.");
}

#[test]
fn a_session_that_nobody_named_gets_a_title_after_its_first_turn_and_pays_for_it() {
    let mut world = world();
    turn(&mut world);
    assert_eq!(purposes(&world), [SidePurpose::Title, SidePurpose::Summary]);
    assert!(!world.agent.at_rest(), "an answer is on its way");
    assert_eq!(world.state(), RunState::Idle, "and nobody waits for it");
    assert_eq!(
        (world.sides[0].model.as_str(), world.sides[0].max_output),
        ("small", 500)
    );
    let before = world.summary().usage.total();
    answer(&mut world, SidePurpose::Title, Ok("\"Fix the parser\"\n"));
    assert_eq!(world.kinds(), ["side_call.finished", "session.updated"]);
    answer(&mut world, SidePurpose::Summary, Ok("The parser was fixed."));
    let row = world.summary();
    assert_eq!(row.name, "Fix the parser");
    assert_eq!(row.summary.as_deref(), Some("The parser was fixed."));
    assert_eq!(row.usage.total(), before + 66);
    assert!((row.cost_usd - 0.27).abs() < 1e-9, "{}", row.cost_usd);
    assert!(world.agent.at_rest());
    // It has a title now; a summary covers the whole session.
    turn(&mut world);
    assert_eq!(purposes(&world), [SidePurpose::Summary]);
}

#[test]
fn a_persons_own_name_is_never_overwritten() {
    let mut named = World::configured(
        created(LoopLimits::default()),
        Arc::new(Config {
            side: rules(),
            ..(*config()).clone()
        }),
    );
    turn(&mut named);
    assert_eq!(purposes(&named), [SidePurpose::Summary]);
    // A person sets a title while the model is working.
    let mut world = world();
    turn(&mut world);
    world
        .command(Command::Update {
            expect: None,
            title: Some("mine".into()),
            model: None,
            mode: None,
            labels: None,
            budget: None,
        })
        .unwrap();
    answer(&mut world, SidePurpose::Title, Ok("Another"));
    assert_eq!(
        world.kinds(),
        ["side_call.finished"],
        "it is paid for all the same"
    );
    assert_eq!(world.summary().name, "mine");
}

#[test]
fn a_title_that_is_none_is_asked_for_three_times_at_most() {
    let mut world = world_with(SideRules {
        summaries: false,
        ..rules()
    });
    for _ in 0..3 {
        turn(&mut world);
        answer(&mut world, SidePurpose::Title, Ok("  \n"));
        let EventBody::SideCallFinished(finished) = &world.step.events[0].body else {
            panic!("{:?}", world.step.events);
        };
        assert!(finished.error.is_some());
    }
    turn(&mut world);
    assert_eq!(purposes(&world), []);
    assert_eq!(world.summary().name, "a title", "the one that was derived stays");
}

#[test]
fn without_a_model_a_budget_or_a_free_session_nobody_is_asked() {
    let mut off = world_with(SideRules {
        model: String::new(),
        ..rules()
    });
    turn(&mut off);
    assert_eq!(purposes(&off), []);
    let mut own = world_with(SideRules {
        model: "session".into(),
        ..rules()
    });
    turn(&mut own);
    assert_eq!(own.sides[0].model, "sonnet");
    let mut spent = world();
    spent
        .command(Command::Update {
            expect: None,
            title: None,
            model: None,
            mode: None,
            labels: None,
            budget: Some(Budget {
                tokens: 100,
                ..Budget::default()
            }),
        })
        .unwrap();
    turn(&mut spent);
    assert_eq!(purposes(&spent), [], "the budget is used up");
    let fault = spent.command(Command::Summarize).unwrap_err();
    assert_eq!(
        (fault.class, fault.code.as_str()),
        (FaultClass::Conflict, "no_summary")
    );
}

#[test]
fn closing_and_draining_drop_the_questions() {
    let mut world = world();
    turn(&mut world);
    let reason = "over".to_owned();
    world.command(Command::Close { reason, force: false }).unwrap();
    assert_eq!(purposes(&world), []);
    assert!(world.agent.at_rest());
    let mut world = self::world();
    turn(&mut world);
    world.input(Input::Drain);
    assert_eq!(purposes(&world), []);
    assert!(world.agent.at_rest());
    // The next incarnation asks at the end of the next turn.
    world.restart();
    turn(&mut world);
    assert_eq!(purposes(&world), [SidePurpose::Title, SidePurpose::Summary]);
}

#[test]
fn a_summary_is_written_when_somebody_asks_for_it() {
    let mut world = world_with(SideRules {
        summaries: false,
        titles: false,
        ..rules()
    });
    turn(&mut world);
    assert_eq!(purposes(&world), []);
    world.command(Command::Summarize).unwrap();
    world.command(Command::Summarize).unwrap();
    assert_eq!(purposes(&world), [SidePurpose::Summary], "two want the same one");
    answer(&mut world, SidePurpose::Summary, Ok("It was fixed."));
    assert_eq!(world.summary().summary.as_deref(), Some("It was fixed."));
}

#[test]
fn sure_words_need_no_model_and_open_ones_are_put_to_it() {
    let mut sure = world();
    sure.send("fix the parser");
    assert_eq!(purposes(&sure), []);
    assert_eq!(classified(&sure).source, IntentSource::Heuristics);

    let mut world = world();
    world.send("the blue one");
    assert_eq!(purposes(&world), [SidePurpose::Intent]);
    assert_eq!(world.sides[0].words, "the blue one");
    assert_eq!(world.models, [], "the first step waits");
    assert_eq!(world.state(), RunState::Starting);
    assert!(!world.agent.at_rest());
    answer(&mut world, SidePurpose::Intent, Ok(LABEL));
    assert_eq!(
        world.kinds(),
        ["side_call.finished", "intent.classified", "model.started"],
        "talk and questions get no plan, so no reminder"
    );
    let expected = IntentClassified {
        label: Intent::RepoAnalysis,
        confidence: 0.95,
        reason: "it wants to know".into(),
        planning: false,
        source: IntentSource::Model,
    };
    assert_eq!(classified(&world), expected);
    world.say("So it is.");
    assert_eq!(world.ended().usage.total(), 133, "its turn pays for it");
}

#[test]
fn i6_a_bad_or_late_label_leaves_it_to_the_words() {
    for text in [Ok("CODING_TASK, I think"), Err("the model took too long")] {
        let mut world = world();
        world.send("the blue one");
        answer(&mut world, SidePurpose::Intent, text);
        let found = classified(&world);
        assert_eq!(
            (found.label, found.source),
            (Intent::Uncertain, IntentSource::Heuristics)
        );
        assert_eq!(world.models.len(), 1, "the turn goes on");
    }
}

#[test]
fn a_crash_a_cancel_and_a_steer_while_the_model_is_asked() {
    let mut world = world();
    world.send("the blue one");
    world.restart();
    assert_eq!(purposes(&world), [SidePurpose::Intent], "it is asked again");
    answer(&mut world, SidePurpose::Intent, Ok(LABEL));
    assert_eq!(classified(&world).source, IntentSource::Model);
    assert_eq!(world.models.len(), 1);

    let mut world = self::world();
    world.send("the blue one");
    world.send("and the red one");
    assert_eq!((purposes(&world).len(), world.models.len()), (1, 0));
    let first = world.sides[0].call;
    world.cancel().unwrap();
    assert_eq!(world.reason(), EndReason::Cancelled);
    assert_ne!(
        world.sides[0].call, first,
        "what was said meanwhile starts a turn of its own"
    );

    let mut world = self::world();
    world.send("the blue one");
    world.cancel().unwrap();
    assert_eq!(purposes(&world), []);
    assert!(world.agent.at_rest());
}

#[test]
fn the_usage_of_a_summary_that_nobody_waits_for_is_not_lost() {
    let mut world = World::idle(LoopLimits::default());
    let before = world.summary().usage.total();
    let ended = SideEnded {
        call: Stamp::new(Timestamp(1), 1).call(),
        purpose: SidePurpose::Compaction,
        model: "sonnet".into(),
        text: Err("nobody waits for it any more".into()),
        usage: Usage {
            input: 900,
            output: 100,
            ..Usage::default()
        },
        cost_usd: Some(0.5),
    };
    world.reply_to(QuestionId(0), Answer::Side(ended));
    assert_eq!(world.kinds(), ["side_call.finished"]);
    assert_eq!(world.summary().usage.total(), before + 1_000);
}

/// A turn whose next call is prepared with this many tokens, with a server that counts. The limit is at 80,000.
fn before_a_call(tokens: u64, messages: u64) -> World {
    let mut world = World::idle(LoopLimits::default());
    let facts = ModelFacts {
        counts: true,
        ..plain("sonnet")
    };
    world.facts.insert("sonnet".into(), facts);
    world.send("do it");
    step(&mut world, tokens, messages);
    world
}

fn step(world: &mut World, tokens: u64, messages: u64) {
    world.call(&["Read"]);
    world.judge_all(VerdictKind::Allow);
    world.tokens = tokens;
    world.sizes.messages = messages;
    world.end_tool(ok());
    while let Some((_, Shrink::Prune, _)) = world.shrinks.first() {
        world.shrunk(Shrunk::Nothing);
    }
}

/// The count arrives with this many tokens.
fn counted(world: &mut World, tokens: u64) {
    let call = world.token_counts.remove(0);
    world.tokens = tokens;
    world.reply_to(
        call,
        Answer::TokenCount {
            model: "m".into(),
            tokens: 1,
        },
    );
    while let Some((_, Shrink::Prune, _)) = world.shrinks.first() {
        world.shrunk(Shrunk::Nothing);
    }
}

#[test]
fn close_to_the_line_the_provider_counts_before_anything_is_made_shorter() {
    for (tokens, close) in [(70_000, false), (73_000, true), (85_000, true), (90_000, false)] {
        let world = before_a_call(tokens, 5);
        assert_eq!(world.token_counts.len(), usize::from(close), "{tokens}");
    }
    let mut world = before_a_call(85_000, 5);
    assert_eq!((world.models.len(), world.shrinks.len()), (0, 0));
    assert!(!world.agent.at_rest());
    counted(&mut world, 75_000);
    assert_eq!(
        (world.models.len(), world.shrinks.len()),
        (1, 0),
        "it fits after all"
    );
    let mut world = before_a_call(75_000, 5);
    counted(&mut world, 85_000);
    assert_eq!(world.shrinks[0].1, Shrink::Compact, "it would not have fitted");
}

#[test]
fn i6_the_same_conversation_is_not_counted_twice_nor_each_step() {
    let mut world = before_a_call(78_000, 5);
    counted(&mut world, 78_000);
    step(&mut world, 78_000, 7);
    assert_eq!(world.token_counts.len(), 0, "just counted");
    step(&mut world, 78_000, 9);
    step(&mut world, 78_000, 11);
    assert_eq!(world.token_counts.len(), 1, "three steps later");
    let call = world.token_counts[0];
    world.cancel().unwrap();
    assert_eq!(world.token_counts.len(), 0);
    world.reply_to(
        call,
        Answer::TokenCount {
            model: "m".into(),
            tokens: 1,
        },
    );
    assert_eq!(world.kinds(), [""; 0], "nobody waits for it any more");
}
