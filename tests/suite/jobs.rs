//! Background commands, as a person and an agent use them, at each level of the sandbox.

use crate::YOLO;
use crate::played::{daemon, daemon_at, model, results, session};
use agentd_client::Client;
use agentd_protocol::{Block, EndReason, Event, EventBody, JobFinished, LifecycleParams, SendParams};
use agentd_tests::fault_server::{FaultServer, Say};
use agentd_tests::{Daemon, Follower, check_log, eventually, marked};
use serde_json::{Value, json};
use std::process::Stdio;
use tokio::io::{AsyncBufReadExt as _, BufReader};

const LEVELS: [&str; 3] = ["none", "confined", "isolated"];

/// A number that only this test's processes sleep for.
fn mark(test: u32) -> String {
    format!("{test}{}", 100_000 + std::process::id())
}

/// Starts a job that has left its session and its parent and does not want to end.
async fn stubborn(mark: &str) -> FaultServer {
    let command = format!(
        "trap '' TERM HUP INT; (setsid sh -c 'trap \"\" TERM HUP INT; sleep {mark}; sleep {mark}' &); sleep {mark}; sleep {mark}"
    );
    model(move |_, step| match step {
        0 => Say::call("Job", json!({ "action": "start", "command": command })),
        _ => Say::text("It runs."),
    })
    .await
}

/// A session whose turn is over and whose job runs; with the pattern that finds its processes.
async fn with_job(daemon: &Daemon, client: &Client, mark: &str) -> (String, String) {
    let session = session(daemon, client, "start it").await;
    let end = Follower::attach(client, &session).await.turn_finished(1).await;
    assert_eq!(end.reason, EndReason::Completed);
    let needle = format!("sleep\0{mark}");
    eventually("both of its processes run", || marked(&needle).len() >= 2).await;
    (session, needle)
}

fn ends(log: &[Event]) -> Vec<JobFinished> {
    let end = |event: &Event| match &event.body {
        EventBody::JobFinished(end) => Some(end.clone()),
        _ => None,
    };
    log.iter().filter_map(end).collect()
}

