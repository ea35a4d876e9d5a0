//! Hooks before and after calls, through the whole loop.

use super::puppets::bash;
use super::world::{CANCEL, World, assert_every_call_has_one_result, assert_gap_free};
use agentd_protocol::{
    Basis, Decision, Event, EventBody, HookEvent, HookStatus, Scope, SessionId, ToolOutcome, ToolStatus,
    VerdictKind,
};
use agentd_settings::HookConfig;
use agentd_turn::Command;
use serde_json::{Value, json};

fn hook(name: &str, event: HookEvent) -> HookConfig {
    HookConfig {
        tools: if event.is_of_call() {
            vec!["Bash".to_owned()]
        } else {
            Vec::new()
        },
        ..HookConfig::new(name, event, &["/hook"])
    }
}

async fn before() -> World {
    World::hooked(vec![hook("check", HookEvent::PreToolUse)]).await
}

async fn finished(world: &mut World, session: SessionId) -> ToolOutcome {
    world.until(session, "tool.finished").await;
    let events = world.events(session).await;
    assert_gap_free(&events);
    assert_every_call_has_one_result(&events);
    let outcome = |event: &Event| match &event.body {
        EventBody::ToolFinished(finished) => Some(finished.outcome.clone()),
        _ => None,
    };
    events.iter().rev().find_map(outcome).unwrap()
}

async fn verdicts(world: &World, session: SessionId) -> Vec<(VerdictKind, String)> {
    let verdict = |event: &Event| match &event.body {
        EventBody::VerdictGiven(given) => Some((given.verdict.kind, given.verdict.rule.clone())),
        _ => None,
    };
    world.events(session).await.iter().filter_map(verdict).collect()
}

async fn of_call(world: &World, session: SessionId) -> Vec<&'static str> {
    let mut kinds = world.kinds(session).await;
    kinds.retain(|kind| {
        ["tool.", "verdict.", "hook.", "approval."]
            .iter()
            .any(|prefix| kind.starts_with(prefix))
    });
    kinds
}

#[tokio::test(start_paused = true)]
async fn an_input_that_a_hook_changed_is_judged_again_and_is_the_one_that_runs() {
    let mut world = before().await;
    let session = world.create().await;
    world.model().await.call(&[bash("make")]);
    let asked = world.hook().await;
    assert_eq!(
        (asked.name.as_str(), &asked.told["input"]),
        ("check", &json!({ "command": "make" }))
    );
    asked.exit(0, &json!({ "input": { "command": "make -n" } }), "");
    let tool = world.tool().await;
    assert!(format!("{:?}", tool.job.prepared).contains("make -n"));
    tool.end(ToolStatus::Ok, "fine");
    finished(&mut world, session).await;
    assert_eq!(
        of_call(&world, session).await,
        [
            "tool.proposed",
            "hook.finished",
            "verdict.given",
            "tool.started",
            "tool.finished"
        ]
    );
    assert!(
        world.no_hook(),
        "what a hook changed does not go to the hooks again"
    );
}

#[tokio::test(start_paused = true)]
async fn a_changed_input_that_the_rules_deny_is_denied() {
    let mut world = before().await;
    let session = world.create().await;
    world.model().await.call(&[bash("make")]);
    let asked = world.hook().await;
    world.verdict("Bash", Some(VerdictKind::Deny));
    asked.exit(
        0,
        &json!({ "decision": "allow", "input": { "command": "rm -rf /" } }),
        "",
    );
    assert_eq!(finished(&mut world, session).await.status, ToolStatus::Denied);
    assert_eq!(
        verdicts(&world, session).await,
        [(VerdictKind::Deny, "test".to_owned())]
    );
}

