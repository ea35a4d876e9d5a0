//! Many features used in one session, one after another; and the stream of rules that belongs to no session. Their
//! logs are among the golden ones.

use crate::ASKING;
use crate::played::{self, daemon, model};
use agentd_client::Client;
use agentd_protocol::{
    ApprovalKind, Block, CreateParams, DecideParams, Decision, EndReason, EventBody, OpenApproval,
    PermissionMode, Scope, SessionId, ToolStatus, UndoParams,
};
use agentd_store::{Options, Range};
use agentd_store_sqlite::open;
use agentd_tests::fault_server::Say;
use agentd_tests::{Daemon, DaemonOptions, Follower, check_log, found, keep_log};
use serde_json::json;

/// A picture of one pixel.
const PICTURE: &[u8] = &[
    0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0x00, 0x00, 0x00, 0x0d, 0x49, 0x48, 0x44, 0x52, 0x00,
    0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x01, 0x08, 0x06, 0x00, 0x00, 0x00, 0x1f, 0x15, 0xc4, 0x89, 0x00,
    0x00, 0x00, 0x0a, 0x49, 0x44, 0x41, 0x54, 0x78, 0x9c, 0x63, 0x00, 0x01, 0x00, 0x00, 0x05, 0x00, 0x01,
    0x0d, 0x0a, 0x2d, 0xb4, 0x00, 0x00, 0x00, 0x00, 0x49, 0x45, 0x4e, 0x44, 0xae, 0x42, 0x60, 0x82,
];

/// Plans, looks at a picture, keeps a list, writes a file.
fn says(_: &str, step: usize) -> Say {
    let planned = json!({ "steps": [{ "title": "look", "check": "it was seen" }] });
    match step {
        0 => Say::call("ExitPlanMode", json!({ "plan": "# Summary\nLook, then write." })),
        1 => Say::call("Plan", planned),
        2 => Say::call("Read", json!({ "file_path": "picture.png" })),
        3 => Say::call(
            "TodoWrite",
            json!({ "todos": [{ "content": "write", "status": "in_progress" }] }),
        ),
        4 => Say::call(
            "Write",
            json!({ "file_path": "seen.txt", "content": "a pixel\n" }),
        ),
        5 => Say::call("Plan", json!({ "done": 1, "evidence": "a pixel" })),
        _ => Say::text("It is one pixel."),
    }
}

/// Allows the open question of this kind.
async fn allow(client: &Client, follower: &mut Follower, kind: ApprovalKind, scope: Scope) {
    follower
        .until(
            "the question",
            |body| matches!(body, EventBody::ApprovalAsked(asked) if asked.kind == kind),
        )
        .await;
    let session = follower
        .events
        .first()
        .expect("it has events")
        .session
        .to_string();
    let row = client.get(&session).await.unwrap();
    let open: &OpenApproval = row.open_approvals.first().expect("a question is open");
    let params = DecideParams {
        approval: open.approval.to_string(),
        decision: Some(Decision::Allow),
        scope,
        policy: true,
        ..DecideParams::default()
    };
    client.decide(&params).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_plans_sees_a_picture_is_stopped_by_its_limit_goes_on_and_is_undone() {
    let server = model(says).await;
    let config = format!(
        "[loop]\nplanning = true\nturn_cap = 4\non_limit = \"ask\"\n{ASKING}\
         [permission]\nrules = [{{ allow = \"Write(**)\" }}]\n"
    );
    let daemon = Daemon::start(DaemonOptions {
        model_url: Some(server.url()),
        config,
        faults: Some("rework.before=error@1".to_owned()),
        ..DaemonOptions::default()
    })
    .await;
    let client = daemon.client().await;
    let workdir = std::path::PathBuf::from(daemon.workdir("project"));
    std::fs::write(workdir.join("picture.png"), PICTURE).unwrap();
    let params = CreateParams {
        prompt: Some(vec![Block::text(
            "Look at the picture and write down what it is.",
        )]),
        workdir: daemon.workdir("project"),
        mode: Some(PermissionMode::Plan),
        ..CreateParams::default()
    };
    let session = client.create(&params).await.unwrap().session.to_string();
    let mut follower = Follower::attach(&client, &session).await;
    allow(&client, &mut follower, ApprovalKind::Plan, Scope::Once).await;
    allow(&client, &mut follower, ApprovalKind::Limit, Scope::Once).await;
    let end = follower.turn_finished(1).await;
    assert_eq!(end.reason, EndReason::Completed, "{:?}", end.error);
    assert!(workdir.join("seen.txt").exists());
    let undo = UndoParams {
        session: session.clone(),
        ..UndoParams::default()
    };
    client.undo(&undo).await.unwrap_err();
    assert!(
        workdir.join("seen.txt").exists(),
        "an undo that failed changed nothing"
    );
    client.undo(&undo).await.unwrap();
    assert!(!workdir.join("seen.txt").exists());
    let log = check_log(&client, &session).await;
    for kind in [
        "mode.changed",
        "plan.updated",
        "todo.updated",
        "limit.reached",
        "history.failed",
        "undo.applied",
    ] {
        assert!(log.iter().any(|event| event.body.kind() == kind), "no {kind}");
    }
    let seen = log.iter().any(|event| match &event.body {
        EventBody::ToolFinished(done) => done.outcome.llm_text.contains("image/png"),
        _ => false,
    });
    assert!(seen, "the picture was read");
}

#[tokio::test(flavor = "multi_thread")]
async fn i7_what_is_always_allowed_is_in_the_stream_of_rules_and_is_not_asked_after_a_kill() {
    let server = model(|_, step| match step {
        0 => Say::call("Bash", json!({ "command": "sleep 0" })),
        _ => Say::text("Done."),
    })
    .await;
    let mut first = daemon(&server, ASKING).await;
    let client = first.client().await;
    let session = played::session(&first, &client, "wait").await;
    let mut follower = Follower::attach(&client, &session).await;
    allow(&client, &mut follower, ApprovalKind::Tool, Scope::Always).await;
    assert_eq!(follower.turn_finished(1).await.reason, EndReason::Completed);
    found("the rule is on disk", async || {
        let rules = crate::commands::json(&first, &["rules", "ls"]).await;
        rules[0]["rule"].is_string().then_some(())
    })
    .await;
    first.kill().await;
    let store = open("sqlite:agentd.db", &first.data_dir(), Options::default()).unwrap();
    let stream = store.load(SessionId::NIL, Range::default()).await.unwrap();
    let lines: Vec<String> = stream
        .events
        .iter()
        .map(|(_, line)| String::from_utf8_lossy(line).into_owned())
        .collect();
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(lines[0].contains("rule.added"), "{lines:?}");
    keep_log(&lines);
    drop(store);
    let second = first.restart(None).await;
    let client = second.client().await;
    let session = played::session(&second, &client, "wait again").await;
    let mut follower = Follower::attach(&client, &session).await;
    assert_eq!(follower.turn_finished(1).await.reason, EndReason::Completed);
    let asked = |body: &EventBody| matches!(body, EventBody::ApprovalAsked(_));
    assert!(!follower.events.iter().any(|event| asked(&event.body)));
    let done = follower.events.iter().any(
        |event| matches!(&event.body, EventBody::ToolFinished(done) if done.outcome.status == ToolStatus::Ok),
    );
    assert!(done, "it ran");
}
