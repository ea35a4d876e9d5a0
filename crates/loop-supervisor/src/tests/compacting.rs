//! A model writes the summary of a conversation: it is one more worker, and whatever happens to it, the session continues.

use super::puppets::{ModelPuppet, bash};
use super::world::{World, creation};
use agentd_protocol::{
    ContextCompacted, EventBody, FailureClass, LoopLimits, RunState, SessionId, ToolStatus,
};
use agentd_turn::Command;
use std::time::Duration;

async fn created(world: &mut World, model: &str) -> SessionId {
    let session = world.clock.stamp().session();
    let Command::Create { mut created, first } = creation(LoopLimits::default(), Some("Port it.")) else {
        unreachable!()
    };
    created.model = model.into();
    world
        .ask(session, Command::Create { created, first })
        .await
        .unwrap();
    session
}

/// A session with something to compact, between two turns.
async fn long_session(world: &mut World) -> SessionId {
    let session = created(world, "chat").await;
    for n in 0..8 {
        world.model().await.call(&[bash(&format!("echo {n}"))]);
        world.tool().await.end(ToolStatus::Ok, &"word ".repeat(2_000));
    }
    world.model().await.answer("done");
    world.until(session, "turn.finished").await;
    session
}

async fn asked(world: &mut World) -> (SessionId, ModelPuppet) {
    let session = long_session(world).await;
    world.ask(session, Command::Compact).await.unwrap();
    let worker = world.model().await;
    (session, worker)
}

async fn compacted(world: &mut World, session: SessionId) -> ContextCompacted {
    world.until(session, "context.compacted").await;
    let events = world.events(session).await;
    let found = events.into_iter().rev().find_map(|event| match event.body {
        EventBody::ContextCompacted(compacted) => Some(compacted),
        _ => None,
    });
    found.unwrap()
}

#[tokio::test(start_paused = true)]
async fn the_sessions_model_writes_the_summary_and_is_paid_by_the_session() {
    let mut world = World::new().await;
    let (session, worker) = asked(&mut world).await;
    world.until_state(session, RunState::Compacting).await;
    // The summary is not shown to viewers while it is written.
    worker.text("1. Task");
    worker.answer("1. Task: port it.");
    let told = compacted(&mut world, session).await;
    assert!(
        told.summary
            .starts_with("1. Task: port it.\n## What was asked\n- Port it.")
    );
    assert_eq!(told.summarised_by.as_deref(), Some("chat"));
    assert_eq!(told.usage.map(|usage| usage.total()), Some(15));
    assert_eq!(told.retold_because, None);
    world.until_state(session, RunState::Idle).await;
}

fn sent(worker: &ModelPuppet) -> String {
    String::from_utf8(worker.job.body.to_bytes().to_vec()).unwrap()
}

/// A request up to the end of its last message.
fn up_to_the_question(body: &str) -> &str {
    body.split_at(body.rfind("}]").unwrap()).0
}

