//! The prompt cache: a warning with the reason when it was not hit.

use super::world::*;
use crate::*;
use agentd_protocol::*;

const MINUTE: u64 = 60_000;

/// A session whose last answer left 5,000 tokens in the cache.
fn warm() -> World {
    let mut world = World::idle(LoopLimits::default());
    for name in ["sonnet", "haiku"] {
        let facts = ModelFacts {
            credentials: vec!["main".into()],
            min_cache_tokens: Some(1_024),
            ..plain(name)
        };
        world.facts.insert(name.into(), facts);
    }
    world.send("go");
    reads(&mut world, 0, 5_000);
    world
}

fn reads(world: &mut World, cache_read: u64, cache_write: u64) {
    let mut answer = answer_of(vec![Block::text("Done.")], StopReason::EndTurn);
    answer.usage = Usage {
        input: 10,
        output: 10,
        cache_read,
        cache_write,
        cache_write_1h: 0,
        reasoning: 0,
    };
    world.answer_with(answer);
}

fn cold(world: &mut World) -> Vec<String> {
    world.send("more");
    reads(world, 100, 5_000);
    let warnings = world.warnings();
    assert!(warnings.iter().all(|(code, _)| code == "prompt_cache_broken"));
    warnings.into_iter().map(|(_, message)| message).collect()
}

fn because(why: &str) -> Vec<String> {
    vec![format!(
        "the prompt cache did not hold: {why} (5000 tokens were in it, 100 were read from it)"
    )]
}

#[test]
fn a_cache_that_held_is_not_spoken_of() {
    let mut world = warm();
    world.send("more");
    reads(&mut world, 2_500, 500);
    assert_eq!(world.warnings(), []);
}

#[test]
fn a_cache_that_broke_is_spoken_of_with_the_first_reason_that_applies() {
    let mut world = warm();
    assert_eq!(cold(&mut world), because("the provider dropped it"));

    let mut world = warm();
    world.prefix = 2;
    assert_eq!(
        cold(&mut world),
        because("the system prompt, the tools or the way of encoding changed")
    );

    let mut world = warm();
    let mut facts = world.facts["sonnet"].clone();
    facts.thinking = Some(ThinkingLevel::High);
    world.facts.insert("sonnet".into(), facts.clone());
    assert_eq!(cold(&mut world), because("the thinking level changed"));

    let mut world = warm();
    facts.credentials = vec!["other".into()];
    world.facts.insert("sonnet".into(), facts);
    assert_eq!(
        cold(&mut world),
        because("the credential changed from main to other")
    );

    let mut world = warm();
    world
        .command(Command::Update {
            expect: None,
            title: None,
            model: Some("haiku".into()),
            mode: None,
            labels: None,
            budget: None,
        })
        .unwrap();
    assert_eq!(
        cold(&mut world),
        because("the model changed from sonnet to haiku")
    );

    let mut world = warm();
    world.send("more");
    world.fail(FailureClass::ContextOverflow);
    world.shrink();
    reads(&mut world, 100, 5_000);
    let expected = because("the conversation was shortened").remove(0);
    assert_eq!(world.warnings(), [("prompt_cache_broken".to_owned(), expected)]);
}

#[test]
fn marks_without_effect_are_spoken_of_once_when_the_conversation_is_long() {
    let told = |inputs: &[u64]| {
        let mut world = warm();
        for input in inputs {
            world.send("more");
            let mut answer = answer_of(vec![Block::text("Done.")], StopReason::EndTurn);
            answer.usage = Usage {
                input: *input,
                ..Usage::default()
            };
            world.answer_with(answer);
        }
        let warnings = world.warnings();
        let unread = warnings.iter().filter(|(code, _)| code == "prompt_cache_unread");
        unread.count()
    };
    assert_eq!(told(&[19_999]), 0);
    assert_eq!(told(&[20_000, 20_001]), 1);
}

