//! A daemon without a key and without a model server says so, and answers nothing in the place of a model.

use agentd_client::Client;
use agentd_protocol::{CreateParams, EndReason};
use agentd_tests::{Daemon, DaemonOptions, Follower, eventually};

async fn daemon() -> Daemon {
    let config = "[model]\ndefault = \"auto\"\n\
                  [providers.ollama]\nbase_url = \"http://127.0.0.1:9\"\n\
                  [providers.llamacpp]\nbase_url = \"http://127.0.0.1:9\"\n";
    Daemon::start(DaemonOptions {
        config: config.to_owned(),
        ..DaemonOptions::default()
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_key_a_run_fails_and_names_the_ways_to_a_model() {
    let daemon = daemon().await;
    let missing = "model: none: no provider has a credential";
    eventually("the greeting", || daemon.said().contains(missing)).await;
    let run = daemon.agentctl(&["run", "-o", "json", "fix it"]).await;
    assert_eq!(run.code, Some(2), "{}{}", run.stdout, run.stderr);
    let told = format!("{}{}", run.stdout, run.stderr);
    for way in [
        "ANTHROPIC_API_KEY",
        "OPENAI_API_KEY",
        "agentd/config.toml",
        "agentctl demo",
    ] {
        assert!(told.contains(way), "{way}: {told}");
    }
    assert!(!told.contains("\"success\": true"), "{told}");
    let doctor = daemon.agentctl(&["doctor"]).await;
    assert!(doctor.stdout.contains("no default model"), "{}", doctor.stdout);
    // A session that names the scripted model gets it.
    let client = daemon.client().await;
    let session = named(&daemon, &client).await;
    let end = Follower::attach(&client, &session).await.turn_finished(1).await;
    assert_eq!(end.reason, EndReason::Completed);
}

async fn named(daemon: &Daemon, client: &Client) -> String {
    let params = CreateParams {
        prompt: Some(vec![agentd_protocol::Block::text("hi")]),
        workdir: daemon.workdir("project"),
        model: Some("scripted".to_owned()),
        ..CreateParams::default()
    };
    client.create(&params).await.unwrap().session.to_string()
}
