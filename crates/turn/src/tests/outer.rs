//! The outer loop: other credentials, other thinking levels, other models, and the way back.

use super::prefixes::{any_failure, any_shrunk, rich};
use super::world::*;
use crate::*;
use FailureClass::*;
use agentd_protocol::*;
use proptest::prelude::*;

fn with_credentials(names: &[&str]) -> World {
    let mut world = World::idle(LoopLimits::default());
    let credentials = names.iter().map(|name| (*name).to_owned()).collect();
    world.facts.insert(
        "sonnet".into(),
        ModelFacts {
            credentials,
            ..plain("sonnet")
        },
    );
    world
}

fn with_fallbacks(names: &[&str]) -> World {
    let mut world = World::idle(LoopLimits::default());
    let fallbacks = names.iter().map(|name| (*name).to_owned()).collect();
    world.facts.insert(
        "sonnet".into(),
        ModelFacts {
            fallbacks,
            ..plain("sonnet")
        },
    );
    world
}

fn rotate(world: &mut World, class: FailureClass, other: Option<&str>) {
    world.fail_as(ModelFailure {
        other_credential: other.map(str::to_owned),
        ..failure(class)
    });
}

/// The credential, `a` or `b`, that is not in use.
fn other(world: &World) -> &'static str {
    match world.start().credential.as_deref() {
        Some("a") => "b",
        _ => "a",
    }
}

fn to(model: &str) -> Option<Remedy> {
    Some(Remedy::Fallback { model: model.into() })
}

fn advise(world: &mut World, advice: Advice) {
    world.fail_as(ModelFailure {
        advice: Some(advice),
        ..failure(InvalidRequest)
    });
}

#[test]
fn three_refused_credentials_park_the_session() {
    let mut world = with_credentials(&["a", "b", "c"]);
    world.send("go");
    let first = world.start().credential.unwrap();
    let others: Vec<&str> = ["a", "b", "c"]
        .into_iter()
        .filter(|name| *name != first)
        .collect();
    for other in &others {
        rotate(&mut world, Auth, Some(other));
        assert!(world.backoff_ms() <= 250, "at once");
        world.fire(TimerKey::Backoff);
        assert_eq!(world.start().credential.as_deref(), Some(*other));
    }
    rotate(&mut world, Auth, None);
    assert_eq!(world.state(), RunState::Waiting(WaitReason::Credentials));
    assert!(world.agent.at_rest());
    world.fire(TimerKey::Backoff);
    world.say("Done.");
    assert_eq!(world.reason(), EndReason::Completed);
    world.restart();
    world.send("again");
    assert_eq!(
        world.start().credential.as_deref(),
        Some(others[1]),
        "the last one is kept"
    );
}

#[test]
fn a_call_changes_its_credential_as_often_as_there_are_credentials() {
    let mut world = with_credentials(&["a", "b"]);
    world.send("go");
    for _ in 0..2 {
        let other = other(&world);
        rotate(&mut world, QuotaExhausted, Some(other));
        world.fire(TimerKey::Backoff);
    }
    let other = other(&world);
    rotate(&mut world, QuotaExhausted, Some(other));
    assert!(world.agent.durable().parked());
}

#[test]
fn a_rate_limit_changes_the_credential_before_anybody_waits() {
    let mut world = with_credentials(&["a", "b"]);
    world.send("go");
    let first = world.start().credential.unwrap();
    let other = if first == "a" { "b" } else { "a" };
    world.fail_as(ModelFailure {
        other_credential: Some(other.into()),
        retry_after_ms: Some(500_000),
        ..failure(RateLimited)
    });
    assert_eq!(
        world.remedies(),
        [Some(Remedy::Rotate {
            credential: other.into()
        })]
    );
}

#[test]
fn the_log_names_a_credential_that_is_not_the_one_that_was_preferred() {
    let mut world = with_credentials(&["a"]);
    world.send("go");
    for (used, said) in [(Some("a"), None), (Some("z"), Some("z")), (None, None)] {
        world.fail_as(ModelFailure {
            credential: used.map(str::to_owned),
            ..failure(Transient)
        });
        let EventBody::ModelFailed(failed) = &world.step.events[0].body else {
            panic!()
        };
        assert_eq!(failed.credential.as_deref(), said);
        world.fire(TimerKey::Backoff);
    }
    let mut answer = answer_of(vec![Block::text("Done.")], StopReason::EndTurn);
    answer.credential = Some("z".into());
    world.answer_with(answer);
    assert_eq!(world.agent.durable().outer.pins["p"], "z");
}

