//! Side calls to models outside the conversation, end to end: titles, summaries, intents, counts; and that the bytes of the
//! conversation's requests do not change because of them.

use agentd_client::Client;
use agentd_protocol::{
    Block, CreateParams, Delivery, EndReason, Event, EventBody, IntentSource, NoteKind, PermissionMode,
    SendParams, SidePurpose, UpdateParams, Usage,
};
use agentd_tests::fault_server::Say;
use agentd_tests::window_server::{Counting, Plan, WindowServer};
use agentd_tests::{Daemon, DaemonOptions, Follower, check_log, within};
use serde_json::{Value, json};

const SIDE: &str = "[side_calls]\nmodel = \"local\"\nsummaries = true\n";

async fn daemon(server: &WindowServer, window: u64, config: &str) -> Daemon {
    let url = server.url();
    let daemon = Daemon::start(DaemonOptions {
        config: format!(
            "[model]\ndefault = \"local\"\n[permission]\nmode = \"yolo\"\n\
             [providers.local]\ndialect = \"openai-chat\"\nbase_url = \"{url}/v1\"\n\
             [models.local]\nprovider = \"local\"\nmodel = \"m\"\ncontext_window = {window}\nmax_output = 4096\n{config}"
        ),
        ..DaemonOptions::default()
    })
    .await;
    let lines = (0..12_000).map(|n| format!("line {n}: some words that stand for a program's text\n"));
    let file = std::path::Path::new(&daemon.workdir("project")).join("big.txt");
    std::fs::write(file, lines.collect::<String>()).unwrap();
    daemon
}

async fn begin(daemon: &Daemon, client: &Client, title: Option<&str>, words: &str) -> (String, Follower) {
    let params = CreateParams {
        prompt: Some(vec![Block::text(words)]),
        workdir: daemon.workdir("project"),
        title: title.map(str::to_owned),
        ..CreateParams::default()
    };
    let session = client.create(&params).await.unwrap().session.to_string();
    let follower = Follower::attach(client, &session).await;
    (session, follower)
}

fn plan(steps: u64, says: fn(u64) -> Say, counting: Counting) -> Plan {
    Plan {
        window: 1_000_000,
        steps,
        says,
        summarises: true,
        counting,
    }
}

fn some_lines(step: u64) -> Say {
    let part =
        json!({"file_path": "big.txt", "offset": 1 + step * 37 % 11_000, "limit": 10 + step * 13 % 50});
    Say::call("Read", part)
}

/// Each feature that adds to the conversation has its own steps.
fn everything(step: u64) -> Say {
    let todo = |status| json!({"todos": [{"content": "read it", "status": status}]});
    let steps = json!({"steps": [{"title": "read", "check": "it is read"}, {"title": "tell", "check": "it is told"}]});
    match step {
        1 => Say::call("Plan", steps),
        2 => Say::call("TodoWrite", todo("in_progress")),
        5 => Say::call("Plan", json!({"done": 1, "evidence": "it was read"})),
        8 => Say::call("Bash", json!({"command": "echo one; exit 3"})),
        9..=12 => Say::call("Read", json!({"file_path": format!("missing-{step}.txt")})),
        20 => Say::call("TodoWrite", todo("completed")),
        30 => Say::text("Let me look at the rest:"),
        step => some_lines(step),
    }
}

async fn side_call(follower: &mut Follower, purpose: SidePurpose) -> Event {
    let wanted =
        |body: &EventBody| matches!(body, EventBody::SideCallFinished(one) if one.purpose == purpose);
    follower.until(purpose.as_str(), wanted).await
}

/// Plans, lists, labels, changed settings, side calls, and notes of all kinds.
fn all_happened(events: &[Event]) {
    let kinds: Vec<&str> = events.iter().map(|event| event.body.kind()).collect();
    for kind in [
        "plan.updated",
        "todo.updated",
        "intent.classified",
        "session.updated",
        "side_call.finished",
    ] {
        assert!(kinds.contains(&kind), "no {kind}");
    }
    let notes: Vec<NoteKind> = events
        .iter()
        .filter_map(|event| match &event.body {
            EventBody::NoteInjected(note) => Some(note.kind),
            _ => None,
        })
        .collect();
    for note in [NoteKind::PlanReminder, NoteKind::Guard, NoteKind::IntentNudge] {
        assert!(notes.contains(&note), "no {note:?} among {notes:?}");
    }
}