#[test]
fn a_restart_does_not_repeat_that_nothing_is_cached() {
    let mut world = warm();
    let mut unread = || {
        world.send("more");
        let mut answer = answer_of(vec![Block::text("Done.")], StopReason::EndTurn);
        answer.usage.input = 30_000;
        world.answer_with(answer);
        let told = world.warnings();
        world.restart();
        told.iter()
            .filter(|(code, _)| code == "prompt_cache_unread")
            .count()
    };
    assert_eq!(unread(), 1);
    assert_eq!(unread(), 1, "in the whole log");
}

/// A warm session whose provider keeps prompts for an hour on request.
fn warm_for_an_hour() -> World {
    let mut world = warm();
    for facts in world.facts.values_mut() {
        facts.cache_hour = Some(Price::RATIOS);
    }
    world
}

/// Whether the call after a pause of that many minutes asks for an hour. Its answer leaves 5,000 tokens in the cache.
fn asks_after(world: &mut World, minutes: u64) -> bool {
    world.now += minutes * MINUTE;
    world.send("more");
    let asks = world.start().cache_hour;
    reads(world, 0, 5_000);
    asks
}

#[test]
fn a_session_that_waits_for_people_again_and_again_asks_for_an_hour() {
    let mut world = warm_for_an_hour();
    assert!(!asks_after(&mut world, 10), "one pause");
    assert!(!asks_after(&mut world, 1), "what was written is still there");
    assert!(asks_after(&mut world, 10), "the second pause");
    assert!(asks_after(&mut world, 1), "as long as it lasts");
    assert!(asks_after(&mut world, 59));
    let recorded = |log: &[Event]| -> Vec<bool> {
        let started = |event: &Event| match &event.body {
            EventBody::ModelStarted(started) => Some(started.cache_hour),
            _ => None,
        };
        log.iter().filter_map(started).collect()
    };
    assert_eq!(recorded(&world.log), [false, false, false, true, true, true]);
    world.restart();
    assert!(asks_after(&mut world, 10), "the log knows the pauses");
    // After several longer pauses, which even an hour's prompt does not survive, the surcharge no longer pays.
    assert!((0..4).all(|_| asks_after(&mut world, 61)));
    assert!(!asks_after(&mut world, 61));
    let mut hurried = warm_for_an_hour();
    assert!((0..9).all(|_| !asks_after(&mut hurried, 4)));
}

#[test]
fn a_cache_that_should_last_an_hour_is_missed_within_it() {
    let mut world = warm_for_an_hour();
    asks_after(&mut world, 10);
    asks_after(&mut world, 10);
    world.now += 30 * MINUTE;
    world.send("more");
    reads(&mut world, 100, 5_000);
    let told = world.warnings().last().unwrap().1.clone();
    assert_eq!([told], because("the provider dropped it").as_slice());
}

#[test]
fn a_lifetime_that_the_server_refuses_is_left_out() {
    let mut world = warm_for_an_hour();
    asks_after(&mut world, 10);
    world.now += 10 * MINUTE;
    world.send("more");
    assert!(world.start().cache_hour);
    world.fail_as(ModelFailure {
        advice: Some(Advice::Without(RequestPart::CacheHour)),
        ..failure(FailureClass::InvalidRequest)
    });
    assert!(!world.start().cache_hour);
    assert_eq!(world.start().without, [RequestPart::CacheHour]);
}

#[test]
fn a_restart_forgets_the_prefix_and_nothing_else() {
    let mut world = warm();
    world.restart();
    world.prefix = 2;
    assert_eq!(cold(&mut world), because("the provider dropped it"));
}

#[test]
fn what_is_old_or_small_or_unknown_is_not_watched() {
    let mut world = warm();
    world.now += 5 * MINUTE;
    assert_eq!(cold(&mut world), Vec::<String>::new(), "too old");

    let mut world = World::idle(LoopLimits::default());
    world.send("go");
    reads(&mut world, 0, 5_000);
    assert_eq!(
        cold(&mut world),
        Vec::<String>::new(),
        "the provider does not cache"
    );

    let mut world = warm();
    world.send("x");
    reads(&mut world, 1_000, 0);
    world.send("x");
    reads(&mut world, 10, 0);
    let warnings = world.warnings().len();
    assert_eq!(warnings, 1, "what is below the least is not missed");
}