#[tokio::test(start_paused = true)]
async fn a_changed_input_that_no_tool_takes_is_an_error_and_nothing_runs() {
    let mut world = before().await;
    let session = world.create().await;
    world.model().await.call(&[bash("make")]);
    world.hook().await.exit(0, &json!({ "input": { "cmd": 1 } }), "");
    let outcome = finished(&mut world, session).await;
    assert_eq!(outcome.status, ToolStatus::Error);
    assert!(
        outcome
            .llm_text
            .starts_with("A hook changed the input of this call."),
        "{outcome:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn an_allow_of_a_hook_does_not_answer_a_question_of_the_rules() {
    let mut world = before().await;
    world.verdict("Bash", Some(VerdictKind::Ask));
    let session = world.create().await;
    world.model().await.call(&[bash("make")]);
    world.hook().await.exit(0, &json!({ "decision": "allow" }), "");
    world.until(session, "approval.asked").await;
    assert_eq!(
        verdicts(&world, session).await,
        [(VerdictKind::Ask, "test".to_owned())]
    );
}

#[tokio::test(start_paused = true)]
async fn what_the_rules_deny_is_denied_without_asking_hooks() {
    let mut world = before().await;
    world.verdict("Bash", Some(VerdictKind::Deny));
    let session = world.create().await;
    world.model().await.call(&[bash("make")]);
    assert_eq!(finished(&mut world, session).await.status, ToolStatus::Denied);
    assert!(world.no_hook());
}

#[tokio::test(start_paused = true)]
async fn a_hook_may_have_a_person_asked_once() {
    let mut world = before().await;
    let session = world.create().await;
    world.model().await.call(&[bash("make")]);
    world
        .hook()
        .await
        .exit(0, &json!({ "decision": "ask", "reason": "look" }), "");
    world.until(session, "approval.asked").await;
    assert_eq!(
        verdicts(&world, session).await,
        [(VerdictKind::Ask, "hook:check".to_owned())]
    );
    let events = world.events(session).await;
    let asked = events.iter().find_map(|event| match &event.body {
        EventBody::ApprovalAsked(asked) => Some(asked.clone()),
        _ => None,
    });
    let asked = asked.unwrap();
    assert_eq!((asked.scopes, asked.grant), (vec![Scope::Once], None));
    let decide = Command::Decide {
        approval: asked.approval,
        decision: Decision::Allow,
        scope: Scope::Once,
        answer: None,
        message: None,
        basis: Some(Basis::Policy),
    };
    world.ask(session, decide).await.unwrap();
    world.tool().await.end(ToolStatus::Ok, "fine");
    assert_eq!(finished(&mut world, session).await.status, ToolStatus::Ok);
}

#[tokio::test(start_paused = true)]
async fn i7_a_hook_that_fails_denies() {
    for (code, stdout) in [
        (1, json!(null)),
        (0, json!("hm")),
        (124, json!(null)),
        (2, json!(null)),
    ] {
        let mut world = before().await;
        let session = world.create().await;
        world.model().await.call(&[bash("make")]);
        world.hook().await.exit(code, &stdout, "no");
        assert_eq!(
            finished(&mut world, session).await.status,
            ToolStatus::Denied,
            "exit code {code}"
        );
        assert_eq!(
            verdicts(&world, session).await,
            [(VerdictKind::Deny, "hook:check".to_owned())]
        );
    }
}

#[tokio::test(start_paused = true)]
async fn i7_a_hook_whose_kid_panics_denies() {
    let mut world = before().await;
    let session = world.create().await;
    world.model().await.call(&[bash("make")]);
    world.hook().await.panic();
    assert_eq!(finished(&mut world, session).await.status, ToolStatus::Denied);
    assert_eq!(
        verdicts(&world, session).await,
        [(VerdictKind::Deny, "hook:error".to_owned())]
    );
}

#[tokio::test(start_paused = true)]
async fn i7_hooks_that_take_longer_than_judging_may_deny_and_are_killed() {
    let mut world = before().await;
    let session = world.create().await;
    world.model().await.call(&[bash("make")]);
    let asked = world.hook().await;
    assert_eq!(finished(&mut world, session).await.status, ToolStatus::Denied);
    asked.killed().await;
    assert_eq!(
        verdicts(&world, session).await,
        [(VerdictKind::Deny, "gate:timeout".to_owned())]
    );
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_turn_kills_the_hooks_that_are_asked() {
    let mut world = before().await;
    let session = world.create().await;
    world.model().await.call(&[bash("make")]);
    let asked = world.hook().await;
    world.ask(session, CANCEL).await.unwrap();
    asked.killed().await;
    world.until(session, "turn.finished").await;
    assert_every_call_has_one_result(&world.events(session).await);
}

#[tokio::test(start_paused = true)]
async fn what_hooks_after_a_call_add_is_in_its_result_in_their_order() {
    let mut world = World::hooked(vec![
        hook("one", HookEvent::PostToolUse),
        hook("two", HookEvent::PostToolUse),
        hook("bad", HookEvent::PostToolUseFailure),
    ])
    .await;
    let session = world.create().await;
    world.model().await.call(&[bash("make")]);
    world.tool().await.end(ToolStatus::Ok, "built");
    let mut asked = [world.hook().await, world.hook().await];
    asked.sort_by(|a, b| b.name.cmp(&a.name));
    for one in asked {
        assert_eq!(
            (&one.told["status"], &one.told["result"]),
            (&json!("ok"), &json!("built"))
        );
        let context: Value = json!({ "context": format!("from {}", one.name) });
        one.exit(0, &context, "");
    }
    let outcome = finished(&mut world, session).await;
    assert_eq!(
        outcome.llm_text,
        "built\n\n[hook one] from one\n[hook two] from two"
    );
    assert_eq!(
        of_call(&world, session).await,
        [
            "tool.proposed",
            "verdict.given",
            "tool.started",
            "hook.finished",
            "hook.finished",
            "tool.finished"
        ]
    );
    world.model().await.answer("done");
    world.until(session, "turn.finished").await;
}

#[tokio::test(start_paused = true)]
async fn a_hook_after_a_call_that_fails_changes_nothing_and_is_written_down() {
    let mut world = World::hooked(vec![hook("bad", HookEvent::PostToolUseFailure)]).await;
    let session = world.create().await;
    world.model().await.call(&[bash("make")]);
    world.tool().await.end(ToolStatus::Error, "broken");
    world.hook().await.exit(1, &json!(null), "oh");
    let expected = ToolOutcome::text(ToolStatus::Error, "broken");
    assert_eq!(finished(&mut world, session).await, expected);
    let events = world.events(session).await;
    let status = events.iter().find_map(|event| match &event.body {
        EventBody::HookFinished(finished) => Some(finished.status),
        _ => None,
    });
    assert_eq!(status, Some(HookStatus::Failed));
}

#[tokio::test(start_paused = true)]
async fn i3_a_call_that_is_cancelled_while_hooks_hear_of_it_has_one_result() {
    let mut world = World::hooked(vec![hook("slow", HookEvent::PostToolUse)]).await;
    let session = world.create().await;
    world.model().await.call(&[bash("make")]);
    world.tool().await.end(ToolStatus::Ok, "built");
    let asked = world.hook().await;
    world.ask(session, CANCEL).await.unwrap();
    asked.killed().await;
    assert_eq!(
        finished(&mut world, session).await.status,
        ToolStatus::Interrupted
    );
}

#[tokio::test(start_paused = true)]
async fn i4_after_a_restart_an_approved_call_is_the_one_that_a_hook_made_of_it_and_no_other() {
    for (again, status) in [("make -n", ToolStatus::Ok), ("make evil", ToolStatus::Denied)] {
        let mut world = before().await;
        world.verdict("Bash", Some(VerdictKind::Ask));
        let session = world.create().await;
        world.model().await.call(&[bash("make")]);
        let changed = |command: &str| json!({ "input": { "command": command } });
        world.hook().await.exit(0, &changed("make -n"), "");
        world.until(session, "approval.asked").await;
        let events = world.events(session).await;
        let approval = events.iter().find_map(|event| match &event.body {
            EventBody::ApprovalAsked(asked) => Some(asked.approval),
            _ => None,
        });
        world.crash().await;
        let decide = Command::Decide {
            approval: approval.unwrap(),
            decision: Decision::Allow,
            scope: Scope::Once,
            answer: None,
            message: None,
            basis: Some(Basis::Policy),
        };
        world.ask(session, decide).await.unwrap();
        let asked = world.hook().await;
        assert_eq!(asked.told["input"], json!({ "command": "make -n" }));
        asked.exit(0, &changed(again), "");
        if status == ToolStatus::Ok {
            let tool = world.tool().await;
            assert!(format!("{:?}", tool.job.prepared).contains("make -n"));
            tool.end(ToolStatus::Ok, "fine");
        }
        assert_eq!(finished(&mut world, session).await.status, status, "{again}");
    }
}