async fn json_of(daemon: &Daemon, args: &[&str]) -> Value {
    let said = daemon.agentctl(&[args, &["-o", "json"]].concat()).await;
    assert_eq!(said.code, Some(0), "{args:?}: {}", said.stderr);
    serde_json::from_str(&said.stdout).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_at_a_terminal_is_started_typed_into_and_polled_at_each_level() {
    let server = model(|_, step| {
        let command =
            "test -t 0 && stty size; read -r line; printf '\\033[1m<%s>\\033[0m\\n' \"$line\"; exit 3";
        match step {
            0 => Say::call(
                "Job",
                json!({ "action": "start", "command": command, "terminal": true }),
            ),
            1 => Say::call(
                "Job",
                json!({ "action": "write", "job": 1, "input": "hello", "wait_ms": 60_000 }),
            ),
            2 => Say::call("Job", json!({ "action": "read", "job": 1, "wait_ms": 60_000 })),
            _ => Say::text("Done."),
        }
    })
    .await;
    for level in LEVELS {
        let Some(daemon) = daemon_at(&server, YOLO, level).await else {
            continue;
        };
        let client = daemon.client().await;
        let session = session(&daemon, &client, "go").await;
        let end = Follower::attach(&client, &session).await.turn_finished(1).await;
        assert_eq!(end.reason, EndReason::Completed, "{level}");
        let log = check_log(&client, &session).await;
        let said: String = results(&log).into_iter().map(|(_, text)| text).collect();
        assert!(
            said.contains("40 120\n") && said.contains("\n<hello>\n"),
            "{level}: {said:?}"
        );
        assert!(
            said.contains("[job 1 ended with exit code 3]"),
            "{level}: {said:?}"
        );
        let ends: Vec<_> = ends(&log).iter().map(|end| (end.job, end.exit_code)).collect();
        assert_eq!(ends, [(1, Some(3))], "{level}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn i5_a_job_is_shown_and_ends_by_kill_by_close_and_with_a_daemon_that_is_killed() {
    for (n, level) in (700..).zip(LEVELS) {
        let mark = mark(n);
        let server = stubborn(&mark).await;
        let Some(mut daemon) = daemon_at(&server, YOLO, level).await else {
            continue;
        };
        let client = daemon.client().await;

        let (session, needle) = with_job(&daemon, &client, &mark).await;
        let rows = json_of(&daemon, &["ps"]).await;
        let row = rows
            .as_array()
            .unwrap()
            .iter()
            .find(|row| row["session"] == session.as_str());
        let row = row.unwrap();
        assert_eq!(row["reason"], "waits for input; 1 background job runs");
        assert_eq!(row["jobs"][0]["job"], 1);
        let shown = daemon.agentctl(&["show", &session]).await.stdout;
        assert!(shown.contains("job        1 for "), "{shown}");
        let gentle = daemon.agentctl(&["cancel", &session]).await;
        assert_eq!(gentle.code, Some(5), "{}", gentle.stderr);
        assert!(gentle.stderr.contains("agentctl kill"), "{}", gentle.stderr);
        let killed = daemon.agentctl(&["cancel", "--kill", &session]).await;
        assert_eq!(killed.code, Some(0), "{}", killed.stderr);
        eventually("I5: a killed job is gone", || marked(&needle).is_empty()).await;
        let ended = ends(&check_log(&client, &session).await);
        assert_eq!(ended[0].stopped.as_deref(), Some("a person killed it"));

        let (session, needle) = with_job(&daemon, &client, &mark).await;
        let close = LifecycleParams {
            session: session.clone(),
            ..LifecycleParams::default()
        };
        client.close(&close).await.unwrap();
        eventually("I5: a closed session's job is gone", || {
            marked(&needle).is_empty()
        })
        .await;
        let ended = ends(&check_log(&client, &session).await);
        assert_eq!(ended[0].stopped.as_deref(), Some("the session was closed"));

        let (session, needle) = with_job(&daemon, &client, &mark).await;
        daemon.kill().await;
        eventually("I5: a killed daemon's job is gone", || marked(&needle).is_empty()).await;
        let daemon = daemon.restart(None).await;
        let client = daemon.client().await;
        Follower::attach(&client, &session)
            .await
            .until("the loss", |body| matches!(body, EventBody::JobLost(_)))
            .await;
        check_log(&client, &session).await;
        assert_eq!(json_of(&daemon, &["show", &session]).await.get("jobs"), None);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_takes_long_goes_on_in_the_background_and_its_end_is_told() {
    let server = model(|_, step| match step {
        0 => Say::call(
            "Bash",
            json!({ "command": "mkfifo go; echo first; cat go; echo second; exit 4", "yield_ms": 500 }),
        ),
        1 => Say::text("It goes on."),
        2 => Say::call("Job", json!({ "action": "read", "job": 1 })),
        _ => Say::text("Done."),
    })
    .await;
    let daemon = daemon(&server, YOLO).await;
    let client = daemon.client().await;
    let session = session(&daemon, &client, "go").await;
    let mut follower = Follower::attach(&client, &session).await;
    follower.turn_finished(1).await;
    // The job is recorded before the call's result, so a crash between them loses neither.
    let kinds: Vec<&str> = follower.events.iter().map(|event| event.body.kind()).collect();
    let place = |kind: &str| kinds.iter().position(|other| *other == kind).unwrap();
    assert!(place("tool.started") < place("job.started") && place("job.started") < place("tool.finished"));
    let fifo = std::path::Path::new(&daemon.workdir("project")).join("go");
    eventually("it waits", || fifo.exists()).await;
    tokio::fs::write(fifo, "now\n").await.unwrap();
    follower
        .until(
            "its end",
            |body| matches!(body, EventBody::JobFinished(end) if end.exit_code == Some(4)),
        )
        .await;
    let more = SendParams {
        session: session.clone(),
        content: vec![Block::text("and?")],
        ..SendParams::default()
    };
    client.send(&more).await.unwrap();
    follower.turn_finished(2).await;
    let told = |body: &EventBody| matches!(body, EventBody::NoteInjected(note) if note.text.contains("ended with exit code 4"));
    follower.until("the note", told).await;
    let results = results(&check_log(&client, &session).await);
    assert!(
        results[0].1.contains("continues as background job 1"),
        "{results:?}"
    );
    assert!(
        results[1]
            .1
            .contains("now\nsecond\n[job 1 ended with exit code 4]"),
        "{results:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn run_shows_the_output_of_a_command_while_it_runs_once_and_safely() {
    let server = model(|_, step| match step {
        0 => Say::call(
            "Bash",
            json!({ "command": "mkfifo go; printf 'first \\033]0;evil\\007\\n'; cat go" }),
        ),
        _ => Say::text("Done."),
    })
    .await;
    let daemon = daemon(&server, YOLO).await;
    let dir = daemon.workdir("project");
    let mut run = daemon
        .agentctl_command(&["run", "-C", &dir, "go"])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(run.stderr.take().unwrap()).lines();
    let mut seen = Vec::new();
    let mut let_go = false;
    while let Some(line) = agentd_tests::within("a line", lines.next_line()).await.unwrap() {
        assert!(!line.contains('\u{1b}'), "{line:?}");
        if line.contains("| first") && !let_go {
            let_go = true;
            let fifo = format!("{dir}/go");
            tokio::fs::write(fifo, "second\n").await.unwrap();
        }
        seen.push(line);
    }
    assert!(
        agentd_tests::within("its end", run.wait())
            .await
            .unwrap()
            .success()
    );
    for word in ["| first", "| second"] {
        let times = seen.iter().filter(|line| line.contains(word)).count();
        assert_eq!(times, 1, "{word}: {seen:#?}");
    }
}