#[tokio::test(start_paused = true)]
async fn the_question_for_a_summary_follows_the_bytes_of_the_last_request() {
    for model in ["chat", "claude"] {
        let mut world = World::new().await;
        let session = created(&mut world, model).await;
        let mut last = String::new();
        for n in 0..8 {
            let worker = world.model().await;
            last = sent(&worker);
            worker.call(&[bash(&format!("echo {n}"))]);
            world.tool().await.end(ToolStatus::Ok, &"word ".repeat(2_000));
        }
        let worker = world.model().await;
        let before_last = std::mem::replace(&mut last, sent(&worker));
        worker.answer("done");
        world.until(session, "turn.finished").await;
        world.ask(session, Command::Compact).await.unwrap();
        let worker = world.model().await;
        let unmarked = |body: &str| body.replace(",\"cache_control\":{\"type\":\"ephemeral\"}", "");
        let question = sent(&worker);
        let plain = unmarked(&question);
        for body in [&before_last, &last] {
            let body = unmarked(body);
            assert!(plain.starts_with(up_to_the_question(&body)), "{model}: {plain}");
        }
        assert!(
            plain.contains("\"tools\"") && plain.contains("nine sections"),
            "{model}"
        );
        let end = question.rfind("nine sections").unwrap();
        let marks = |body: &str| body.matches("cache_control").count();
        assert_eq!(
            marks(&question[end..]),
            0,
            "{model}: no later request reads its end"
        );
        if model == "claude" {
            let (read, _) = question.split_at(question.rfind("cache_control").unwrap());
            let (written, _) = last.split_at(last.rfind("cache_control").unwrap());
            assert_eq!(
                unmarked(read),
                unmarked(written),
                "it reads what the last request wrote"
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_in_the_answer_is_refused_and_the_conversation_is_retold() {
    let mut world = World::new().await;
    let (session, worker) = asked(&mut world).await;
    worker.call(&[bash("rm -rf target")]);
    let again = world.model().await;
    let body = sent(&again);
    assert!(
        body.contains("Agent calls Bash") && !body.contains("\"tools\""),
        "{body}"
    );
    again.answer("1. Task: port it.");
    let told = compacted(&mut world, session).await;
    assert_eq!(told.summarised_by.as_deref(), Some("chat"));
    assert_eq!(
        told.usage.map(|usage| usage.total()),
        Some(30),
        "both calls are paid"
    );
    let why = "the model called a tool instead of writing the summary";
    assert_eq!(told.retold_because.as_deref(), Some(why));
    assert!(world.no_job(), "nothing ran");
}

#[tokio::test(start_paused = true)]
async fn a_conversation_that_does_not_fit_is_retold_in_parts() {
    let mut world = World::new().await;
    let (session, worker) = asked(&mut world).await;
    worker.fail(FailureClass::ContextOverflow, None);
    let worker = world.model().await;
    let body = sent(&worker);
    assert!(
        body.contains("<conversation>") && !body.contains("\"tools\""),
        "{body}"
    );
    worker.answer("1. Task: port it.");
    let told = compacted(&mut world, session).await;
    let why = "the conversation no longer fits the model's window";
    assert_eq!(told.retold_because.as_deref(), Some(why));
}

#[tokio::test(start_paused = true)]
async fn i6_a_summary_that_fails_panics_or_takes_too_long_is_made_without_a_model() {
    for how in 0..4 {
        let mut world = World::new().await;
        let (session, worker) = asked(&mut world).await;
        match how {
            0 => worker.fail(FailureClass::Overloaded, None),
            1 => worker.panic(),
            2 => worker.answer("  \n"),
            _ => {
                world.pass(Duration::from_secs(121)).await;
                worker.gone().await;
            }
        }
        let made = compacted(&mut world, session).await;
        assert_eq!(made.summarised_by, None, "{how}");
        assert!(
            made.summary.starts_with("## What was asked\n- Port it."),
            "{how}: {}",
            made.summary
        );
        assert!(world.no_job(), "{how}: it is not tried again");
    }
}

#[tokio::test(start_paused = true)]
async fn a_closed_session_kills_the_kid_that_writes_its_summary() {
    let mut world = World::new().await;
    let (session, worker) = asked(&mut world).await;
    let reason = "over".to_owned();
    world
        .ask(session, Command::Close { reason, force: false })
        .await
        .unwrap();
    worker.gone().await;
    let kinds = world.kinds(session).await;
    assert_eq!(
        kinds[kinds.len() - 3..],
        ["compaction.asked", "context.kept", "session.closed"]
    );
}

#[tokio::test(start_paused = true)]
async fn a_compaction_that_a_crash_interrupts_is_done_afterwards() {
    let mut world = World::new().await;
    let (session, worker) = asked(&mut world).await;
    world.crash().await;
    worker.gone().await;
    let again = world.model().await;
    again.answer("1. Task: port it.");
    let told = compacted(&mut world, session).await;
    assert_eq!(told.summarised_by.as_deref(), Some("chat"));
    let asks = world.kinds(session).await;
    assert_eq!(asks.iter().filter(|kind| **kind == "compaction.asked").count(), 1);
}
