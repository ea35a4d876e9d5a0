//! The normal flow: an input, answers, tools, the end.

use super::puppets::{bash, read};
use super::world::{World, assert_every_call_has_one_result, assert_gap_free};
use agentd_protocol::{Block, EventBody, SessionId, ToolStatus, VerdictKind};
use agentd_turn::Reply;

#[tokio::test(start_paused = true)]
async fn i2_a_turn_with_a_tool_leaves_the_whole_story() {
    let mut world = World::new().await;
    let session = world.create().await;
    world.model().await.call(&[bash("true")]);
    world.tool().await.end(ToolStatus::Ok, "fine");
    world.model().await.answer("done");
    world.until(session, "turn.finished").await;
    let events = world.events(session).await;
    assert_gap_free(&events);
    assert_eq!(
        world.kinds(session).await,
        [
            "session.created",
            "input.accepted",
            "turn.started",
            "model.started",
            "model.finished",
            "tool.proposed",
            "verdict.given",
            "tool.started",
            "tool.finished",
            "model.started",
            "model.finished",
            "turn.finished"
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_step_with_one_allowed_tool_costs_two_appends() {
    let mut world = World::new().await;
    let session = world.create().await;
    let mut model = world.model().await;
    for n in 0..5 {
        let before = world.strings.log.appends(session);
        model.call(&[bash(&format!("step {n}"))]);
        world.tool().await.end(ToolStatus::Ok, "fine");
        world.until(session, "tool.finished").await;
        model = world.model().await;
        assert_eq!(world.strings.log.appends(session) - before, 2);
    }
}

#[tokio::test(start_paused = true)]
async fn i4_a_tool_is_not_started_before_its_intent_is_durable() {
    let mut world = World::new().await;
    let session = world.create().await;
    world.trick(super::peers::Trick::Swallow);
    world.model().await.call(&[bash("true")]);
    world.until(session, "tool.started").await;
    assert!(world.no_job());
    let done = world.strings.swallowed.lock().unwrap().pop().unwrap();
    let head = world.events(session).await.len() as u64;
    done.answer(agentd_store::Outcome::Committed { head, cursor: 0 });
    world.tool().await.end(ToolStatus::Ok, "fine");
}

#[tokio::test(start_paused = true)]
async fn i1_a_command_is_answered_after_its_events_are_durable() {
    let mut world = World::new().await;
    let session = world.clock.stamp().session();
    world.trick(super::peers::Trick::Swallow);
    let mut answer = world.post(session, super::world::creation(Default::default(), None));
    world.until(session, "session.created").await;
    assert!(answer.try_recv().is_err());
    let done = world.strings.swallowed.lock().unwrap().pop().unwrap();
    done.answer(agentd_store::Outcome::Committed { head: 1, cursor: 1 });
    assert_eq!(answer.await.unwrap(), Ok(Reply::Created { input: None, seq: 1 }));
}

#[tokio::test(start_paused = true)]
async fn reads_run_together_and_a_command_waits_for_them() {
    let mut world = World::new().await;
    let session = world.create().await;
    world.model().await.call(&[read("a"), read("b"), bash("true")]);
    let (a, b) = (world.tool().await, world.tool().await);
    assert!(world.no_job());
    b.end(ToolStatus::Ok, "b");
    world.until(session, "tool.finished").await;
    assert!(world.no_job());
    a.end(ToolStatus::Ok, "a");
    world.tool().await.end(ToolStatus::Ok, "c");
    let messages = world.model().await.job.messages;
    let results = messages.last().unwrap().content.iter().map(|block| match block {
        Block::ToolResult { content, .. } => content.as_str(),
        other => panic!("{other:?}"),
    });
    assert_eq!(results.collect::<Vec<_>>(), ["a", "b", "c"]);
}

#[tokio::test(start_paused = true)]
async fn i7_a_gate_that_says_nothing_denies() {
    let mut world = World::new().await;
    let session = world.create().await;
    world.verdict("Bash", None);
    world.model().await.call(&[bash("true")]);
    world.until(session, "tool.finished").await;
    assert_eq!(denials(&world, session).await, ["gate:error"]);
    world.model().await.answer("I may not");
    world.until(session, "turn.finished").await;
}

#[tokio::test(start_paused = true)]
async fn i7_a_gate_that_hangs_denies_in_time() {
    let mut world = World::new().await;
    let session = world.create().await;
    *world.strings.hang.lock().unwrap() = true;
    world.model().await.call(&[bash("true")]);
    world.until(session, "tool.finished").await;
    assert_eq!(denials(&world, session).await, ["gate:timeout"]);
}

#[tokio::test(start_paused = true)]
async fn bad_arguments_and_unknown_tools_are_results() {
    let mut world = World::new().await;
    let session = world.create().await;
    world.model().await.call(&[
        ("Bash", serde_json::json!({ "cmmand": 7 })),
        ("Fly", serde_json::json!({})),
        ("Write", serde_json::json!({ "file_path": "a", "content": "b" })),
    ]);
    world.model().await.answer("I see");
    world.until(session, "turn.finished").await;
    let events = world.events(session).await;
    assert_every_call_has_one_result(&events);
    let statuses = events.iter().filter_map(|event| match &event.body {
        EventBody::ToolFinished(finished) => Some(finished.outcome.status),
        _ => None,
    });
    assert_eq!(statuses.collect::<Vec<_>>(), [ToolStatus::Error; 3]);
}

#[tokio::test(start_paused = true)]
async fn an_approval_shows_what_will_happen() {
    let mut world = World::new().await;
    let session = world.create().await;
    world.verdict("Bash", Some(VerdictKind::Ask));
    world.model().await.call(&[bash("true")]);
    world.until(session, "approval.asked").await;
    let events = world.events(session).await;
    let asked = events.iter().find_map(|event| match &event.body {
        EventBody::ApprovalAsked(asked) => Some(asked.detail.clone()),
        _ => None,
    });
    assert_eq!(asked.as_deref(), Some("detail of Bash"));
}

async fn denials(world: &World, session: SessionId) -> Vec<String> {
    let events = world.events(session).await;
    let rule = |body: &EventBody| match body {
        EventBody::VerdictGiven(given) if given.verdict.kind == VerdictKind::Deny => {
            Some(given.verdict.rule.clone())
        }
        _ => None,
    };
    events.iter().filter_map(|event| rule(&event.body)).collect()
}
