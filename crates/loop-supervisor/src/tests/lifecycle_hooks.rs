//! Lifecycle hooks (questions, inputs, sessions, ends of turns) through the whole loop.

use super::puppets::{HookPuppet, bash};
use super::world::{CANCEL, World, assert_every_call_has_one_result, assert_gap_free};
use agentd_protocol::{
    Basis, Decision, EndReason, Event, EventBody, FailureClass, HookEvent, RunState, Scope, SessionId,
    ToolOutcome, ToolStatus, VerdictKind,
};
use agentd_settings::HookConfig;
use agentd_turn::Command;
use serde_json::json;

fn hook(name: &str, event: HookEvent) -> HookConfig {
    HookConfig::new(name, event, &["/hook"])
}

async fn hearing(event: HookEvent) -> World {
    World::hooked(vec![hook("h", event)]).await
}

/// Hook failures that count as no answer.
fn broken() -> [fn(HookPuppet); 5] {
    [
        |hook| hook.exit(1, &json!(null), "oh"),
        |hook| hook.exit(0, &json!("hm"), ""),
        |hook| hook.exit(0, &json!({ "decision": "maybe" }), ""),
        |hook| hook.exit(124, &json!(null), ""),
        HookPuppet::panic,
    ]
}

async fn find<T>(world: &World, session: SessionId, pick: impl Fn(&EventBody) -> Option<T>) -> Option<T> {
    let events = world.events(session).await;
    events.iter().rev().find_map(|event: &Event| pick(&event.body))
}

async fn result(world: &mut World, session: SessionId) -> ToolOutcome {
    world.until(session, "tool.finished").await;
    let events = world.events(session).await;
    assert_gap_free(&events);
    assert_every_call_has_one_result(&events);
    let outcome = find(world, session, |body| match body {
        EventBody::ToolFinished(finished) => Some(finished.outcome.clone()),
        _ => None,
    });
    outcome.await.unwrap()
}

