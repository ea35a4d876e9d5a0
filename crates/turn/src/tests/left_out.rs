//! Items that a provider refuses: they are found, left out of what is sent, and named to people.

use super::world::*;
use crate::*;
use agentd_protocol::*;
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::sync::Arc;

fn image(seq: Seq) -> RequestItem {
    RequestItem::Image { seq, nth: 0 }
}

fn tool(name: &str) -> RequestItem {
    RequestItem::Tool { name: name.into() }
}

/// A session whose conversation has this many images, in the messages 0, 2, 4, …
fn with_images(count: u64) -> World {
    let mut world = World::idle(LoopLimits::default());
    world.items = Items {
        images: (0..count).map(|n| (image(n + 10), 2 * n)).collect(),
        tools: ["Read", "mcp__crm__add-lead", "Bash"].map(tool).into(),
    };
    world
}

fn refuse(world: &mut World, item: RefusedItem) {
    world.fail_as(ModelFailure {
        status: Some(400),
        advice: Some(Advice::Item(item)),
        ..failure(FailureClass::InvalidRequest)
    });
}

const fn some_image() -> RefusedItem {
    RefusedItem::Image { message: None }
}

fn named(name: &str) -> RefusedItem {
    RefusedItem::Tool {
        name: Some(name.into()),
        index: None,
    }
}

fn warnings(world: &World) -> Vec<String> {
    let warning = |event: &Event| match &event.body {
        EventBody::WarningRaised(raised) if raised.code == "left_out" => Some(raised.message.clone()),
        _ => None,
    };
    world.log.iter().filter_map(warning).collect()
}

#[test]
fn a_refused_image_is_left_out_and_the_next_message_does_not_fail_again() {
    let mut world = with_images(1);
    world.send("look");
    assert_eq!(world.start().left_out, []);
    refuse(&mut world, some_image());
    assert_eq!(world.kinds(), ["model.failed", "model.started"], "at once");
    assert_eq!(world.start().left_out, [image(10)]);
    world.say("I cannot see it.");
    assert_eq!(world.reason(), EndReason::Completed);
    assert_eq!(
        warnings(&world),
        ["the provider of sonnet refuses 1 image: the session goes on without, and the log keeps everything"]
    );
    world.restart();
    world.send("and now?");
    assert_eq!(world.start().left_out, [image(10)], "folded from the log");
    world.say("Done.");
    assert_eq!(warnings(&world).len(), 1, "said once");
}

#[test]
fn the_session_goes_on_without_a_tool_whose_schema_is_refused_and_says_which() {
    let mut world = with_images(0);
    world.send("go");
    refuse(&mut world, named("mcp__crm__add_lead"));
    assert_eq!(
        world.start().left_out,
        [tool("mcp__crm__add-lead")],
        "as its server writes it"
    );
    world.say("Done.");
    assert!(
        warnings(&world)[0].contains("refuses the tool mcp__crm__add-lead:"),
        "{:?}",
        warnings(&world)
    );
    let mut other = with_images(0);
    other.send("go");
    refuse(&mut other, named("Unknown"));
    assert_eq!(other.reason(), EndReason::ModelError, "no item of the request");
}

#[test]
fn a_tool_that_is_known_by_its_index_only_is_tried_first() {
    let mut world = with_images(0);
    world.send("go");
    let refused = |index| RefusedItem::Tool { name: None, index };
    refuse(&mut world, refused(Some(1)));
    assert_eq!(world.start().left_out, [tool("mcp__crm__add-lead")]);
    // The index was that of another list: the tool comes back, and another one goes.
    refuse(&mut world, refused(Some(1)));
    assert_eq!(world.start().left_out, [tool("Bash")]);
    refuse(&mut world, refused(None));
    assert_eq!(world.start().left_out, [tool("Read")]);
}

#[test]
fn the_named_message_is_tried_first() {
    let mut world = with_images(5);
    world.send("look");
    refuse(&mut world, RefusedItem::Image { message: Some(4) });
    assert_eq!(world.start().left_out, [image(12)]);
}

#[test]
fn a_refusal_that_concerns_no_item_of_the_request_stays_as_it_is() {
    for mut world in [with_images(0), World::idle(LoopLimits::default())] {
        world.send("go");
        refuse(&mut world, some_image());
        assert_eq!(world.remedies(), [None]);
        assert_eq!(world.reason(), EndReason::ModelError);
    }
    let mut plain = with_images(3);
    plain.send("go");
    plain.fail_as(ModelFailure {
        status: Some(400),
        ..failure(FailureClass::InvalidRequest)
    });
    assert_eq!(plain.reason(), EndReason::ModelError);
}

