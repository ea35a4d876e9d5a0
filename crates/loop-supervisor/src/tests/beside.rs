//! Questions to models outside of the turns: each runs in another worker, and is awaited no longer than its deadline.

use super::puppets::bash;
use super::world::{World, creation};
use agentd_protocol::{
    EventBody, FailureClass, Intent, IntentSource, LoopLimits, Planning, RunState, SessionId,
    SideCallFinished, SidePurpose, ToolStatus,
};
use agentd_turn::{Command, SideRules};
use std::time::Duration;

fn rules() -> SideRules {
    SideRules {
        model: "chat".into(),
        titles: true,
        summaries: false,
        intents: true,
        intent_below_permille: 800,
        max_output: 300,
        within_ms: 20_000,
    }
}

/// A session without a title, with planning and its gate.
async fn session(world: &World, prompt: &str) -> SessionId {
    let limits = LoopLimits {
        planning: Planning {
            enabled: true,
            intent_gate: true,
            ..Planning::default()
        },
        ..LoopLimits::default()
    };
    let session = world.clock.stamp().session();
    let Command::Create { mut created, first } = creation(limits, Some(prompt)) else {
        unreachable!()
    };
    created.derived_title = true;
    world
        .ask(session, Command::Create { created, first })
        .await
        .unwrap();
    session
}

async fn finished(world: &mut World, session: SessionId) -> SideCallFinished {
    world.until(session, "side_call.finished").await;
    let events = world.events(session).await;
    let found = events.into_iter().rev().find_map(|event| match event.body {
        EventBody::SideCallFinished(finished) => Some(finished),
        _ => None,
    });
    found.unwrap()
}

async fn title(world: &World, session: SessionId) -> Option<String> {
    let events = world.events(session).await;
    events.into_iter().rev().find_map(|event| match event.body {
        EventBody::SessionUpdated(updated) => updated.title,
        _ => None,
    })
}

#[tokio::test(start_paused = true)]
async fn a_title_is_asked_with_its_own_words_and_nobody_waits_for_it() {
    let mut world = World::beside(rules()).await;
    let session = session(&world, "fix the parser").await;
    world.model().await.answer("It is fixed.");
    let worker = world.model().await;
    world.until_state(session, RunState::Idle).await;
    let body = String::from_utf8(worker.job.body.to_bytes().to_vec()).unwrap();
    assert!(
        body.contains("Person: fix the parser") && body.contains("Agent: It is fixed."),
        "{body}"
    );
    assert!(
        !body.contains("\"tools\"") && worker.job.tools.is_empty(),
        "{body}"
    );
    assert_eq!(worker.job.ask.output_tokens, 300);
    worker.answer("Parser fix\n");
    let paid = finished(&mut world, session).await;
    assert_eq!(
        (paid.purpose, paid.usage.total(), paid.error),
        (SidePurpose::Title, 15, None)
    );
    assert_eq!(title(&world, session).await.as_deref(), Some("Parser fix"));
    world.until_cold(session).await;
}

#[tokio::test(start_paused = true)]
async fn i6_a_question_that_fails_panics_or_takes_too_long_changes_nothing() {
    for how in 0..3 {
        let mut world = World::beside(rules()).await;
        let session = session(&world, "fix the parser").await;
        world.model().await.answer("It is fixed.");
        let worker = world.model().await;
        match how {
            0 => worker.fail(FailureClass::Overloaded, None),
            1 => worker.panic(),
            _ => {
                world.pass(Duration::from_secs(21)).await;
                worker.gone().await;
            }
        }
        let ended = finished(&mut world, session).await;
        assert!(ended.error.is_some(), "{how}: {ended:?}");
        assert_eq!(title(&world, session).await, None, "{how}");
        assert!(world.no_job(), "{how}: it is not tried again");
        world.until_cold(session).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_closed_session_kills_the_kid_that_makes_its_title() {
    let mut world = World::beside(rules()).await;
    let session = session(&world, "fix the parser").await;
    world.model().await.answer("It is fixed.");
    let worker = world.model().await;
    world.until(session, "turn.finished").await;
    let reason = "over".to_owned();
    world
        .ask(session, Command::Close { reason, force: false })
        .await
        .unwrap();
    worker.gone().await;
    assert_eq!(world.kinds(session).await.last().copied(), Some("session.closed"));
}

#[tokio::test(start_paused = true)]
async fn the_first_step_waits_for_the_label_and_not_beyond_its_deadline() {
    let label = r#"{"label": "GENERAL_CHAT", "confidence": 0.9, "reason": "it is talk"}"#;
    for late in [false, true] {
        let mut world = World::beside(rules()).await;
        let session = session(&world, "the blue one").await;
        let worker = world.model().await;
        let body = String::from_utf8(worker.job.body.to_bytes().to_vec()).unwrap();
        assert!(
            body.contains("the blue one") && body.contains("REPO_ANALYSIS"),
            "{body}"
        );
        if late {
            world.pass(Duration::from_secs(21)).await;
            worker.gone().await;
        } else {
            worker.answer(label);
        }
        world.until(session, "intent.classified").await;
        let events = world.events(session).await;
        let found = events.iter().find_map(|event| match &event.body {
            EventBody::IntentClassified(one) => Some((one.label, one.source)),
            _ => None,
        });
        let expected = if late {
            (Intent::Uncertain, IntentSource::Heuristics)
        } else {
            (Intent::GeneralChat, IntentSource::Model)
        };
        assert_eq!(found, Some(expected));
        world.model().await.answer("Which one?");
        world.until(session, "turn.finished").await;
    }
}

#[tokio::test(start_paused = true)]
async fn what_the_parts_of_a_summary_cost_is_charged_when_nobody_waits_for_it_any_more() {
    let mut world = World::new().await;
    let session = world.clock.stamp().session();
    let Command::Create { created, first } = creation(LoopLimits::default(), Some("Port it.")) else {
        unreachable!()
    };
    world
        .ask(session, Command::Create { created, first })
        .await
        .unwrap();
    for n in 0..8 {
        world.model().await.call(&[bash(&format!("echo {n}"))]);
        world.tool().await.end(ToolStatus::Ok, &"word ".repeat(2_000));
    }
    world.model().await.answer("done");
    world.until(session, "turn.finished").await;
    let tiny = Command::Update {
        expect: None,
        title: None,
        model: Some("tiny".into()),
        mode: None,
        labels: None,
        budget: None,
    };
    world.ask(session, tiny).await.unwrap();
    world.ask(session, Command::Compact).await.unwrap();
    // Nothing is in the cache of another model: it gets the conversation in parts.
    world.model().await.answer("1. Task: port it.");
    let second = world.model().await;
    let reason = "over".to_owned();
    world
        .ask(session, Command::Close { reason, force: false })
        .await
        .unwrap();
    second.gone().await;
    let paid = finished(&mut world, session).await;
    assert_eq!((paid.purpose, paid.usage.total()), (SidePurpose::Compaction, 15));
    assert_eq!(paid.model, "tiny");
}
