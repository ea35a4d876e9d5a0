//! The stranger's first command.

use agentd_tests::{Daemon, DaemonOptions, eventually};
use std::sync::Arc;

#[tokio::test(flavor = "multi_thread")]
async fn the_demo_shows_the_main_job_and_stays_up() {
    let dir = Arc::new(tempfile::tempdir().unwrap());
    let options = DaemonOptions {
        args: vec!["--demo".to_owned(), "3".to_owned()],
        ..DaemonOptions::default()
    };
    let mut daemon = Daemon::launch(dir, options);
    eventually("the demo is over", || {
        let said = daemon.said();
        assert!(!said.contains("the demo failed"), "{said}");
        said.contains("Ctrl-C stops it.")
    })
    .await;
    let said = daemon.said();
    for wanted in [
        "3 of 3 agents are done",
        "ASKS:",
        "answer: allow",
        "the call is started again",
        "runs:",
        "+++ b/",
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
