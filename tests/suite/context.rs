//! Long conversations, end to end: the window never overflows, requests keep their shape, and nothing is lost.

use agentd_client::Client;
use agentd_protocol::{
    Block, CompactionCause, CreateParams, EndReason, Event, EventBody, RunState, SendParams,
};
use agentd_tests::fault_server::Say;
use agentd_tests::window_server::{Counting, Plan, WindowServer};
use agentd_tests::{Daemon, DaemonOptions, Follower, check_log, within};
use serde_json::{Value, json};

/// Tokens of the window that the servers enforce.
const WINDOW: u64 = 32_768;

/// Another part of the file at each step, so that no guard detects a loop.
fn some_lines(step: u64) -> Say {
    let part =
        json!({"file_path": "big.txt", "offset": 1 + step * 37 % 11_000, "limit": 10 + step * 13 % 50});
    Say::call("Read", part)
}

fn plan(steps: u64) -> Plan {
    Plan {
        window: WINDOW,
        steps,
        says: some_lines,
        summarises: true,
        counting: Counting::Never,
    }
}

async fn daemon(server: &WindowServer, config: &str) -> Daemon {
    let url = server.url();
    let daemon = Daemon::start(DaemonOptions {
        config: format!(
            "[model]\ndefault = \"local\"\n[permission]\nmode = \"yolo\"\n[loop]\nturn_cap = 2500\n\
             [retry]\nmax_retries = 1\nbase_ms = 10\n\
             [providers.local]\ndialect = \"openai-chat\"\nbase_url = \"{url}/v1\"\n{config}"
        ),
        ..DaemonOptions::default()
    })
    .await;
    let lines = (0..12_000).map(|n| format!("line {n}: some words that stand for a program's text\n"));
    let file = std::path::Path::new(&daemon.workdir("project")).join("big.txt");
    std::fs::write(file, lines.collect::<String>()).unwrap();
    daemon
}

/// The model as its operator describes it.
const DESCRIBED: &str =
    "[models.local]\nprovider = \"local\"\nmodel = \"m\"\ncontext_window = 32768\nmax_output = 4096\n";
/// No setting names the size of its window.
const UNKNOWN: &str = "[models.local]\nprovider = \"local\"\nmodel = \"m\"\nmax_output = 4096\n";

async fn begin(daemon: &Daemon, client: &Client) -> (String, Follower) {
    let params = CreateParams {
        prompt: Some(vec![Block::text("Read the whole file, whatever it takes.")]),
        workdir: daemon.workdir("project"),
        ..CreateParams::default()
    };
    let session = client.create(&params).await.unwrap().session.to_string();
    let follower = Follower::attach(client, &session).await;
    (session, follower)
}

fn count(events: &[Event], wanted: impl Fn(&EventBody) -> bool) -> u64 {
    events.iter().filter(|event| wanted(&event.body)).count() as u64
}

fn compactions(events: &[Event]) -> u64 {
    count(events, |body| matches!(body, EventBody::ContextCompacted(_)))
}

