//! Failing model servers, end to end: the session continues, or its turn ends with the right class and exit code.

use agentd_bench::model_server::ModelServer;
use agentd_protocol::{
    Block, CreateParams, EndReason, EventBody, FailureClass, ModelFailed, ResumeParams, RunState,
    TurnFinished, WaitReason,
};
use agentd_provider::Dialect;
use agentd_tests::fault_server::{Act, Acts, Asked, FaultServer, Say, Speech, html, http};
use agentd_tests::{Daemon, DaemonOptions, Follower, check_log, found};
use std::time::Duration;

const SPEECH: Speech = Speech(Dialect::Anthropic);
/// Quick retries, but long deadlines: a loaded machine must not look like a fault.
const QUICK: &str = "[retry]\nmax_retries = 3\nbase_ms = 10\ncap_ms = 50\nfirst_byte_ms = 40000\nidle_ms = 40000\ntotal_ms = 60000\n\
                     [scheduler]\ncircuit_ms = 20\ncircuit_cap_ms = 50\n";
/// For faults that only a deadline ends.
const HASTY: &str = "[retry]\nmax_retries = 3\nbase_ms = 10\ncap_ms = 50\nfirst_byte_ms = 10000\nidle_ms = 10000\ntotal_ms = 60000\n\
                     [scheduler]\ncircuit_ms = 20\ncircuit_cap_ms = 50\n";

async fn daemon(server: &FaultServer, config: &str) -> Daemon {
    Daemon::start(DaemonOptions {
        model_url: Some(server.url()),
        config: format!("[model]\ndefault = \"claude\"\n[permission]\nmode = \"yolo\"\n{config}"),
        ..DaemonOptions::default()
    })
    .await
}

fn good() -> Say {
    Say::text("It is done.")
}

/// A server whose first requests hit these faults, and all others get a good answer.
async fn faults_first(faults: Vec<Acts>) -> FaultServer {
    FaultServer::start(move |asked: &Asked| {
        let n = usize::try_from(asked.number).unwrap();
        faults.get(n).cloned().unwrap_or_else(|| SPEECH.answer(&good()))
    })
    .await
}

/// A server that always gives the same response.
async fn always(acts: Acts) -> FaultServer {
    FaultServer::start(move |_| acts.clone()).await
}

fn broken_after(frames: usize, fault: Act) -> Acts {
    let mut acts = SPEECH.answer(&good());
    acts.truncate(1 + frames);
    acts.push(fault);
    acts
}

/// One session to the end of its turn; returns the failures of its attempts.
async fn turn(daemon: &Daemon) -> (TurnFinished, Vec<ModelFailed>) {
    let client = daemon.client().await;
    let session = crate::session(daemon, &client, "Do it.").await;
    let mut follower = Follower::attach(&client, &session).await;
    let end = follower.turn_finished(1).await;
    let log = check_log(&client, &session).await;
    let failures = log.into_iter().filter_map(|event| match event.body {
        EventBody::ModelFailed(failure) => Some(failure),
        _ => None,
    });
    (end, failures.collect())
}

/// Each of these faults happens once; the turn must continue after it.
async fn goes_on_after(faults: Vec<Acts>, class: FailureClass) {
    goes_on_within(faults, class, QUICK).await;
}

