//! Configuration, rules, prices and keys are reloaded while the daemon runs.

use crate::commands::{ctl, json};
use agentd_client::Client;
use agentd_protocol::{EndReason, RunState, WaitReason};
use agentd_provider::Dialect;
use agentd_tests::fault_server::{Asked, FaultServer, Say, Speech, http};
use agentd_tests::{Daemon, DaemonOptions, Follower, Logs, check_audit, check_log, eventually, within};
use rustix::process::Signal;
use std::path::PathBuf;

const SPEECH: Speech = Speech(Dialect::Anthropic);
/// The key that the server accepts.
const GOOD: &str = "sk-good-7c1e5d0b93a2";

/// A server that accepts one key, requests a command, and then finishes.
async fn server() -> FaultServer {
    server_that_runs("echo hi").await
}

async fn server_that_runs(command: &'static str) -> FaultServer {
    FaultServer::start(move |asked: &Asked| {
        if !asked.head.contains(GOOD) {
            return vec![http(401, &[], "")];
        }
        let body = String::from_utf8_lossy(&asked.body);
        SPEECH.answer(&if body.contains("tool_result") {
            Say::text("It is done.")
        } else {
            Say::call(
                "Bash",
                serde_json::json!({"command": command, "description": "say hi"}),
            )
        })
    })
    .await
}

/// A daemon whose only key is in a file that does not have the accepted key.
async fn daemon(server: &FaultServer, retry: &str) -> Daemon {
    let dir = tempfile::Builder::new().prefix("agentd-t").tempdir().unwrap();
    std::fs::write(dir.path().join("key"), "sk-bad-000000000000\n").unwrap();
    let config = format!(
        "[model]\ndefault = \"mine\"\n[providers.mine]\ndialect = \"anthropic\"\nbase_url = \"{}\"\n\
         credentials = [{{ name = \"main\", file = \"{}\" }}]\n\
         [models.mine]\nprovider = \"mine\"\nmodel = \"claude-test\"\n\
         [limits]\nconnections = 500\n[retry]\nmax_retries = 3\n{retry}",
        server.url(),
        dir.path().join("key").display()
    );
    let options = DaemonOptions {
        config,
        ..DaemonOptions::default()
    };
    Daemon::start_in(dir.into(), options).await
}

fn key(daemon: &Daemon) -> PathBuf {
    daemon.dir.path().join("key")
}

/// Changes the configuration file.
fn edit(daemon: &Daemon, from: &str, to: &str) {
    let path = daemon.dir.path().join("config.toml");
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(text.contains(from), "{text}");
    std::fs::write(path, text.replace(from, to)).unwrap();
}

/// A session that waits until a person fixes the key.
async fn parked(daemon: &Daemon, client: &Client) -> String {
    let session = crate::session(daemon, client, "Say hi.").await;
    let parked = async {
        while client.get(&session).await.unwrap().status.state != RunState::Waiting(WaitReason::Credentials) {
            tokio::task::yield_now().await;
        }
    };
    within("the session waits for a key", parked).await;
    session
}

