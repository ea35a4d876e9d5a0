//! `kill -9` at each fault point and in each phase; afterwards I1 to I5 hold and the turn continues.

mod clocks;
mod ends;
mod floods;
mod places;
pub(crate) mod signals;

use crate::{ASKING, YOLO, daemon, session};
use agentd_bench::model_server::ModelServer;
use agentd_client::Client;
use agentd_protocol::{
    Block, CreateParams, DecideParams, Decision, EndReason, Event, EventBody, ListParams, RunState,
    ToolStatus, WaitReason,
};
use agentd_tests::{Daemon, DaemonOptions, Follower, check_log, eventually, marked, within, working_in};

/// Kills the daemon at `fault` while a session runs three commands, restarts it, and checks the invariants.
async fn killed_at(fault: &str) {
    let server = ModelServer::start(false).await.unwrap();
    let mut first = Daemon::start(DaemonOptions {
        model_url: Some(server.url()),
        config: YOLO.to_owned(),
        faults: Some(fault.to_owned()),
        ..DaemonOptions::default()
    })
    .await;
    let client = first.client().await;
    let acknowledged = create(&first, &client).await;
    first.ended().await;
    let second = first.restart(None).await;
    let client = second.client().await;
    let session = match acknowledged {
        Some(session) => session,
        // The create was not acknowledged: it may be durable or not, but a second try must not create a second session.
        None => {
            let again = create(&second, &client)
                .await
                .expect("the second try is acknowledged");
            assert_eq!(
                client.list(&ListParams::default()).await.unwrap().len(),
                1,
                "I1: one key, one session ({fault})"
            );
            again
        }
    };
    let mut follower = Follower::attach(&client, &session).await;
    let end = follower.turn_finished(1).await;
    assert_eq!(end.reason, EndReason::Completed, "{fault}: the turn goes on");
    let log = check_log(&client, &session).await;
    effects_are_honest(&log, &first, fault);
    let quiet = || working_in(&first.dir.path().join("work")).is_empty();
    drop(client);
    drop(second);
    eventually(
        &format!("I5 ({fault}): no process of either daemon is left"),
        quiet,
    )
    .await;
}

async fn create(daemon: &Daemon, client: &Client) -> Option<String> {
    let params = CreateParams {
        prompt: Some(vec![Block::text("plan:k steps=3 command=echo_{n}_>>_marks;")]),
        workdir: daemon.workdir("project"),
        key: Some("the-one".to_owned()),
        ..CreateParams::default()
    };
    client
        .create(&params)
        .await
        .ok()
        .map(|created| created.session.to_string())
}

/// I4: each command ran at most once; one with an unknown outcome ran once or not at all; one that the log calls done ran.
fn effects_are_honest(log: &[Event], daemon: &Daemon, fault: &str) {
    let marks = std::fs::read_to_string(format!("{}/marks", daemon.workdir("project"))).unwrap_or_default();
    let unknown = log
        .iter()
        .filter(|event| matches!(&event.body, EventBody::ToolFinished(d) if d.outcome.outcome_unknown))
        .count();
    for step in 0..3 {
        let mark = format!("{step}.0");
        let ran = marks.lines().filter(|line| *line == mark).count();
        assert!(ran <= 1, "I4 ({fault}): {mark} ran {ran} times");
        assert!(
            ran == 1 || unknown > 0,
            "I1 ({fault}): {mark} never ran, but the log does not say so"
        );
    }
}

macro_rules! killed_at {
    ($($name:ident: $($fault:literal),+;)*) => {
        $(#[tokio::test(flavor = "multi_thread")]
        async fn $name() {
            for fault in [$($fault),+] {
                killed_at(fault).await;
            }
        })*
    };
}

// The first transaction of a daemon registers the node, so the session's first append is the second transaction.
killed_at! {
    i1_killed_before_an_append: "store.before_append=kill@1", "store.before_append=kill@2", "store.before_append=kill@3", "store.before_append=kill@4";
    i2_killed_in_the_transaction: "store.in_batch=kill@2", "store.in_batch=kill@3", "store.in_batch=kill@4";
    i1_killed_between_commit_and_answer: "store.after_commit=kill@2", "store.after_commit=kill@3", "store.after_commit=kill@4", "store.after_commit=kill@6";
    i4_killed_before_a_tool_starts: "tool.before_spawn=kill@1", "tool.before_spawn=kill@2";
    i4_killed_after_a_tool_started: "tool.after_spawn=kill@1", "tool.after_spawn=kill@3";
    i4_killed_before_a_result_is_stored: "tool.before_store=kill@1", "tool.before_store=kill@2";
}