async fn goes_on_within(faults: Vec<Acts>, class: FailureClass, deadlines: &str) {
    let count = faults.len();
    let server = faults_first(faults).await;
    let (end, failures) = turn(&daemon(&server, deadlines).await).await;
    assert_eq!(
        (end.reason, end.text.as_str()),
        (EndReason::Completed, "It is done."),
        "{failures:?}"
    );
    let classes: Vec<_> = failures.iter().map(|failure| failure.class).collect();
    assert_eq!(classes, vec![class; count], "{failures:?}");
    assert!(
        failures.iter().all(|failure| failure.retry_at.is_some()),
        "{failures:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_goes_on_after_resets_at_different_moments() {
    let faults = vec![
        vec![Act::Reset],
        broken_after(1, Act::Reset),
        broken_after(4, Act::Reset),
    ];
    goes_on_after(faults, FailureClass::Transient).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_goes_on_after_stalls() {
    let faults = vec![vec![Act::Stall], broken_after(3, Act::Stall)];
    goes_on_within(faults, FailureClass::Transient, HASTY).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_goes_on_after_half_closed_sockets_and_missing_ends() {
    let faults = vec![
        vec![Act::HalfClose],
        broken_after(5, Act::HalfClose),
        broken_after(2, Act::Say(bytes::Bytes::new())),
    ];
    goes_on_after(faults, FailureClass::Transient).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_goes_on_after_garbage() {
    let mut inside = SPEECH.answer(&good());
    inside.insert(3, Act::say("data: {not json\n\n"));
    let faults = vec![vec![Act::say("SSH-2.0-OpenSSH_9.9\r\n")], vec![html(200)], inside];
    goes_on_after(faults, FailureClass::Transient).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_goes_on_after_overload_before_and_inside_a_stream() {
    let error = "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n";
    let faults = vec![
        vec![http(529, &[], "")],
        vec![http(503, &[], "")],
        broken_after(4, Act::say(error)),
    ];
    goes_on_after(faults, FailureClass::Overloaded).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_goes_on_after_rate_limits_whose_wait_is_short() {
    let limited = |ms: &str| vec![http(429, &[("retry-after-ms", ms)], "")];
    goes_on_after(vec![limited("30"), limited("200")], FailureClass::RateLimited).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_ends_when_its_retries_are_used_up_and_the_command_says_so() {
    let server = always(vec![http(500, &[], "broken")]).await;
    let daemon = daemon(&server, QUICK).await;
    let (end, failures) = turn(&daemon).await;
    assert_eq!(end.reason, EndReason::ModelError);
    assert_eq!(
        end.error.map(|error| error.class).as_deref(),
        Some("transient"),
        "{failures:?}"
    );
    assert_eq!(
        failures.len(),
        4,
        "the first attempt and three retries: {failures:?}"
    );
    assert_eq!(failures.last().and_then(|last| last.retry_at), None);
    let workdir = daemon.workdir("command");
    let run = daemon
        .agentctl(&["run", "-C", &workdir, "-o", "json", "Do it."])
        .await;
    assert_eq!(run.code, Some(6), "{} {}", run.stdout, run.stderr);
    let said: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(
        said.pointer("/error/class").and_then(|class| class.as_str()),
        Some("transient"),
        "{said}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bad_request_ends_the_turn_at_once() {
    let body = r#"{"type":"error","error":{"type":"invalid_request_error","message":"messages.0: no"}}"#;
    let server = always(vec![http(400, &[], body)]).await;
    let (end, failures) = turn(&daemon(&server, QUICK).await).await;
    assert_eq!(end.reason, EndReason::ModelError);
    let error = end.error.unwrap();
    assert_eq!(error.class, "invalid_request");
    assert!(error.message.contains("messages.0: no"), "{}", error.message);
    assert_eq!((failures.len(), server.seen().requests), (1, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_conversation_that_is_always_too_long_ends_with_a_clear_reason() {
    let body = r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 213462 tokens > 200000 maximum"}}"#;
    let server = always(vec![http(400, &[], body)]).await;
    let (end, failures) = turn(&daemon(&server, QUICK).await).await;
    assert_eq!(end.reason, EndReason::ContextOverflow, "{failures:?}");
    assert!(
        failures
            .iter()
            .all(|failure| failure.class == FailureClass::ContextOverflow)
    );
    assert!(server.seen().requests <= 8, "{:?}", server.seen());
}

/// A session that must wait for a person or for time, cold and without a permit.
async fn parks(acts: Acts, reason: WaitReason) {
    let server = faults_first(vec![acts]).await;
    let mut daemon = daemon(&server, QUICK).await;
    let client = daemon.client().await;
    let session = crate::session(&daemon, &client, "Do it.").await;
    let mut follower = Follower::attach(&client, &session).await;
    let failed = follower
        .until("the failure", |body| matches!(body, EventBody::ModelFailed(_)))
        .await;
    assert!(
        matches!(&failed.body, EventBody::ModelFailed(failure) if failure.retry_at.is_some()),
        "it is parked, not given up: {failed:?}"
    );
    let cold = async || (client.status().await.unwrap().hot == 0).then_some(());
    found("the parked session is cold", cold).await;
    let row = client.get(&session).await.unwrap();
    assert_eq!(row.status.state, RunState::Waiting(reason), "{:?}", row.status);
    server
        .until("it holds no connection", |seen| seen.open == 0)
        .await;
    // A person fixes it, starts the daemon again and resumes the session: the same turn continues.
    daemon.terminate();
    assert_eq!(daemon.ended().await.code(), Some(0), "{}", daemon.said());
    let daemon = daemon.restart(None).await;
    let client = daemon.client().await;
    // A daemon that starts reads the logs of the turns that are open.
    let parked = async || {
        let state = client.get(&session).await.unwrap().status.state;
        (state == RunState::Waiting(reason)).then_some(())
    };
    found("it is parked again", parked).await;
    let go_on = ResumeParams {
        session: session.clone(),
        ..ResumeParams::default()
    };
    client.resume(&go_on).await.unwrap();
    let mut follower = Follower::attach(&client, &session).await;
    let end = follower.turn_finished(1).await;
    assert_eq!(
        (end.reason, end.text.as_str()),
        (EndReason::Completed, "It is done.")
    );
    check_log(&client, &session).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_key_parks_the_session_over_a_restart_until_somebody_says_go_on() {
    parks(vec![http(401, &[], "")], WaitReason::Credentials).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_used_up_quota_parks_the_session_over_a_restart_until_somebody_says_go_on() {
    parks(vec![http(402, &[], "")], WaitReason::Quota).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_wait_parks_the_session_over_a_restart_until_somebody_says_go_on() {
    parks(
        vec![http(429, &[("retry-after", "3600")], "")],
        WaitReason::RateLimit,
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_that_is_down_for_long_parks_the_session_and_is_named_as_the_cause() {
    parks(
        vec![http(503, &[("retry-after", "3600")], "")],
        WaitReason::Provider,
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_model_takes_over_when_the_first_is_down() {
    let down = always(vec![http(503, &[], "")]).await;
    let up = ModelServer::start(false).await.unwrap();
    let config = format!(
        r#"{QUICK}
[providers.up]
dialect = "openai-chat"
base_url = "{}/v1"
credentials = [{{ name = "main", env = "AGENTD_TEST_KEY" }}]
[models.second]
provider = "up"
model = "second-test"
[models.first]
provider = "test-anthropic"
model = "claude-test"
fallbacks = ["second"]
"#,
        up.url()
    );
    let daemon = daemon(&down, &config).await;
    let client = daemon.client().await;
    let params = CreateParams {
        prompt: Some(vec![Block::text("plan:second steps=1;")]),
        workdir: daemon.workdir("project"),
        model: Some("first".to_owned()),
        ..CreateParams::default()
    };
    let session = client.create(&params).await.unwrap().session.to_string();
    let mut follower = Follower::attach(&client, &session).await;
    let end = follower.turn_finished(1).await;
    assert_eq!(
        (end.reason, end.text.as_str()),
        (EndReason::Completed, "All done.")
    );
    let asked: Vec<_> = follower
        .events
        .iter()
        .filter_map(|event| match &event.body {
            EventBody::ModelStarted(started) => Some(started.model.clone()),
            _ => None,
        })
        .collect();
    assert!(
        asked.iter().any(|model| model == "claude-test")
            && asked.last().is_some_and(|model| model == "second-test"),
        "{asked:?}"
    );
    check_log(&client, &session).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn i6_one_server_that_floods_does_not_slow_the_sessions_of_another() {
    let flood = always(vec![
        SPEECH.head(),
        Act::ForEver(": flood\n\n".repeat(4_096).into(), Duration::ZERO),
    ])
    .await;
    let up = ModelServer::start(false).await.unwrap();
    let config = format!(
        r#"{QUICK}
[providers.up]
dialect = "anthropic"
base_url = "{}"
credentials = [{{ name = "main", env = "AGENTD_TEST_KEY" }}]
[models.well]
provider = "up"
model = "well-test"
"#,
        up.url()
    );
    let daemon = daemon(&flood, &config).await;
    let client = daemon.client().await;
    for _ in 0..8 {
        crate::session(&daemon, &client, "Read the flood.").await;
    }
    flood.until("the flood runs", |seen| seen.sent > (1 << 20)).await;
    let params = CreateParams {
        prompt: Some(vec![Block::text("plan:well steps=5 command=true;")]),
        workdir: daemon.workdir("well"),
        model: Some("well".to_owned()),
        ..CreateParams::default()
    };
    let session = client.create(&params).await.unwrap().session.to_string();
    let mut follower = Follower::attach(&client, &session).await;
    assert_eq!(follower.turn_finished(1).await.reason, EndReason::Completed);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_parked_session_goes_on_at_a_word_also_without_a_restart() {
    for acts in [
        vec![http(401, &[], "")],
        vec![http(402, &[], "")],
        vec![http(429, &[("retry-after", "3600")], "")],
    ] {
        let server = faults_first(vec![acts]).await;
        let daemon = daemon(&server, QUICK).await;
        let client = daemon.client().await;
        let session = crate::session(&daemon, &client, "Do it.").await;
        let mut follower = Follower::attach(&client, &session).await;
        follower
            .until("the failure", |body| matches!(body, EventBody::ModelFailed(_)))
            .await;
        let go_on = ResumeParams {
            session: session.clone(),
            ..ResumeParams::default()
        };
        client.resume(&go_on).await.unwrap();
        let end = follower.turn_finished(1).await;
        assert_eq!(
            (end.reason, end.text.as_str()),
            (EndReason::Completed, "It is done.")
        );
        assert_eq!(server.seen().requests, 2, "one failure, one answer");
    }
}
