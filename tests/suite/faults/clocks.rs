//! The wall clock jumps forward and back by a day while a daemon runs.

use crate::{ASKING, YOLO};
use agentd_bench::model_server::ModelServer;
use agentd_protocol::{Block, CreateParams, EndReason, EventBody, RunState, WaitReason};
use agentd_tests::{Daemon, DaemonOptions, Follower, check_log, clock_of, eventually};
use std::path::Path;

/// A daemon whose wall clock is shifted by `clock`: `+0`, `+86400`.
async fn daemon(server: &ModelServer, clock: &Path, config: &str) -> Option<Daemon> {
    let env = clock_of("the clock jumps", clock)?;
    Some(
        Daemon::start(DaemonOptions {
            model_url: Some(server.url()),
            config: config.to_owned(),
            env,
            ..DaemonOptions::default()
        })
        .await,
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn i6_a_clock_that_jumps_by_a_day_ends_no_call_and_ids_stay_in_order() {
    let server = ModelServer::start(false).await.unwrap();
    let place = tempfile::tempdir().unwrap();
    let clock = place.path().join("clock");
    std::fs::write(&clock, "+0").unwrap();
    let Some(daemon) = daemon(&server, &clock, YOLO).await else {
        return;
    };
    let client = daemon.client().await;
    let mut ids = Vec::new();
    for (n, jump) in ["+86400", "-86400", "+0"].into_iter().enumerate() {
        let params = CreateParams {
            prompt: Some(vec![Block::text(format!(
                "plan:c{n} steps=3 command=echo_{{n}}_>>_marks_&&_cat_wait;"
            ))]),
            workdir: daemon.workdir(&format!("c{n}")),
            ..CreateParams::default()
        };
        // The command waits at a pipe until the clock has jumped.
        let pipe = Path::new(&params.workdir).join("wait");
        super::signals::pipe_at(&pipe);
        let session = client.create(&params).await.unwrap().session;
        let marks = Path::new(&params.workdir).join("marks");
        for step in 1..=3 {
            let made = || {
                std::fs::read_to_string(&marks)
                    .unwrap_or_default()
                    .lines()
                    .count()
            };
            eventually("the command runs", || made() == step).await;
            std::fs::write(&clock, if step == 1 { jump } else { "+0" }).unwrap();
            let pipe = pipe.clone();
            tokio::fs::write(pipe, "go\n").await.unwrap();
        }
        let session_id = session.to_string();
        let mut follower = Follower::attach(&client, &session_id).await;
        let end = follower.turn_finished(1).await;
        assert_eq!(end.reason, EndReason::Completed, "{jump}");
        let log = check_log(&client, &session_id).await;
        let failed = log
            .iter()
            .any(|event| matches!(event.body, EventBody::ModelFailed(_)));
        assert!(!failed, "{jump}: deadlines go by another clock");
        ids.push(session);
    }
    let mut sorted = ids.clone();
    sorted.sort();
    assert_eq!(ids, sorted, "ids are in the order of their making");
}

#[tokio::test(flavor = "multi_thread")]
async fn i7_a_clock_that_jumps_back_answers_no_question() {
    let server = ModelServer::start(false).await.unwrap();
    let place = tempfile::tempdir().unwrap();
    let clock = place.path().join("clock");
    std::fs::write(&clock, "+0").unwrap();
    let config = format!("{ASKING}[permission]\nask_timeout = \"1h\"\n");
    let Some(daemon) = daemon(&server, &clock, &config).await else {
        return;
    };
    let client = daemon.client().await;
    let session = crate::session(&daemon, &client, "plan:q steps=1 command=touch_made;").await;
    let mut follower = Follower::attach(&client, &session).await;
    follower
        .until("the question", |body| matches!(body, EventBody::ApprovalAsked(_)))
        .await;
    std::fs::write(&clock, "-86400").unwrap();
    let row = client.get(&session).await.unwrap();
    assert_eq!(row.status.state, RunState::Waiting(WaitReason::Approval));
    let decide = agentd_protocol::DecideParams {
        approval: session.clone(),
        decision: Some(agentd_protocol::Decision::Allow),
        policy: true,
        ..agentd_protocol::DecideParams::default()
    };
    client.decide(&decide).await.unwrap();
    assert_eq!(follower.turn_finished(1).await.reason, EndReason::Completed);
    assert!(Path::new(&daemon.workdir("project")).join("made").exists());
    check_log(&client, &session).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn i6_a_clock_that_runs_too_fast_or_too_slow_ends_no_call_and_never_goes_back() {
    let server = ModelServer::start(false).await.unwrap();
    let place = tempfile::tempdir().unwrap();
    let clock = place.path().join("clock");
    std::fs::write(&clock, "+0 x1").unwrap();
    let Some(daemon) = daemon(&server, &clock, YOLO).await else {
        return;
    };
    let client = daemon.client().await;
    for (n, speed) in ["+0 x20", "+0 x0.05"].into_iter().enumerate() {
        std::fs::write(&clock, speed).unwrap();
        let params = CreateParams {
            prompt: Some(vec![Block::text(format!("plan:r{n} steps=5 command=true;"))]),
            workdir: daemon.workdir(&format!("r{n}")),
            ..CreateParams::default()
        };
        let session = client.create(&params).await.unwrap().session.to_string();
        let mut follower = Follower::attach(&client, &session).await;
        let end = follower.turn_finished(1).await;
        assert_eq!(end.reason, EndReason::Completed, "{speed}");
        let log = check_log(&client, &session).await;
        let failed = |body: &EventBody| matches!(body, EventBody::ModelFailed(_));
        assert!(!log.iter().any(|event| failed(&event.body)), "{speed}");
        assert!(log.is_sorted_by_key(|event| event.at), "{speed}");
    }
}
