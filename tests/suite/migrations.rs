//! `agentctl migrate`: the sessions of a daemon move from SQLite to PostgreSQL, and back.

use crate::YOLO;
use crate::commands::{ctl, json};
use crate::played::{model, session};
use crate::subagents::{all, node, root, tasks, when_over};
use agentd_client::Client;
use agentd_process_tests::{Database, Postgres};
use agentd_protocol::{Block, CreateParams, Created, SendParams};
use agentd_tests::fault_server::{FaultServer, Say};
use agentd_tests::{Daemon, DaemonOptions, Finished, Follower, check_log, within};
use serde_json::Value;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::sync::Arc;
use tempfile::TempDir;

/// One agent has a sub-agent, one a large result, and all others answer.
async fn agents() -> FaultServer {
    model(|body, step| match (step, node(body)) {
        (0, "r") => tasks("r", 1),
        (0, _) if body.contains("large") => Say {
            calls: vec![(
                "Bash".to_owned(),
                serde_json::json!({ "command": "seq 1 300000" }),
            )],
            ..Say::text("")
        },
        _ => Say::text("done"),
    })
    .await
}

fn options(server: &FaultServer, database: Option<&Database<'_>>) -> DaemonOptions {
    let store = database.map_or(String::new(), |database| {
        format!("[store]\nurl = \"{}\"\n", database.url)
    });
    DaemonOptions {
        model_url: Some(server.url()),
        config: format!("{YOLO}{store}[log]\naudit = true\n"),
        ..DaemonOptions::default()
    }
}

async fn stop(daemon: &mut Daemon) {
    daemon.terminate();
    daemon.ended().await;
}

async fn migrate(daemon: &Daemon, from: &str, to: &str, more: &[&str]) -> Finished {
    daemon.agentctl(&[&["migrate", from, to], more].concat()).await
}

/// Every session with its export, and what else moves with them.
async fn seen(daemon: &Daemon) -> Vec<String> {
    let client = daemon.client().await;
    let mut seen = Vec::new();
    for row in all(&client).await {
        let id = row.session.to_string();
        check_log(&client, &id).await;
        let export = ctl(daemon, &["export", &id], 0).await;
        seen.push(format!(
            "{id} {} {:?} {:?}\n{export}",
            row.name, row.status.state, row.parent
        ));
    }
    seen.push(ctl(daemon, &["token", "ls", "-o", "json"], 0).await);
    seen.push(ctl(daemon, &["usage", "-o", "json"], 0).await);
    let found = client.check_store().await.unwrap();
    assert_eq!(found.get("problems"), Some(&serde_json::json!([])));
    seen
}

async fn goes_on(client: &Client, id: &str, turn: usize) {
    let params = SendParams {
        session: id.to_owned(),
        content: vec![Block::text("go on")],
        ..SendParams::default()
    };
    client.send(&params).await.unwrap();
    Follower::attach(client, id).await.turn_finished(turn).await;
}

fn url(dir: &Path) -> String {
    format!("sqlite:{}", dir.join("data/agentd.db").display())
}

/// Sessions of all sorts, and a token. Returns the first one, and the request that created it.
async fn filled(daemon: &Daemon) -> (Created, CreateParams) {
    let client = daemon.client().await;
    let create = CreateParams {
        prompt: Some(vec![Block::text("a question")]),
        workdir: daemon.workdir("project"),
        key: Some("create-1".to_owned()),
        ..CreateParams::default()
    };
    let created = client.create(&create).await.unwrap();
    let large = session(daemon, &client, "large").await;
    let gone = session(daemon, &client, "another").await;
    for id in [&created.session.to_string(), &large, &gone] {
        Follower::attach(&client, id).await.turn_finished(1).await;
    }
    root(daemon, &client, CreateParams::default()).await;
    when_over(&client, 1).await;
    ctl(daemon, &["wait", "root"], 0).await;
    ctl(daemon, &["rm", &gone], 0).await;
    ctl(daemon, &["token", "create", "ci", "--scope", "read"], 0).await;
    (created, create)
}

/// Kills a migration to a file in this directory, and runs it again.
async fn interrupted(
    daemon: &Daemon,
    (from, to): (&str, &str),
    (dir, early): (&Arc<TempDir>, DaemonOptions),
) {
    let mut killed = daemon.agentctl_command(&["migrate", from, to]);
    let killed = killed.env("AGENTD_FAULTS", "store.after_commit=kill@4").output();
    let killed = within("the migration is killed", killed).await.unwrap();
    assert_eq!(killed.status.signal(), Some(9), "{killed:?}");
    let mut early = Daemon::launch(Arc::clone(dir), early);
    assert_eq!(early.ended().await.code(), Some(1));
    let said = early.said();
    assert!(
        said.contains("unfinished migration from postgres://agentd:***@"),
        "{said}"
    );
    let done = migrate(daemon, from, to, &[]).await;
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    assert!(done.stdout.contains("and compared both"), "{}", done.stdout);
    let again = migrate(daemon, from, to, &["--verify"]).await;
    assert!(
        again.stdout.contains("have the same content"),
        "{}{}",
        again.stdout,
        again.stderr
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn i1_i2_sessions_move_to_postgres_and_back_and_go_on() {
    let Some(database) = Postgres::database("a migration") else {
        return;
    };
    let server = agents().await;
    let mut first = Daemon::start(options(&server, None)).await;
    let (created, create) = filled(&first).await;
    let plain = created.session.to_string();
    let before = seen(&first).await;
    assert_eq!(before.len(), 4 + 2, "{before:?}");
    assert!(before.iter().any(|text| text.contains("{\"blob\":")));

    let (old, new) = (url(first.dir.path()), database.url.as_str());
    let refused = migrate(&first, &old, new, &[]).await;
    assert_eq!(refused.code, Some(69), "{}", refused.stderr);
    assert!(
        refused.stderr.contains("is in use by process"),
        "{}",
        refused.stderr
    );
    stop(&mut first).await;
    let done = migrate(&first, &old, new, &["-o", "json"]).await;
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    let done: Value = serde_json::from_str(&done.stdout).unwrap();
    assert_eq!(
        (&done["problems"], &done["copied"]["token"]),
        (&Value::Array(Vec::new()), &1.into())
    );

    // In the same data directory: its audit file names the same cursors.
    let mut second = Daemon::start_in(Arc::clone(&first.dir), options(&server, Some(&database))).await;
    assert_eq!(seen(&second).await, before);
    let client = second.client().await;
    assert_eq!(client.create(&create).await.unwrap(), created);
    goes_on(&client, &plain, 2).await;
    let after = seen(&second).await;
    let other = Arc::new(tempfile::tempdir().unwrap());
    let back = url(other.path());
    let refused = migrate(&second, new, &back, &[]).await;
    assert!(
        refused.code == Some(1) && refused.stderr.contains("agentctl node drain"),
        "{}",
        refused.stderr
    );
    let nodes = json(&second, &["nodes"]).await;
    let name = nodes[0]["name"].as_str().unwrap();
    assert!(refused.stderr.contains(name), "{name}: {}", refused.stderr);
    stop(&mut second).await;
    interrupted(&second, (new, &back), (&other, options(&server, None))).await;

    let third = Daemon::start_in(other, options(&server, None)).await;
    assert_eq!(seen(&third).await, after);
    goes_on(&third.client().await, &plain, 3).await;
}