#[tokio::test(flavor = "multi_thread")]
async fn i3_two_thousand_steps_fit_into_a_window_that_is_enforced() {
    let _heavy = agentd_tests::Heavy::begin().await;
    let server = WindowServer::start(plan(2_000), false).await;
    let daemon = daemon(&server, DESCRIBED).await;
    let client = daemon.client().await;
    let (session, mut follower) = begin(&daemon, &client).await;
    let end = follower.turn_finished(1).await;
    let seen = server.log();
    assert_eq!(
        (end.reason, end.steps),
        (EndReason::Completed, 2_001),
        "{:?}",
        end.error
    );
    assert_eq!(seen.refused, Vec::<String>::new());
    assert_eq!(seen.overflows, (0, 0), "the window was never overrun");
    let events = check_log(&client, &session).await;
    let most = 1 + seen.appended * 10 / (WINDOW * 4);
    let done = compactions(&events);
    assert!(
        (1..=most).contains(&done),
        "{done} compactions, {most} allowed: {}",
        seen.appended
    );
    assert_eq!(
        count(&events, |body| matches!(body, EventBody::ModelFailed(_))),
        0
    );
    let by_model = count(
        &events,
        |body| matches!(body, EventBody::ContextCompacted(one) if one.summarised_by.is_some() && one.usage.is_some()),
    );
    assert_eq!(by_model, done, "the model wrote each summary");
    let body: Value = serde_json::from_slice(seen.bodies.last().unwrap()).unwrap();
    let first = body["messages"][1]["content"].to_string();
    assert!(
        first.contains("Read the whole file, whatever it takes."),
        "{first}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn i3_a_window_that_nobody_named_is_learned_from_its_first_refusal() {
    let server = WindowServer::start(plan(150), false).await;
    let daemon = daemon(&server, UNKNOWN).await;
    let client = daemon.client().await;
    let (session, mut follower) = begin(&daemon, &client).await;
    let end = follower.turn_finished(1).await;
    let seen = server.log();
    assert_eq!(end.reason, EndReason::Completed, "{:?}", end.error);
    assert_eq!((seen.refused, seen.overflows), (Vec::new(), (1, 0)));
    let events = check_log(&client, &session).await;
    assert!(compactions(&events) <= 1 + seen.appended * 10 / (WINDOW * 4));
    let causes: Vec<CompactionCause> = events
        .iter()
        .filter_map(|event| match &event.body {
            EventBody::ContextCompacted(compacted) => Some(compacted.cause),
            _ => None,
        })
        .collect();
    assert_eq!(
        causes[..2],
        [CompactionCause::Overflow, CompactionCause::Threshold]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn where_no_model_writes_a_summary_one_is_made_without() {
    let plan = Plan {
        summarises: false,
        ..plan(120)
    };
    let server = WindowServer::start(plan, false).await;
    let daemon = daemon(&server, DESCRIBED).await;
    let client = daemon.client().await;
    let (session, mut follower) = begin(&daemon, &client).await;
    let end = follower.turn_finished(1).await;
    assert_eq!(end.reason, EndReason::Completed, "{:?}", end.error);
    let seen = server.log();
    assert_eq!((seen.refused, seen.overflows), (Vec::new(), (0, 0)));
    let events = check_log(&client, &session).await;
    let made = events.iter().find_map(|event| match &event.body {
        EventBody::ContextCompacted(compacted) => Some(compacted.clone()),
        _ => None,
    });
    let made = made.expect("it was compacted");
    assert_eq!(made.summarised_by, None);
    assert!(made.summary.contains("## What was done\n"), "{}", made.summary);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_compacts_a_session_and_sees_what_is_in_the_window() {
    let server = WindowServer::start(plan(25), true).await;
    let daemon = daemon(&server, DESCRIBED).await;
    let client = daemon.client().await;
    let (session, mut follower) = begin(&daemon, &client).await;
    follower.turn_finished(1).await;
    let shown = daemon
        .agentctl(&["show", "--context", &session, "-o", "json"])
        .await;
    assert_eq!(shown.code, Some(0), "{}", shown.stderr);
    let before: Value = serde_json::from_str(&shown.stdout).unwrap();
    assert_eq!(
        (&before["window"], &before["counted"]),
        (&json!(WINDOW), &json!(true))
    );
    let done = daemon.agentctl(&["compact", &session]).await;
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    assert!(done.stdout.starts_with("compacted (manual): "), "{}", done.stdout);
    let shown = daemon.agentctl(&["show", "--context", &session]).await;
    assert!(shown.stdout.contains("summary"), "{}", shown.stdout);
    let again = daemon
        .agentctl(&["show", "--context", &session, "-o", "json"])
        .await;
    let after: Value = serde_json::from_str(&again.stdout).unwrap();
    assert!(after["tokens"].as_u64() < before["tokens"].as_u64(), "{after}");
    // The next turn begins with the summary, in a shape that strict templates accept.
    let params = SendParams {
        session: session.clone(),
        content: vec![Block::text("And what does it say?")],
        ..SendParams::default()
    };
    client.send(&params).await.unwrap();
    let end = follower.turn_finished(2).await;
    assert_eq!(end.reason, EndReason::Completed, "{:?}", end.error);
    let seen = server.log();
    assert_eq!((seen.refused, seen.summaries), (Vec::new(), 1));
    let last = String::from_utf8_lossy(seen.bodies.last().unwrap()).into_owned();
    assert!(last.contains("[agentd] The beginning of this conversation was replaced"));
    let kept = daemon.agentctl(&["compact", &session]).await;
    assert!(
        kept.stdout.starts_with("not compacted: ") || kept.stdout.starts_with("compacted"),
        "{}",
        kept.stdout
    );
    check_log(&client, &session).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_compacted_is_the_same_after_a_crash() {
    let server = WindowServer::start(plan(60), true).await;
    let mut first = daemon(&server, DESCRIBED).await;
    let client = first.client().await;
    let (session, mut follower) = begin(&first, &client).await;
    let end = follower.turn_finished(1).await;
    assert_eq!(end.reason, EndReason::Completed, "{:?}", end.error);
    first.kill().await;
    let before = server.log();
    let second = first.restart(None).await;
    let client = second.client().await;
    let params = SendParams {
        session: session.clone(),
        content: vec![Block::text("Once more.")],
        ..SendParams::default()
    };
    client.send(&params).await.unwrap();
    let mut follower = Follower::attach(&client, &session).await;
    follower.turn_finished(2).await;
    let seen = server.log();
    assert_eq!(seen.refused, Vec::<String>::new());
    let messages = |body: &bytes::Bytes| {
        let body: Value = serde_json::from_slice(body).unwrap();
        body["messages"].as_array().unwrap().clone()
    };
    let (then, now) = (
        messages(before.bodies.last().unwrap()),
        messages(seen.bodies.last().unwrap()),
    );
    assert!(compactions(&check_log(&client, &session).await) >= 1);
    assert_eq!(now[..then.len()], then[..], "the same bytes from the same log");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_limit_on_messages_keeps_the_task_and_the_pairs() {
    let server = WindowServer::start(plan(60), true).await;
    let config = format!("[context]\nmax_messages = 30\n{DESCRIBED}");
    let daemon = daemon(&server, &config).await;
    let client = daemon.client().await;
    let (session, mut follower) = begin(&daemon, &client).await;
    let end = follower.turn_finished(1).await;
    assert_eq!(end.reason, EndReason::Completed, "{:?}", end.error);
    let seen = server.log();
    assert_eq!(seen.refused, Vec::<String>::new());
    for body in &seen.bodies {
        let body: Value = serde_json::from_slice(body).unwrap();
        let messages = body["messages"].as_array().unwrap();
        assert!(messages.len() <= 31, "{} with the system prompt", messages.len());
        assert!(
            messages[1]
                .to_string()
                .contains("Read the whole file, whatever it takes.")
        );
    }
    let events = check_log(&client, &session).await;
    assert!(count(&events, |body| matches!(body, EventBody::ContextTrimmed(_))) >= 2);
    let row = within("the row", client.get(&session)).await.unwrap();
    assert_eq!(row.status.state, RunState::Idle);
}
