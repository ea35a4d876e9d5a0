//! HTTP against the real daemon: the examples of docs/http.md, and the address.

use crate::daemon;
use agentd_bench::model_server::ModelServer;
use agentd_tests::{Daemon, DaemonOptions, binaries, eventually, within};
use serde_json::Value;
use std::process::Stdio;
use std::sync::Arc;
use tokio::process::Command;

const EXAMPLES: &str = include_str!("../../docs/http.md");
const CONFIG: &str = "[model]\ndefault = \"claude\"\n[http]\nlisten = \"127.0.0.1:0\"\n";

/// All examples as one script, for this daemon and a model that follows plans.
async fn script(daemon: &Daemon) -> String {
    let blocks = EXAMPLES.split("```sh\n").skip(1);
    let blocks = blocks.map(|block| block.split("```").next().unwrap());
    let plan = "plan:haiku steps=1 tool=write text=Rain_falls;";
    let script = blocks.collect::<Vec<_>>().join("\n");
    let script = script
        .replace("http://127.0.0.1:7433", &daemon.http().await)
        .replace("Write a haiku about rain into haiku.txt", plan);
    format!("set -eux\n{script}")
}

#[tokio::test(flavor = "multi_thread")]
#[expect(clippy::disallowed_methods, reason = "the reader's own shell")]
async fn every_example_of_the_page_works() {
    let server = ModelServer::start(false).await.unwrap();
    let daemon = daemon(&server, CONFIG).await;
    let dir = daemon.workdir("reader");
    let programs = binaries().agentctl.parent().unwrap().display();
    let path = std::env::var("PATH").unwrap();
    let output = Command::new("bash")
        .args(["-c", &script(&daemon).await])
        .current_dir(&dir)
        .env("PATH", format!("{programs}:{path}"))
        .env("AGENTD_SOCKET", daemon.socket())
        .env("HOME", daemon.dir.path())
        .stdin(Stdio::null())
        .output();
    let output = within("the examples end", output).await.unwrap();
    let (said, trace) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert!(output.status.success(), "{said}\n{trace}");
    for wanted in [
        "completed",
        "Rain falls",
        "+++ b/",
        "event: synced",
        "\"session.created\"",
    ] {
        assert!(
            said.contains(wanted),
            "{wanted:?} is missing in:\n{said}\n{trace}"
        );
    }
    let asked: Value = serde_json::from_slice(&std::fs::read(format!("{dir}/asked.json")).unwrap()).unwrap();
    assert!(
        asked["turn"].is_null() && asked["approvals"][0]["title"].is_string(),
        "{asked}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_configured_port_that_is_taken_ends_the_start_and_the_default_one_does_not() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let dir = || Arc::new(tempfile::tempdir().unwrap());
    let with = |args: &[&str]| DaemonOptions {
        config: "[model]\ndefault = \"scripted\"\n".to_owned(),
        args: args.iter().map(|arg| (*arg).to_owned()).collect(),
        ..DaemonOptions::default()
    };
    let mut refused = Daemon::launch(dir(), with(&["--http", &address]));
    assert_eq!(refused.ended().await.code(), Some(69), "{}", refused.said());
    let mut open = Daemon::launch(dir(), with(&["--http", "0.0.0.0:0"]));
    assert_eq!(open.ended().await.code(), Some(2), "{}", open.said());
    assert!(open.said().contains("http.tls"), "{}", open.said());
    // At most one of the two gets the default port: the daemon of another test may hold it, and may release it in between.
    let pair = [Daemon::start(with(&[])).await, Daemon::start(with(&[])).await];
    let addresses = [pair[0].http().await, pair[1].http().await];
    assert_ne!(addresses[0], addresses[1]);
    let moved = usize::from(addresses[0].ends_with("127.0.0.1:7433"));
    eventually("it says why", || {
        pair[moved]
            .said()
            .contains("(another program has 127.0.0.1:7433)")
    })
    .await;
    let status = pair[moved].agentctl(&["daemon", "status"]).await;
    assert!(status.stdout.contains(&addresses[moved]), "{}", status.stdout);
    let off = Daemon::start(with(&["--http", "off"])).await;
    let status = off.agentctl(&["daemon", "status", "-o", "json"]).await;
    let status: Value = serde_json::from_str(&status.stdout).unwrap();
    assert_eq!(status["http"], "off");
}
