//! Sessions of many steps, and many sessions at once.

use crate::{YOLO, daemon};
use agentd_bench::model_server::ModelServer;
use agentd_protocol::{Block, CreateParams, EndReason, ListParams, RunState};
use agentd_tests::{Follower, check_log};
use tokio::task::JoinSet;

#[tokio::test(flavor = "multi_thread")]
async fn a_session_of_twenty_tool_steps_ends_well_in_both_dialects() {
    let server = ModelServer::start(false).await.unwrap();
    let daemon = daemon(&server, YOLO).await;
    let client = daemon.client().await;
    for model in ["claude", "gpt-test"] {
        let params = CreateParams {
            prompt: Some(vec![Block::text(format!(
                "plan:{model} steps=20 command=echo_step_{{n}};"
            ))]),
            workdir: daemon.workdir(model),
            model: Some(model.to_owned()),
            ..CreateParams::default()
        };
        let session = client.create(&params).await.unwrap().session.to_string();
        let mut follower = Follower::attach(&client, &session).await;
        let end = follower.turn_finished(1).await;
        assert_eq!(
            (end.reason, end.steps, end.tool_calls),
            (EndReason::Completed, 21, 20),
            "{model}"
        );
        assert_eq!(end.text, "All done.");
        let log = check_log(&client, &session).await;
        assert_eq!(log, follower.events, "a live viewer saw exactly the log");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn i2_two_hundred_sessions_at_once_lose_nothing() {
    let _heavy = agentd_tests::Heavy::begin().await;
    const SESSIONS: usize = 200;
    let server = ModelServer::start(false).await.unwrap();
    let daemon = daemon(&server, YOLO).await;
    let client = daemon.client().await;
    // On a slow machine viewers attach again before the daemon has answered them: one connection has few places for that.
    let others = [
        daemon.client().await,
        daemon.client().await,
        daemon.client().await,
    ];
    let clients = others.iter().chain([&client]).cycle();
    let mut running = JoinSet::new();
    for (n, client) in (0..SESSIONS).zip(clients) {
        let (client, workdir) = (client.clone(), daemon.workdir(&format!("p{n}")));
        running.spawn(async move {
            let params = CreateParams {
                prompt: Some(vec![Block::text(format!(
                    "plan:s{n} steps=10 command=echo_{{n}}_>>_marks;"
                ))]),
                workdir: workdir.clone(),
                ..CreateParams::default()
            };
            let session = client.create(&params).await.unwrap().session.to_string();
            let mut follower = Follower::attach(&client, &session).await;
            let end = follower.turn_finished(1).await;
            assert_eq!(
                (end.reason, end.tool_calls),
                (EndReason::Completed, 10),
                "session {n}"
            );
            check_log(&client, &session).await;
            let marks = std::fs::read_to_string(format!("{workdir}/marks")).unwrap();
            let wanted: String = (0..10).map(|step| format!("{step}.0\n")).collect();
            assert_eq!(marks, wanted, "each command of session {n} ran once, in order");
        });
    }
    while let Some(done) = running.join_next().await {
        done.unwrap();
    }
    let rows = client.list(&ListParams::default()).await.unwrap();
    assert_eq!(rows.len(), SESSIONS);
    assert!(
        rows.iter().all(|row| row.status.state == RunState::Idle),
        "all are idle"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn i6_a_failing_provider_is_retried_and_its_wish_is_kept() {
    let server = ModelServer::start(false).await.unwrap();
    let daemon = daemon(&server, &format!("{YOLO}[retry]\nbase_ms = 10\ncap_ms = 20\n")).await;
    let client = daemon.client().await;
    let session = crate::session(&daemon, &client, "plan:f steps=1 fail=2:529:1;").await;
    let mut follower = Follower::attach(&client, &session).await;
    let end = follower.turn_finished(1).await;
    assert_eq!(end.reason, EndReason::Completed);
    let waits: Vec<u64> = follower
        .events
        .iter()
        .filter_map(|event| match &event.body {
            agentd_protocol::EventBody::ModelFailed(failure) => {
                Some(failure.retry_at.unwrap().since_ms(event.at))
            }
            _ => None,
        })
        .collect();
    assert_eq!(waits.len(), 2);
    assert!(
        waits.iter().all(|ms| (1_000..2_000).contains(ms)),
        "Retry-After of 1 s wins over 10 ms: {waits:?}"
    );
    check_log(&client, &session).await;
}