#[test]
fn omissions_have_a_budget_and_the_last_attempt_leaves_out_all_suspects() {
    for most in [0, 1, 3] {
        let config = Config {
            max_omissions: most,
            ..Config::default()
        };
        let mut world = World::configured(created(LoopLimits::default()), Arc::new(config));
        world.items = with_images(64).items;
        world.send("look");
        let mut left = Vec::new();
        for _ in 0..most {
            refuse(&mut world, some_image());
            left.push(world.start().left_out.len());
        }
        // One image, half of the others, and at last all of them.
        let expected: &[usize] = match most {
            0 => &[],
            1 => &[64],
            _ => &[1, 31, 64],
        };
        assert_eq!(left, expected);
        refuse(&mut world, some_image());
        assert_eq!(world.reason(), EndReason::ModelError, "{most}");
    }
}

#[test]
fn another_model_is_sent_everything() {
    let mut world = with_images(1);
    world.send("look");
    refuse(&mut world, some_image());
    world.say("Done.");
    world
        .command(Command::Send(NewInput {
            model: Some("haiku".into()),
            ..says("and you?")
        }))
        .unwrap();
    assert_eq!(
        (world.start().model.as_str(), world.start().left_out),
        ("haiku", vec![])
    );
}

#[test]
fn people_are_told_once_that_the_model_does_not_see_the_images() {
    let told = |images: bool, count| {
        let mut world = with_images(count);
        world.facts.insert(
            "sonnet".into(),
            ModelFacts {
                images,
                ..plain("sonnet")
            },
        );
        for _ in 0..2 {
            world.send("look");
            world.say("Done.");
            world.restart();
        }
        let warning = |event: &&Event| matches!(&event.body, EventBody::WarningRaised(raised) if raised.code == "images_not_sent");
        world.log.iter().filter(warning).count()
    };
    assert_eq!((told(false, 1), told(true, 1), told(false, 0)), (1, 0, 0));
}

#[test]
fn each_message_with_images_that_its_model_does_not_see_is_marked() {
    let image = || Block::Image {
        media_type: "image/png".into(),
        source: ImageSource::Data("QUJD".into()),
    };
    let told = |images: bool, content: Vec<Block>| {
        let mut world = World::idle(LoopLimits::default());
        let facts = ModelFacts {
            images,
            ..plain("sonnet")
        };
        world.facts.insert("sonnet".into(), facts);
        let mut kinds = Vec::new();
        for _ in 0..2 {
            let input = NewInput {
                content: content.clone(),
                ..says("")
            };
            world.command(Command::Send(input)).unwrap();
            kinds.push(world.kinds()[1]);
            world.say("Done.");
            world.restart();
        }
        let count = world
            .log
            .iter()
            .filter(|event| event.body.kind() == "warning.raised")
            .count();
        (count, kinds)
    };
    assert_eq!(
        told(false, vec![image()]),
        (2, vec!["warning.raised"; 2]),
        "directly below the message"
    );
    assert_eq!(told(true, vec![image()]), (0, vec!["turn.started"; 2]));
    assert_eq!(
        told(false, vec![Block::text("look")]),
        (0, vec!["turn.started"; 2])
    );
}

/// One call against a provider that refuses these images. Returns the number of refusals, and whether it was answered.
fn call(world: &mut World, bad: &BTreeSet<RequestItem>) -> (u32, bool) {
    world.send("look");
    for refusals in 0.. {
        if world.models.is_empty() {
            return (refusals, false);
        }
        let left: BTreeSet<RequestItem> = world.start().left_out.into_iter().collect();
        if bad.is_subset(&left) {
            world.say("Done.");
            return (refusals, true);
        }
        refuse(world, some_image());
    }
    unreachable!()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn one_refused_image_is_isolated_within_the_budget(count in 1..40_u64, nth: u64) {
        let mut world = with_images(count);
        let bad: BTreeSet<_> = [image(10 + nth % count)].into();
        let (refusals, answered) = call(&mut world, &bad);
        prop_assert!(answered, "{refusals} refusals");
        // The suspects that are innocent come back, call by call.
        for _ in 0..8 {
            prop_assert!(call(&mut world, &bad).1);
        }
        prop_assert_eq!(world.start().left_out, bad.into_iter().collect::<Vec<_>>());
        prop_assert_eq!(call(&mut world, &BTreeSet::new()).0, 0);
        world.check_log();
    }

    #[test]
    fn several_refused_images_do_not_end_the_turn(count in 2..20_u64, picks in prop::collection::vec(any::<u64>(), 1..6)) {
        let mut world = with_images(count);
        let bad: BTreeSet<_> = picks.iter().map(|nth| image(10 + nth % count)).collect();
        for _ in 0..4 {
            let (refusals, answered) = call(&mut world, &bad);
            prop_assert!(answered, "{} refusals, {:?}", refusals, bad);
        }
        world.check_log();
    }
}