#[test]
fn sessions_are_spread_over_the_credentials() {
    let mut counts = std::collections::BTreeMap::new();
    let names: Vec<String> = ["a", "b", "c"].map(String::from).into();
    let facts = ModelFacts {
        credentials: names,
        ..plain("sonnet")
    };
    let models = |_: &str| Ok(facts.clone());
    for n in 0..300_u64 {
        let mut stamp = Stamp::new(Timestamp(5), n);
        let mut agent = Agent::new(stamp.session(), config());
        let command = Command::Create {
            created: Box::new(created(LoopLimits::default())),
            first: Some(says("go")),
        };
        let scene = Scene {
            stamp,
            models: &models,
            input_tokens_estimate: 0,
            sizes: Sizes::default(),
            prefix: 0,
            items: &Items::default,
        };
        let step = agent.step(Input::Command { command, by: ana() }, scene);
        let started = step.effects.into_iter().find_map(|effect| match effect {
            Effect::StartModel { credential, .. } => credential,
            _ => None,
        });
        *counts.entry(started.unwrap()).or_insert(0) += 1;
    }
    assert_eq!(counts.len(), 3);
    assert!(
        counts.values().all(|count| (70..=130).contains(count)),
        "{counts:?}"
    );
}

#[test]
fn a_refused_thinking_level_is_lowered_and_stays_lowered() {
    let mut world = World::idle(LoopLimits {
        thinking: Some(ThinkingLevel::Max),
        ..LoopLimits::default()
    });
    world.send("go");
    assert_eq!(world.start().thinking, Some(ThinkingLevel::Max));
    let taken = vec![ThinkingLevel::Low, ThinkingLevel::High];
    for level in [ThinkingLevel::High, ThinkingLevel::Low, ThinkingLevel::Off] {
        advise(&mut world, Advice::Think(taken.clone()));
        assert_eq!(world.kinds(), ["model.failed", "model.started"], "at once");
        assert_eq!(world.start().thinking, Some(level));
    }
    let mut refused = world.clone();
    advise(&mut refused, Advice::Think(taken.clone()));
    let unsaid = vec![RequestPart::ThinkingLevel];
    assert_eq!(refused.start().without, unsaid, "all levels were tried");
    let mut again = refused.clone();
    advise(&mut again, Advice::Think(taken));
    assert_eq!(again.reason(), EndReason::ModelError, "it was left out already");
    refused.say("Done.");
    refused.restart();
    refused.send("more");
    assert_eq!(refused.start().without, unsaid);
    world.say("Done.");
    world.restart();
    world.send("more");
    assert_eq!(world.start().thinking, Some(ThinkingLevel::Off));
}

#[test]
fn at_most_five_thinking_levels_are_tried() {
    let mut world = World::running(LoopLimits::default());
    for _ in 0..5 {
        advise(&mut world, Advice::Think(ThinkingLevel::ALL.to_vec()));
    }
    for _ in 0..2 {
        advise(&mut world, Advice::Think(ThinkingLevel::ALL.to_vec()));
    }
    assert_eq!(world.reason(), EndReason::ModelError);
    assert_eq!(world.starts.len(), 7, "the last one said nothing about it");
}

#[test]
fn a_refused_part_of_the_request_is_left_out_for_good() {
    let mut world = World::running(LoopLimits::default());
    advise(&mut world, Advice::Without(RequestPart::Temperature));
    advise(&mut world, Advice::Without(RequestPart::Reasoning));
    let both = vec![RequestPart::Temperature, RequestPart::Reasoning];
    assert_eq!(world.start().without, both);
    let mut again = world.clone();
    advise(&mut again, Advice::Without(RequestPart::Temperature));
    assert_eq!(again.reason(), EndReason::ModelError, "it was left out already");
    world.say("Done.");
    world.restart();
    world.send("more");
    assert_eq!(world.start().without, both);
}

#[test]
fn an_overloaded_model_is_replaced_after_two_retries_and_tried_once_after_five_minutes() {
    let mut world = with_fallbacks(&["haiku", "gpt"]);
    world.send("go");
    for _ in 0..2 {
        world.fail(Overloaded);
        world.fire(TimerKey::Backoff);
    }
    world.fail(Overloaded);
    assert_eq!(world.kinds(), ["model.failed", "model.started"]);
    assert_eq!(world.remedies().last(), Some(&to("haiku")));
    world.fail(Overloaded);
    assert_eq!(world.state(), RunState::BackingOff, "the retries begin again");
    world.fire(TimerKey::Backoff);
    world.say("Done.");
    world.send("soon after");
    assert_eq!(world.start().model, "haiku");
    world.say("Done.");
    world.restart();
    world.now += 300_000;
    world.send("later");
    assert_eq!(world.start().model, "sonnet", "the way back");
    world.fail(Overloaded);
    assert_eq!(world.start().model, "haiku", "one failure is enough");
    world.say("Done.");
    world.now += 300_000;
    world.send("much later");
    world.say("Done.");
    assert_eq!(world.agent.durable().outer.away, None);
    world.send("well again");
    world.fail(Overloaded);
    assert_eq!(
        (world.start().model.as_str(), world.state()),
        ("sonnet", RunState::BackingOff)
    );
}

