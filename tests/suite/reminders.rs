//! Other programs are notified of every open question at least once, whatever happens to the daemon and to the notifier.

use crate::asking::receiver;
use crate::{ASKING, session};
use agentd_bench::model_server::ModelServer;
use agentd_tests::{Daemon, DaemonOptions, within};

/// Its key and its text.
fn parts(note: &str) -> (String, String) {
    let key = note
        .lines()
        .find_map(|line| line.strip_prefix("x-agentd-delivery: "));
    let body = note.split("\r\n\r\n").nth(1).unwrap_or_default();
    (key.unwrap_or_default().to_owned(), body.to_owned())
}

async fn asking(server: &ModelServer, url: &str, faults: Option<&str>) -> Daemon {
    Daemon::start(DaemonOptions {
        model_url: Some(server.url()),
        config: format!("{ASKING}[permission.webhook]\nurl = \"{url}\"\n"),
        faults: faults.map(str::to_owned),
        ..DaemonOptions::default()
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn i1_after_a_kill_open_questions_are_told_of_once_more_with_the_same_key() {
    let server = ModelServer::start(false).await.unwrap();
    let (url, mut heard) = receiver().await;
    let mut first = asking(&server, &url, None).await;
    let client = first.client().await;
    session(&first, &client, "plan:late steps=1 command=touch_M;").await;
    let told = parts(&within("the question", heard.recv()).await.unwrap());
    assert!(!told.0.is_empty() && told.1.contains("touch M"), "{told:?}");
    first.kill().await;
    let _second = first.restart(None).await;
    let again = parts(&within("the question once more", heard.recv()).await.unwrap());
    assert_eq!(again, told);
}

#[tokio::test(flavor = "multi_thread")]
async fn i6_a_panic_of_the_webhook_notifier_costs_no_note() {
    let server = ModelServer::start(false).await.unwrap();
    let (url, mut heard) = receiver().await;
    let daemon = asking(&server, &url, Some("webhook.note=panic@1")).await;
    let client = daemon.client().await;
    session(&daemon, &client, "plan:late steps=1 command=touch_M;").await;
    let told = within("the question", heard.recv()).await.unwrap();
    assert!(told.contains("touch M"), "{told}");
}