/// Each request is the previous one with something added in one place.
fn only_added(bodies: &[impl AsRef<[u8]>]) {
    for (n, pair) in bodies.windows(2).enumerate() {
        let (before, after) = (pair.first().unwrap().as_ref(), pair.last().unwrap().as_ref());
        let same = before.iter().zip(after).take_while(|(a, b)| a == b).count();
        let ends = before.iter().rev().zip(after.iter().rev());
        let end = ends.take_while(|(a, b)| a == b).count();
        assert!(
            same + end >= before.len(),
            "request {n} is not the one before with something added"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_prefix_is_the_same_bytes_over_fifty_steps_with_everything_on() {
    let server = WindowServer::start(plan(60, everything, Counting::Exactly), true).await;
    let config = format!("[loop]\nplanning = true\nintent_gate = true\non_limit = \"stop\"\n{SIDE}");
    let daemon = daemon(&server, 400_000, &config).await;
    let client = daemon.client().await;
    let (session, mut follower) = begin(&daemon, &client, None, "the whole of it").await;
    let step = |wanted: u32| move |body: &EventBody| matches!(body, EventBody::ModelStarted(one) if one.step >= wanted);
    follower.until("step 15", step(15)).await;
    for mode in [PermissionMode::AcceptEdits, PermissionMode::Yolo] {
        let params = UpdateParams {
            session: session.clone(),
            mode: Some(mode),
            ..UpdateParams::default()
        };
        client.update(&params).await.unwrap();
    }
    let steer = SendParams {
        session: session.clone(),
        content: vec![Block::text("And mind the end of it.")],
        delivery: Some(Delivery::Steer),
        ..SendParams::default()
    };
    client.send(&steer).await.unwrap();
    let end = follower.turn_finished(1).await;
    assert_eq!(end.reason, EndReason::Completed, "{:?}", end.error);
    side_call(&mut follower, SidePurpose::Title).await;
    side_call(&mut follower, SidePurpose::Summary).await;
    let params = UpdateParams {
        session: session.clone(),
        mode: Some(PermissionMode::Plan),
        ..UpdateParams::default()
    };
    client.update(&params).await.unwrap();
    let more = SendParams {
        session: session.clone(),
        content: vec![Block::text("Once more, whatever.")],
        ..SendParams::default()
    };
    client.send(&more).await.unwrap();
    follower.turn_finished(2).await;
    let events = check_log(&client, &session).await;
    let seen = server.log();
    assert_eq!(seen.refused, Vec::<String>::new());
    all_happened(&events);
    assert!(seen.beside.len() >= 4, "{} side calls", seen.beside.len());
    assert!(seen.bodies.len() > 50, "{} requests", seen.bodies.len());
    only_added(&seen.bodies);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_gets_its_title_its_summary_and_its_label_from_a_model_and_pays_for_them() {
    let server = WindowServer::start(plan(2, some_lines, Counting::Never), true).await;
    let able = "[models.local.capabilities]\nstructured_output = true\n";
    let config = format!("{able}[loop]\nplanning = true\nintent_gate = true\n{SIDE}");
    let daemon = daemon(&server, 400_000, &config).await;
    let client = daemon.client().await;
    let (session, mut follower) = begin(&daemon, &client, None, "the whole of it").await;
    follower.turn_finished(1).await;
    side_call(&mut follower, SidePurpose::Title).await;
    side_call(&mut follower, SidePurpose::Summary).await;
    let row = within("the row", client.get(&session)).await.unwrap();
    assert_eq!(row.name, "The big file");
    assert_eq!(
        row.summary.as_deref(),
        Some("The file was read. Nothing is open.")
    );
    let events = check_log(&client, &session).await;
    let mut spent = Usage::default();
    for event in &events {
        match &event.body {
            EventBody::ModelFinished(one) => spent = spent.plus(one.usage),
            EventBody::SideCallFinished(one) => spent = spent.plus(one.usage),
            EventBody::IntentClassified(one) => {
                assert_eq!(
                    (one.source, one.reason.as_str()),
                    (IntentSource::Model, "a file is to be read")
                );
            }
            _ => {}
        }
    }
    assert_eq!(row.usage, spent, "side calls are charged");
    // A model that supports schemas gets the schema of the one answer that has one.
    for asked in server.log().beside {
        let body: Value = serde_json::from_str(&asked).unwrap();
        let sorted = asked.contains("You sort what a person says");
        let strict = body.pointer("/response_format/json_schema/strict");
        assert_eq!(strict, sorted.then_some(&Value::Bool(true)), "{asked}");
    }
    // People see it.
    let shown = daemon.agentctl(&["show", "The big file"]).await;
    assert!(
        shown.stdout.contains("The file was read."),
        "{}{}",
        shown.stdout,
        shown.stderr
    );
    let logs = daemon.agentctl(&["logs", &session]).await;
    assert_eq!(logs.code, Some(0), "{}", logs.stderr);
    // A name given by a person stays.
    let (_, mut named) = begin(&daemon, &client, Some("mine"), "the rest of it").await;
    named.turn_finished(1).await;
    side_call(&mut named, SidePurpose::Summary).await;
    let titled = |event: &Event| matches!(&event.body, EventBody::SideCallFinished(one) if one.purpose == SidePurpose::Title);
    assert!(!named.events.iter().any(titled));
    let row = within("the row", client.get("mine")).await.unwrap();
    assert_eq!(row.name, "mine");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_summary_is_written_on_demand_and_without_a_model_it_says_why_not() {
    let server = WindowServer::start(plan(1, some_lines, Counting::Never), true).await;
    let config = "[side_calls]\nmodel = \"session\"\ntitles = false\n";
    let with = daemon(&server, 400_000, config).await;
    let client = with.client().await;
    let (session, mut follower) = begin(&with, &client, None, "the whole of it").await;
    follower.turn_finished(1).await;
    let done = with
        .agentctl(&["show", "--summary", &session, "-o", "json"])
        .await;
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    let shown: Value = serde_json::from_str(&done.stdout).unwrap();
    assert_eq!(shown["summary"], "The file was read. Nothing is open.");
    assert_eq!(shown["name"], "the whole of it");

    let without = daemon(&server, 400_000, "").await;
    let client = without.client().await;
    let (session, mut follower) = begin(&without, &client, None, "the whole of it").await;
    follower.turn_finished(1).await;
    let done = without.agentctl(&["show", "--summary", &session]).await;
    assert_eq!(done.code, Some(5), "{}", done.stdout);
    assert!(done.stderr.contains("side_calls.model"), "{}", done.stderr);
}

/// The number of counts that the provider was asked to make, and the steps, on a server whose window is enforced.
async fn read_much(counting: Counting, config: &str) -> (u64, Vec<Event>, (u64, u64)) {
    const WINDOW: u64 = 32_768;
    let steps = 70;
    let plan = Plan {
        window: WINDOW,
        ..plan(steps, some_lines, counting)
    };
    let server = WindowServer::start(plan, false).await;
    let daemon = daemon(&server, WINDOW, config).await;
    let client = daemon.client().await;
    let (session, mut follower) = begin(&daemon, &client, None, "Read the whole file.").await;
    let end = follower.turn_finished(1).await;
    assert_eq!(end.reason, EndReason::Completed, "{:?}", end.error);
    let seen = server.log();
    assert_eq!(
        seen.refused,
        Vec::<String>::new(),
        "what is counted has the form of a request"
    );
    (seen.counts, check_log(&client, &session).await, seen.overflows)
}

fn compactions(events: &[Event]) -> usize {
    let found = events
        .iter()
        .filter(|event| matches!(event.body, EventBody::ContextCompacted(_)));
    found.count()
}

#[tokio::test(flavor = "multi_thread")]
async fn i6_near_the_line_the_provider_counts_and_one_that_cannot_is_left_alone() {
    let (counts, events, overflows) = read_much(Counting::Exactly, "").await;
    let compacted = compactions(&events);
    assert!(compacted >= 1, "it became long");
    assert!((1..=24).contains(&counts), "{counts} counts in 71 steps");
    assert_eq!(overflows, (0, 0));

    let (counts, events, overflows) = read_much(Counting::Never, "").await;
    assert!(compactions(&events) >= 1);
    assert_eq!(
        (counts, overflows),
        (1, (0, 0)),
        "its server does not know how, so it is asked once"
    );

    let (counts, events, _) = read_much(Counting::Garbage, "").await;
    assert!(compactions(&events) >= 1);
    assert!((1..=3).contains(&counts), "{counts}: three failures are enough");

    let (counts, events, _) = read_much(Counting::Hangs, "[context]\ncount_timeout_ms = 300\n").await;
    assert!(compactions(&events) >= 1);
    assert!((1..=3).contains(&counts), "{counts}");

    let (counts, events, _) = read_much(Counting::Exactly, "[context]\ncount_margin = 0.0\n").await;
    assert!(compactions(&events) >= 1);
    assert_eq!(counts, 0, "the operator does not want it");
}