async fn retries(daemon: &Daemon) -> i64 {
    let config = daemon.client().await.config().await.unwrap();
    config
        .pointer("/settings/retry/max_retries")
        .unwrap()
        .as_i64()
        .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn i1_a_reload_takes_over_keys_prices_and_rules_and_names_what_needs_a_restart() {
    let server = server().await;
    let daemon = daemon(&server, "key_files_ms = 0\n").await;
    let client = daemon.client().await;
    let session = parked(&daemon, &client).await;
    let restarts = client.status().await.unwrap().restarts;

    std::fs::write(key(&daemon), GOOD).unwrap();
    edit(
        &daemon,
        "model = \"claude-test\"",
        "model = \"claude-test\"\nprice = { input = 3.0, output = 15.0, cache_read = 0.3, cache_write = 3.75 }",
    );
    edit(&daemon, "connections = 500", "connections = 400");
    edit(
        &daemon,
        "[limits]",
        "[[permission.rules]]\nallow = \"Bash(echo:*)\"\n[limits]",
    );
    let said = ctl(&daemon, &["daemon", "reload"], 0).await;
    for part in [
        "reloaded: ",
        "models.mine.price",
        "permission.rules",
        "needs a restart: limits.connections\n",
        "retrying 1 session that waited for a credential",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let end = Follower::attach(&client, &session).await.turn_finished(1).await;
    assert_eq!(
        (end.reason, end.text.as_str()),
        (EndReason::Completed, "It is done.")
    );
    let row = client.get(&session).await.unwrap();
    assert!(row.cost_usd > 0.0, "{row:?}");
    assert_eq!(
        client.status().await.unwrap().restarts,
        restarts,
        "no actor was restarted"
    );
    let again = json(&daemon, &["daemon", "reload"]).await;
    assert_eq!(
        (&again["changed"], &again["tried"]),
        (&serde_json::json!([]), &0.into())
    );
    assert_eq!(again["restart"], serde_json::json!(["limits.connections"]));
    check_log(&client, &session).await;
    let logs = Logs::told(&client).await.unwrap();
    eventually("the reloads are in the audit file", || {
        let audit = std::fs::read_to_string(daemon.data_dir().join("logs/audit.jsonl"));
        audit.unwrap().matches("settings.reloaded").count() >= 2
    })
    .await;
    // It gets the events of sessions from another queue.
    eventually("the audit file has the events", || {
        check_audit(&daemon.data_dir(), &logs).is_ok()
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn i7_a_bad_configuration_changes_nothing_and_the_fault_names_file_key_and_line() {
    let server = server().await;
    let daemon = daemon(&server, "key_files_ms = 0\n").await;
    edit(&daemon, "max_retries = 3", "max_retries = 4\nbase_sm = 7");
    let refused = daemon.agentctl(&["daemon", "reload"]).await;
    assert_eq!(refused.code, Some(2), "{}", refused.stderr);
    for part in [
        "config.toml:14: retry.base_sm",
        "the daemon keeps its previous settings",
    ] {
        assert!(refused.stderr.contains(part), "{part}: {}", refused.stderr);
    }
    assert_eq!(retries(&daemon).await, 3);
    edit(&daemon, "base_sm = 7\n", "");
    edit(
        &daemon,
        "[limits]",
        "[[permission.rules]]\nallow = \"Bash(\"\n[limits]",
    );
    let refused = daemon.agentctl(&["daemon", "reload"]).await;
    assert!(
        refused.stderr.contains("permission.rules[0]"),
        "{}",
        refused.stderr
    );
    assert_eq!(retries(&daemon).await, 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn i6_sighup_reloads_and_a_bad_file_does_not_end_the_daemon() {
    let server = server().await;
    let mut daemon = daemon(&server, "key_files_ms = 0\n").await;
    let log = daemon.data_dir().join("logs/agentd.log");
    edit(&daemon, "max_retries = 3", "max_retries = \"many\"");
    daemon.signal(Signal::HUP);
    let refused = async {
        while !std::fs::read_to_string(&log)
            .unwrap()
            .contains("could not reload the configuration; keeping the previous one")
        {
            tokio::task::yield_now().await;
        }
    };
    within("the bad file is refused", refused).await;
    assert_eq!(retries(&daemon).await, 3);
    edit(&daemon, "max_retries = \"many\"", "max_retries = 8");
    daemon.signal(Signal::HUP);
    let taken = async {
        while retries(&daemon).await != 8 {
            tokio::task::yield_now().await;
        }
    };
    within("the good file is taken", taken).await;
    assert!(!daemon.is_over());
}

#[tokio::test(flavor = "multi_thread")]
async fn i6_a_session_that_waits_for_a_key_goes_on_when_the_file_has_a_good_one() {
    let server = server().await;
    let daemon = daemon(&server, "key_files_ms = 50\n[permission]\nmode = \"yolo\"\n").await;
    let client = daemon.client().await;
    let session = parked(&daemon, &client).await;
    let asked = server.seen().requests;
    std::fs::write(key(&daemon), "sk-bad-too-00000\n").unwrap();
    server
        .until("another key is tried", |seen| seen.requests > asked)
        .await;
    std::fs::write(key(&daemon), GOOD).unwrap();
    let end = Follower::attach(&client, &session).await.turn_finished(1).await;
    assert_eq!(end.text, "It is done.");
    check_log(&client, &session).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn i6_a_model_that_a_reload_removes_stays_for_the_open_turns_that_use_it() {
    let server = server_that_runs("until [ -e go ]; do sleep 0.05; done").await;
    let daemon = daemon(&server, "key_files_ms = 50\n[permission]\nmode = \"yolo\"\n").await;
    std::fs::write(key(&daemon), GOOD).unwrap();
    ctl(&daemon, &["daemon", "reload"], 0).await;
    let client = daemon.client().await;
    let session = crate::session(&daemon, &client, "Say hi.").await;
    let runs = async {
        while client.get(&session).await.unwrap().status.state != RunState::RunningTool {
            tokio::task::yield_now().await;
        }
    };
    within("the command runs", runs).await;

    std::fs::write(
        daemon.dir.path().join("config.toml"),
        "[retry]\nkey_files_ms = 50\n",
    )
    .unwrap();
    let reloaded = json(&daemon, &["daemon", "reload"]).await;
    assert_eq!(reloaded["kept"], serde_json::json!(["mine"]), "{reloaded}");
    let models = client.models().await.unwrap();
    assert!(models.iter().all(|model| model.name != "mine"), "{models:?}");
    let refused = daemon.agentctl(&["run", "-d", "--model", "mine", "hi"]).await;
    assert!(refused.stderr.contains("there is no model"), "{}", refused.stderr);

    std::fs::write(format!("{}/go", daemon.workdir("project")), "").unwrap();
    let end = Follower::attach(&client, &session).await.turn_finished(1).await;
    assert_eq!(
        (end.reason, end.text.as_str()),
        (EndReason::Completed, "It is done.")
    );
    let gone = async {
        while client
            .config()
            .await
            .unwrap()
            .pointer("/settings/models/mine")
            .is_some()
        {
            tokio::task::yield_now().await;
        }
    };
    within("the model is gone when no turn needs it", gone).await;
    check_log(&client, &session).await;
}