async fn ended(world: &mut World, session: SessionId) -> EndReason {
    world.until(session, "turn.finished").await;
    assert_gap_free(&world.events(session).await);
    let reason = find(world, session, |body| match body {
        EventBody::TurnFinished(finished) => Some(finished.reason),
        _ => None,
    });
    reason.await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_question_is_told_to_hooks_before_a_person_and_may_be_denied() {
    let mut world = hearing(HookEvent::PermissionRequest).await;
    world.verdict("Bash", Some(VerdictKind::Ask));
    let session = world.create().await;
    world.model().await.call(&[bash("make")]);
    let asked = world.hook().await;
    assert_eq!(
        (&asked.told["event"], &asked.told["input"], &asked.told["rule"]),
        (
            &json!("PermissionRequest"),
            &json!({ "command": "make" }),
            &json!("test")
        )
    );
    asked.exit(2, &json!(null), "not on a Friday");
    assert_eq!(result(&mut world, session).await.status, ToolStatus::Denied);
    assert!(!world.kinds(session).await.contains(&"approval.asked"));
}

#[tokio::test(start_paused = true)]
async fn i7_a_hook_of_questions_that_fails_or_may_not_allow_leaves_the_question_with_the_person() {
    let allows: fn(HookPuppet) = |hook| hook.exit(0, &json!({ "decision": "allow" }), "");
    for answer in broken().into_iter().chain([allows]) {
        let mut world = hearing(HookEvent::PermissionRequest).await;
        world.verdict("Bash", Some(VerdictKind::Ask));
        let session = world.create().await;
        world.model().await.call(&[bash("make")]);
        answer(world.hook().await);
        world.until(session, "approval.asked").await;
        assert!(world.no_job() && world.no_hook());
    }
}

#[tokio::test(start_paused = true)]
async fn i7_a_hook_answers_a_question_of_the_rules_only_where_the_operator_lets_it_and_no_other_hooks_question()
 {
    for (others, asks) in [(None, false), (Some(HookEvent::PreToolUse), true)] {
        let permitted = HookConfig {
            may_allow: true,
            ..hook("yes", HookEvent::PermissionRequest)
        };
        let other = others.map(|event| hook("other", event));
        let mut world = World::hooked(other.into_iter().chain([permitted]).collect()).await;
        world.verdict("Bash", Some(VerdictKind::Ask));
        let session = world.create().await;
        world.model().await.call(&[bash("make")]);
        if asks {
            world.hook().await.exit(0, &json!({ "decision": "ask" }), "");
        }
        world.hook().await.exit(0, &json!({ "decision": "allow" }), "");
        if asks {
            world.until(session, "approval.asked").await;
            assert!(world.no_job());
            continue;
        }
        world.tool().await.end(ToolStatus::Ok, "built");
        assert_eq!(result(&mut world, session).await.status, ToolStatus::Ok);
        let rule = find(&world, session, |body| match body {
            EventBody::VerdictGiven(given) => Some(given.verdict.rule.clone()),
            _ => None,
        });
        assert_eq!(rule.await.as_deref(), Some("hook:yes"));
    }
}

#[tokio::test(start_paused = true)]
async fn i4_what_a_person_allowed_is_not_asked_about_again_after_a_restart() {
    let mut world = hearing(HookEvent::PermissionRequest).await;
    world.verdict("Bash", Some(VerdictKind::Ask));
    let session = world.create().await;
    world.model().await.call(&[bash("make")]);
    world.hook().await.exit(0, &json!({}), "");
    world.until(session, "approval.asked").await;
    let approval = find(&world, session, |body| match body {
        EventBody::ApprovalAsked(asked) => Some(asked.approval),
        _ => None,
    });
    let approval = approval.await.unwrap();
    world.crash().await;
    let decide = Command::Decide {
        approval,
        decision: Decision::Allow,
        scope: Scope::Once,
        answer: None,
        message: None,
        basis: Some(Basis::Policy),
    };
    world.ask(session, decide).await.unwrap();
    world.tool().await.end(ToolStatus::Ok, "built");
    assert_eq!(result(&mut world, session).await.status, ToolStatus::Ok);
    assert!(world.no_hook());
}

#[tokio::test(start_paused = true)]
async fn a_hook_puts_another_result_in_the_place_of_the_tools_and_the_log_has_both() {
    let mut world = hearing(HookEvent::PostToolUse).await;
    let session = world.create().await;
    world.model().await.call(&[bash("make")]);
    world.tool().await.end(ToolStatus::Ok, "the whole truth");
    world.hook().await.exit(
        0,
        &json!({ "modifiedOutput": "the truth", "context": "be brief" }),
        "",
    );
    assert_eq!(
        result(&mut world, session).await.llm_text,
        "the truth\n\n[hook h] be brief"
    );
    let kept = find(&world, session, |body| match body {
        EventBody::HookFinished(finished) => finished.replaced.clone(),
        _ => None,
    });
    assert_eq!(kept.await.as_deref(), Some("the whole truth"));
}

#[tokio::test(start_paused = true)]
async fn an_input_is_told_to_hooks_before_it_joins() {
    let mut world = hearing(HookEvent::UserPromptSubmit).await;
    let session = world.create().await;
    let asked = world.hook().await;
    assert_eq!(asked.told["prompt"], json!("do it"));
    assert!(world.no_job());
    asked.exit(0, &json!({ "additionalContext": "it is Friday" }), "");
    world.model().await.answer("done");
    assert_eq!(ended(&mut world, session).await, EndReason::Completed);
    let kinds = world.kinds(session).await;
    assert!(kinds.contains(&"note.injected") && kinds.contains(&"hook.finished"));
}

#[tokio::test(start_paused = true)]
async fn i7_an_input_whose_hook_fails_is_not_let_in() {
    for answer in broken() {
        let mut world = hearing(HookEvent::UserPromptSubmit).await;
        let session = world.create().await;
        answer(world.hook().await);
        world.until(session, "input.cancelled").await;
        let reason = find(&world, session, |body| match body {
            EventBody::InputCancelled(cancelled) => cancelled.reason.clone(),
            _ => None,
        });
        assert!(reason.await.unwrap().starts_with("hook "));
        world.until_state(session, RunState::Idle).await;
        assert!(world.no_job() && world.no_hook());
    }
}

#[tokio::test(start_paused = true)]
async fn after_a_crash_the_hooks_of_an_input_are_asked_again() {
    let mut world = hearing(HookEvent::UserPromptSubmit).await;
    let session = world.create().await;
    let first = world.hook().await;
    world.crash().await;
    first.killed().await;
    world.hook().await.exit(0, &json!({}), "");
    world.model().await.answer("done");
    assert_eq!(ended(&mut world, session).await, EndReason::Completed);
}

#[tokio::test(start_paused = true)]
async fn the_beginning_and_the_close_of_a_session_are_told_and_it_goes_cold_after_that() {
    let mut world = World::hooked(vec![
        hook("hello", HookEvent::SessionStart),
        hook("bye", HookEvent::SessionEnd),
    ])
    .await;
    let session = world.create().await;
    let asked = world.hook().await;
    assert_eq!(
        (asked.name.as_str(), &asked.told["event"], &asked.told["model"]),
        ("hello", &json!("SessionStart"), &json!("scripted"))
    );
    asked.exit(0, &json!({ "context": "welcome" }), "");
    world.model().await.answer("done");
    ended(&mut world, session).await;
    let close = Command::Close {
        reason: "enough".to_owned(),
        force: true,
    };
    world.ask(session, close).await.unwrap();
    let asked = world.hook().await;
    assert_eq!(
        (asked.name.as_str(), &asked.told["reason"]),
        ("bye", &json!("enough"))
    );
    asked.exit(0, &json!(null), "");
    world.until(session, "hook.finished").await;
    world.until_cold(session).await;
}

#[tokio::test(start_paused = true)]
async fn i7_hooks_that_cannot_prevent_anything_and_fail_change_nothing() {
    for event in [HookEvent::SessionStart, HookEvent::Stop, HookEvent::Notification] {
        for answer in broken() {
            let mut world = hearing(event).await;
            let session = world.create().await;
            if event == HookEvent::SessionStart {
                answer(world.hook().await);
                world.model().await.answer("done");
            } else {
                world.model().await.answer("done");
                answer(world.hook().await);
            }
            if event == HookEvent::Notification {
                world.until(session, "hook.finished").await;
            } else {
                assert_eq!(ended(&mut world, session).await, EndReason::Completed);
            }
            assert!(world.no_job());
            assert!(!world.kinds(session).await.contains(&"note.injected"));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_hook_of_the_end_has_the_model_called_again_with_its_reason() {
    let mut world = hearing(HookEvent::Stop).await;
    let session = world.create().await;
    world.model().await.answer("done");
    let asked = world.hook().await;
    assert_eq!(
        (&asked.told["text"], &asked.told["rounds"]),
        (&json!("done"), &json!(0))
    );
    asked.exit(0, &json!({ "continue": true, "reason": "the tests fail" }), "");
    world.model().await.answer("now they pass");
    world.hook().await.exit(0, &json!({}), "");
    assert_eq!(ended(&mut world, session).await, EndReason::Completed);
    let note = find(&world, session, |body| match body {
        EventBody::NoteInjected(note) => Some(note.text.clone()),
        _ => None,
    });
    assert_eq!(
        note.await.as_deref(),
        Some("The turn does not end yet. hook h: the tests fail")
    );
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_turn_kills_the_hooks_of_its_end() {
    let mut world = hearing(HookEvent::Stop).await;
    let session = world.create().await;
    world.model().await.answer("done");
    let asked = world.hook().await;
    world.ask(session, CANCEL).await.unwrap();
    asked.killed().await;
    assert_eq!(ended(&mut world, session).await, EndReason::Cancelled);
}

#[tokio::test(start_paused = true)]
async fn people_are_notified_of_a_question_and_of_the_end() {
    let mut world = hearing(HookEvent::Notification).await;
    world.verdict("Bash", Some(VerdictKind::Ask));
    let session = world.create().await;
    world.model().await.call(&[bash("make")]);
    let asked = world.hook().await;
    assert_eq!(asked.told["kind"], json!("approval"));
    assert!(asked.told["approval"].is_string(), "{:?}", asked.told);
    asked.exit(0, &json!(null), "");
    world.ask(session, CANCEL).await.unwrap();
    let asked = world.hook().await;
    assert_eq!(asked.told["kind"], json!("idle"));
    asked.exit(0, &json!(null), "");
}

#[tokio::test(start_paused = true)]
async fn i7_a_compaction_whose_hook_fails_is_not_made() {
    for answer in broken() {
        let mut world = hearing(HookEvent::Compaction).await;
        let session = world.create().await;
        world.model().await.fail(FailureClass::ContextOverflow, None);
        let asked = world.hook().await;
        assert!(asked.told["tokens"].is_number());
        answer(asked);
        assert_eq!(ended(&mut world, session).await, EndReason::ContextOverflow);
        let kinds = world.kinds(session).await;
        assert!(kinds.contains(&"warning.raised") && !kinds.contains(&"context.compacted"));
    }
}