#[tokio::test(flavor = "multi_thread")]
async fn i1_killed_while_a_model_streams_the_call_is_made_again() {
    let server = ModelServer::start(false).await.unwrap();
    let mut first = daemon(&server, YOLO).await;
    let client = first.client().await;
    let session = session(&first, &client, "plan:m steps=1 hang=0 hangs=1;").await;
    Follower::attach(&client, &session)
        .await
        .until_text("Thinking")
        .await;
    first.kill().await;
    within("the call is over", server.until(|seen| seen.open == 0)).await;
    let second = first.restart(None).await;
    let client = second.client().await;
    let mut follower = Follower::attach(&client, &session).await;
    assert_eq!(follower.turn_finished(1).await.reason, EndReason::Completed);
    let recovered = follower
        .until("the recovery", |body| {
            matches!(body, EventBody::SessionRecovered(_))
        })
        .await;
    assert!(matches!(&recovered.body, EventBody::SessionRecovered(r) if r.closed[0].what == "model_call"));
    check_log(&client, &session).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn i4_i5_killed_while_a_tool_runs_its_processes_die_and_its_outcome_is_unknown() {
    let server = ModelServer::start(false).await.unwrap();
    let mut first = daemon(&server, YOLO).await;
    let client = first.client().await;
    let mark = format!("98765{}", std::process::id());
    let plan = format!("plan:t steps=1 command=setsid_sleep_{mark}_&_sleep_{mark};");
    let session = session(&first, &client, &plan).await;
    let mut follower = Follower::attach(&client, &session).await;
    follower
        .until("the start of the tool", |body| {
            matches!(body, EventBody::ToolStarted(_))
        })
        .await;
    let needle = format!("sleep\0{mark}");
    eventually("both commands run", || marked(&needle).len() >= 2).await;
    first.kill().await;
    eventually("I5: no command outlives the daemon", || {
        marked(&needle).is_empty()
    })
    .await;
    let second = first.restart(None).await;
    let client = second.client().await;
    let mut follower = Follower::attach(&client, &session).await;
    assert_eq!(follower.turn_finished(1).await.reason, EndReason::Completed);
    let log = check_log(&client, &session).await;
    let results: Vec<_> = log
        .iter()
        .filter_map(|event| match &event.body {
            EventBody::ToolFinished(done) => Some((done.outcome.status, done.outcome.outcome_unknown)),
            _ => None,
        })
        .collect();
    assert_eq!(results, [(ToolStatus::Interrupted, true)]);
    assert!(marked(&needle).is_empty(), "I4: it was not started again");
}

#[tokio::test(flavor = "multi_thread")]
async fn i1_killed_with_an_approval_open_it_can_still_be_answered() {
    let server = ModelServer::start(false).await.unwrap();
    let mut first = daemon(&server, ASKING).await;
    let client = first.client().await;
    let session = session(&first, &client, "plan:a steps=1 command=echo_{n}_>>_marks;").await;
    let mut follower = Follower::attach(&client, &session).await;
    follower
        .until("the question", |body| matches!(body, EventBody::ApprovalAsked(_)))
        .await;
    let before = follower.events.len();
    first.kill().await;
    let second = first.restart(None).await;
    let client = second.client().await;
    let row = client.get(&session).await.unwrap();
    assert_eq!(row.status.state, RunState::Waiting(WaitReason::Approval));
    assert_eq!(
        client.status().await.unwrap().hot,
        0,
        "a session that waits for a person stays cold"
    );
    let decide = DecideParams {
        approval: session.clone(),
        decision: Some(Decision::Allow),
        policy: true,
        ..DecideParams::default()
    };
    client.decide(&decide).await.unwrap();
    let again = client.decide(&decide).await.unwrap_err();
    assert!(
        ["conflict", "not_found"].contains(&class(&again).as_str()),
        "it is decided: {again}"
    );
    let mut follower = Follower::attach(&client, &session).await;
    assert_eq!(follower.turn_finished(1).await.reason, EndReason::Completed);
    let log = check_log(&client, &session).await;
    assert!(log.len() > before);
    assert_eq!(
        std::fs::read_to_string(format!("{}/marks", second.workdir("project"))).unwrap(),
        "0.0\n"
    );
}

fn class(error: &agentd_client::ClientError) -> String {
    let fault = agentd_protocol::Fault::from(error.clone());
    serde_json::to_value(fault.class)
        .unwrap()
        .as_str()
        .unwrap()
        .to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn i1_sigterm_drains_and_the_next_daemon_goes_on() {
    let server = ModelServer::start(false).await.unwrap();
    let mut first = daemon(&server, &format!("{YOLO}[node]\ndrain_timeout = \"1s\"\n")).await;
    let client = first.client().await;
    let session = session(&first, &client, "plan:d steps=2 hang=1 hangs=1;").await;
    Follower::attach(&client, &session)
        .await
        .until_text("Thinking")
        .await;
    first.terminate();
    assert_eq!(first.ended().await.code(), Some(0), "{}", first.said());
    let second = first.restart(None).await;
    let client = second.client().await;
    let mut follower = Follower::attach(&client, &session).await;
    assert_eq!(follower.turn_finished(1).await.reason, EndReason::Completed);
    check_log(&client, &session).await;
}
