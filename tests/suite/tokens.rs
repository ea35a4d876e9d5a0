//! Tokens from the command line: printed once, stored hashed, listed, revoked; and out of reach of tools.

use crate::secrets::files_with;
use crate::{YOLO, daemon, session};
use agentd_bench::model_server::ModelServer;
use agentd_protocol::EventBody;
use agentd_tests::{Daemon, DaemonOptions, Follower, check_log, eventually};
use serde_json::Value;

#[tokio::test(flavor = "multi_thread")]
async fn i8_a_token_is_printed_once_listed_and_revoked_and_no_file_has_it() {
    let server = ModelServer::start(false).await.unwrap();
    let config = format!("{YOLO}[log]\nlevel = \"trace\"\ntrace = true\naudit = true\n");
    let mut first = daemon(&server, &config).await;
    let create = "token create nightly-pipeline --scope read,steer -l team=infra --ttl 30d";
    let create: Vec<&str> = create.split(' ').collect();
    let made = first.agentctl(&create).await;
    assert_eq!(made.code, Some(0), "{}", made.stderr);
    let token = made.stdout.trim().to_owned();
    assert!(
        token.starts_with("agentd_") && token.len() == 71,
        "only the token is on stdout: {}",
        made.stdout
    );
    assert!(
        made.stderr.contains("team=infra") && made.stderr.contains("only once"),
        "{}",
        made.stderr
    );
    let json = first
        .agentctl(&["token", "create", "other", "--scope", "admin", "-o", "json"])
        .await;
    let json: Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!(
        (&json["scopes"][0], json["token"].as_str().unwrap().len()),
        (&Value::from("admin"), 71)
    );
    let _ = first.kill().await;
    let daemon = first.restart(None).await;
    let listed = async |name: &str| {
        let rows = daemon.agentctl(&["token", "ls", "-o", "json"]).await;
        let rows: Vec<Value> = serde_json::from_str(&rows.stdout).unwrap();
        rows.into_iter().find(|row| row["name"] == name).unwrap()
    };
    let row = listed("nightly-pipeline").await;
    assert_eq!(
        (&row["state"], &row["labels"]["team"]),
        (&Value::from("live"), &Value::from("infra"))
    );
    let gone = ["token", "revoke", "nightly-pipeline", "nobody"];
    let gone = daemon.agentctl(&gone).await;
    assert_eq!(gone.code, Some(3), "{}", gone.stderr);
    assert!(gone.stderr.contains("\"nobody\""), "{}", gone.stderr);
    assert_eq!(listed("nightly-pipeline").await["state"], "revoked");
    let audit = daemon.data_dir().join("logs/audit.jsonl");
    eventually("the audit file has the end of the token", || {
        let lines = std::fs::read_to_string(&audit).unwrap_or_default();
        lines.contains("token.created")
            && lines.contains("token.revoked")
            && lines.contains("nightly-pipeline")
    })
    .await;
    assert_nowhere(&daemon, &token);
    assert_nowhere(&daemon, json["token"].as_str().unwrap());
}

/// No file of the daemon and no line that it printed holds the token.
fn assert_nowhere(daemon: &Daemon, token: &str) {
    let mut found = Vec::new();
    files_with(&daemon.data_dir(), token.as_bytes(), &mut found);
    assert_eq!(found, Vec::<String>::new(), "files that hold a token");
    assert!(!daemon.said().contains(token));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_needs_a_known_scope_and_a_free_name() {
    let server = ModelServer::start(false).await.unwrap();
    let daemon = daemon(&server, YOLO).await;
    for (name, scope, code, says) in [
        ("x", "fly", 2, "approve"),
        ("x", "read", 0, "only once"),
        ("x", "read", 5, "x"),
    ] {
        let made = daemon
            .agentctl(&["token", "create", name, "--scope", scope])
            .await;
        assert_eq!(made.code, Some(code), "{}", made.stderr);
        assert!(made.stderr.contains(says), "{}", made.stderr);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn i8_no_tool_has_a_variable_of_agentctl_and_no_result_has_a_token() {
    let server = ModelServer::start(true).await.unwrap();
    let token = format!("agentd_{}", "5f2d9c41".repeat(8));
    let daemon = Daemon::start(DaemonOptions {
        model_url: Some(server.url()),
        config: YOLO.to_owned(),
        env: vec![
            ("AGENTCTL_CONTEXT".to_owned(), "prod-canary".to_owned()),
            ("AGENTCTL_TOKEN".to_owned(), token.clone()),
            ("AGENTD_LIMITS__LIST_ROWS".to_owned(), "77".to_owned()),
        ],
        ..DaemonOptions::default()
    })
    .await;
    std::fs::write(
        format!("{}/token", daemon.workdir("project")),
        format!("is:{token}"),
    )
    .unwrap();
    let client = daemon.client().await;
    let plan = "plan:e steps=1 command=env_&&_cat_token;";
    let session = session(&daemon, &client, plan).await;
    Follower::attach(&client, &session).await.turn_finished(1).await;
    let log = check_log(&client, &session).await;
    let output = log.iter().find_map(|event| match &event.body {
        EventBody::ToolFinished(done) => Some(done.outcome.llm_text.clone()),
        _ => None,
    });
    let output = output.unwrap();
    assert!(
        output.contains("PATH=") && output.contains("is:[redacted]"),
        "positive control: {output}"
    );
    for hidden in ["AGENTCTL_", "AGENTD_LIMITS", "prod-canary", token.as_str()] {
        assert!(!output.contains(hidden), "{hidden}: {output}");
    }
}
