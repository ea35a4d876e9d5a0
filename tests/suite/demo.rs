//! The first command of a new user.

use crate::terminals::Terminals;
use agentd_client::{Client, ConnectOptions};
use agentd_protocol::{ApprovalListParams, DecideParams, Decision};
use agentd_tests::{Daemon, DaemonOptions, binaries, eventually, skipped};
use std::path::Path;
use std::sync::Arc;

#[tokio::test(flavor = "multi_thread")]
async fn the_demo_shows_the_main_job_and_stays_up() {
    let dir = Arc::new(tempfile::tempdir().unwrap());
    let options = DaemonOptions {
        args: vec!["--demo".to_owned(), "3".to_owned()],
        config: "[workspace]\ncheckpoint = \"step\"\n".to_owned(),
        ..DaemonOptions::default()
    };
    let mut daemon = Daemon::launch(dir, options);
    eventually("the demo is over", || {
        let said = daemon.said();
        assert!(!said.contains("the demo failed"), "{said}");
        said.contains("Ctrl-C stops it")
    })
    .await;
    let said = daemon.said();
    for wanted in [
        "3 of 3 agents are done",
        "ASKS:",
        "answer: allow",
        "): retrying",
        "runs:",
        "+++ b/",
        "its work is now the branch demo-1",
        "its work is applied to",
        "agentd ready",
    ] {
        assert!(said.contains(wanted), "{wanted:?} is missing in:\n{said}");
    }
    let rows = daemon.agentctl(&["ps", "-o", "json"]).await;
    assert_eq!(
        (rows.code, rows.stdout.matches("\"idle\"").count()),
        (Some(0), 3),
        "{} {}",
        rows.stdout,
        rows.stderr
    );
    daemon.terminate();
    assert_eq!(daemon.ended().await.code(), Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_larger_demo_has_limits_failures_and_sub_agents() {
    let options = DaemonOptions {
        args: vec!["--demo".to_owned(), "8".to_owned()],
        ..DaemonOptions::default()
    };
    let mut daemon = Daemon::launch(Arc::new(tempfile::tempdir().unwrap()), options);
    eventually("the demo is over", || {
        let said = daemon.said();
        assert!(!said.contains("the demo failed"), "{said}");
        said.contains("Ctrl-C stops it")
    })
    .await;
    let said = daemon.said();
    for wanted in [
        "7 of 8 agents are done",
        "1 failed, as scripted",
        "limits the rate",
        "refuses the request",
    ] {
        assert!(said.contains(wanted), "{wanted:?} is missing in:\n{said}");
    }
    let rows = daemon.agentctl(&["ps", "-a", "-o", "json"]).await;
    let rows: Vec<serde_json::Value> = serde_json::from_str(&rows.stdout).unwrap();
    let named = |name: &str| rows.iter().find(|row| row["name"] == name).unwrap();
    let lead = named("demo 7");
    let helpers = rows.iter().filter(|row| row["parent"] == lead["session"]).count();
    assert_eq!((rows.len(), helpers), (11, 3), "{rows:#?}");
    assert_eq!(
        (&named("demo 5")["state"], &named("demo 4")["model"]),
        (&"failed".into(), &"demo-limited".into())
    );
    daemon.terminate();
    assert_eq!(daemon.ended().await.code(), Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn on_a_terminal_the_demo_says_first_how_to_look_and_waits_for_who_does() {
    const NAME: &str = "on_a_terminal_the_demo_says_first_how_to_look_and_waits_for_who_does";
    let Some(terminals) = Terminals::start("demo") else {
        skipped(NAME, "tmux is not installed");
        return;
    };
    let home = tempfile::tempdir().unwrap();
    let agentd = binaries().agentd.display();
    let home = home.path().display();
    terminals.open("demo", &format!("HOME={home} {agentd} --demo 1; exec cat"));
    // Before the first session is created.
    terminals.shows("demo", "attach \"demo 1\"").await;
    terminals.shows("demo", "agentd ready on ").await;
    let screen = terminals.screen("demo");
    let (_, ready) = screen.split_once("agentd ready on ").unwrap();
    let (socket, _) = ready.split_once(" (pid").unwrap();
    let options = ConnectOptions::default();
    let client = Client::connect(Path::new(socket), &options).await.unwrap();
    terminals.shows("demo", "ASKS: ").await;
    terminals.shows("demo", " approve ").await;
    let screen = terminals.screen("demo");
    let (told, created) = (screen.find("attach \"demo 1\""), screen.find("[1] created in"));
    assert!(told < created, "{screen}");
    // Without an answer, the demo allows it.
    let open = client.approvals(&ApprovalListParams::default()).await.unwrap();
    let denied = DecideParams {
        approval: open[0].approval.to_string(),
        decision: Some(Decision::Deny),
        ..DecideParams::default()
    };
    client.decide(&denied).await.unwrap();
    terminals.shows("demo", "answer: deny by ").await;
    terminals.shows("demo", "Ctrl-C stops it").await;
    terminals.keys("demo", &["C-c"]);
    terminals.shows("demo", "agentd stopped").await;
}