#[test]
fn each_model_of_the_chain_is_tried_once() {
    let mut world = with_fallbacks(&["haiku", "gpt", "haiku"]);
    world.send("go");
    for _ in 0..3 {
        world.fail(ContentFilter);
    }
    assert_eq!(world.remedies(), [to("haiku"), to("gpt"), None]);
    assert_eq!(world.reason(), EndReason::Refused);
    world.send("again");
    assert_eq!(world.start().model, "sonnet", "the stand-in failed, too");
}

#[test]
fn a_stand_in_that_fails_gives_the_place_back() {
    let mut world = with_fallbacks(&["haiku"]);
    world.send("go");
    world.fail(ContentFilter);
    world.say("Done.");
    world.send("more");
    assert_eq!(world.start().model, "haiku");
    world.fail(ContentFilter);
    assert_eq!(world.start().model, "sonnet");
    world.fail(ContentFilter);
    assert_eq!(world.reason(), EndReason::Refused);
}

#[test]
fn only_an_unknown_model_sends_a_wrong_request_elsewhere() {
    for (message, reason) in [
        ("The model `x` does not exist", None),
        ("messages: field required", Some(EndReason::ModelError)),
    ] {
        let mut world = with_fallbacks(&["haiku"]);
        world.send("go");
        world.fail_as(ModelFailure::new(InvalidRequest, message));
        let ended = world.agent.durable().last.as_ref().map(|last| last.reason);
        assert_eq!(ended, reason, "{message}");
    }
}

#[test]
fn a_fallback_comes_before_a_long_rest_and_a_new_round_begins_with_the_own_model() {
    let mut world = with_fallbacks(&["haiku"]);
    world.send("go");
    world.fail(QuotaExhausted);
    assert_eq!(world.start().model, "haiku");
    world.fail_with(RateLimited, Some(200_000));
    assert_eq!(world.state(), RunState::Waiting(WaitReason::RateLimit));
    world.fire(TimerKey::Backoff);
    assert_eq!(world.start().model, "sonnet");
    world.fail(QuotaExhausted);
    assert_eq!(world.start().model, "haiku");
    world.say("Done.");
    assert_eq!(world.reason(), EndReason::Completed);
}

#[test]
fn the_decision_keeps_to_the_table() {
    for row in &TABLE {
        if row.class == Cancelled {
            continue;
        }
        let mut world = with_credentials(&["a", "b"]);
        world.send("go");
        let other = other(&world);
        rotate(&mut world, row.class, Some(other));
        let rotates = matches!(world.remedies()[0], Some(Remedy::Rotate { .. }));
        assert_eq!(rotates, row.rotate, "{}", row.name);

        let mut world = World::running(LoopLimits::default());
        world.fail(row.class);
        let shrinks = matches!(world.remedies()[0], Some(Remedy::Compact));
        assert_eq!(shrinks, row.shrink, "{}", row.name);
        let again = world.agent.durable().turn.is_some() && world.remedies() == [None];
        assert_eq!(again, row.again != Again::No, "{}", row.name);
        assert_eq!(
            world.agent.durable().parked(),
            row.parking == Parking::Yes,
            "{}",
            row.name
        );

        let mut world = World::running(LoopLimits::default());
        world.fail_with(row.class, Some(100_000));
        assert_eq!(
            world.agent.durable().parked(),
            row.parking != Parking::No,
            "{}",
            row.name
        );

        let mut world = with_fallbacks(&["haiku"]);
        world.send("go");
        world.fail_as(ModelFailure {
            retry_after_ms: Some(100_000),
            ..ModelFailure::new(row.class, "model not found")
        });
        let elsewhere = matches!(world.remedies()[0], Some(Remedy::Fallback { .. }));
        assert_eq!(elsewhere, row.elsewhere != Elsewhere::No, "{}", row.name);

        let mut world = World::running(LoopLimits::default());
        while world.agent.durable().turn.is_some() {
            if !world.shrinks.is_empty() {
                world.shrunk(Shrunk::Nothing);
            } else if world.models.is_empty() {
                world.fire(TimerKey::Backoff);
            } else {
                world.fail(row.class);
            }
        }
        assert_eq!(world.reason(), row.end, "{}", row.name);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_call_ends_whatever_its_failures_are(dice in prop::collection::vec(0..5_760_usize, 1..30)) {
        let mut world = World::idle(LoopLimits::default());
        rich(&mut world);
        world.send("go");
        let mut dice = dice.into_iter().cycle();
        let mut next = || dice.next().unwrap();
        while world.agent.durable().turn.is_some() {
            if !world.shrinks.is_empty() {
                any_shrunk(&mut world, next());
            } else if world.models.is_empty() {
                world.fire(TimerKey::Backoff);
            } else {
                world.fail_as(any_failure(next()));
            }
            prop_assert!(world.starts.len() <= 32 + 3 * 8, "{} attempts", world.starts.len());
        }
        prop_assert!(world.agent.at_rest() && world.timers.is_empty());
        world.check_log();
    }
}
