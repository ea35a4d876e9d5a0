//! A daemon on a PostgreSQL database.

use agentd_process_tests::{Database, Postgres};
use agentd_protocol::{Block, CreateParams, EventBody, SendParams};
use agentd_tests::{Daemon, DaemonOptions, Follower, Logs, eventually};
use std::sync::Arc;

/// Writes a file for each step, slowly enough to be killed in between.
const SCRIPT: &str = r#"
[[turn]]
calls = [{ name = "Write", input = { file_path = "one.txt", content = "1\n" } }]
[[turn]]
delay_ms = 300
text = "One file is written; the second follows, and this text takes a while to say."
calls = [{ name = "Write", input = { file_path = "two.txt", content = "2\n" } }]
[[turn]]
text = "Both files are written."
"#;

/// Settings of a daemon on this database whose model plays a script.
pub(crate) fn config(database: &Database<'_>, script: &std::path::Path) -> String {
    format!(
        "[store]\nurl = \"{}\"\n[model]\ndefault = \"played\"\n[models.played]\nprovider = \"scripted\"\n\
         model = \"{}\"\n[permission]\nmode = \"yolo\"\n",
        database.url,
        script.display()
    )
}

/// A session with this first prompt; returns its id.
pub(crate) async fn session(daemon: &Daemon, workdir: &str, words: &str) -> String {
    let params = CreateParams {
        prompt: Some(vec![Block::text(words)]),
        workdir: workdir.to_owned(),
        ..CreateParams::default()
    };
    let created = daemon.client().await.create(&params).await;
    created.expect("the session is created").session.to_string()
}

async fn fails_to_start(options: DaemonOptions) -> (Option<i32>, String) {
    let mut daemon = Daemon::launch(Arc::new(tempfile::tempdir().unwrap()), options);
    let code = daemon.ended().await.code();
    (code, daemon.said())
}

#[tokio::test(flavor = "multi_thread")]
async fn i1_sessions_continue_on_postgres_after_kill_9() {
    let Some(database) = Postgres::database("sessions on PostgreSQL") else {
        return;
    };
    let script = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(script.path(), SCRIPT).unwrap();
    let options = DaemonOptions {
        config: config(&database, script.path()),
        ..DaemonOptions::default()
    };
    let mut daemon = Daemon::start(options).await;
    let mut sessions = Vec::new();
    for number in 0..3 {
        let workdir = daemon.workdir(&format!("w{number}"));
        sessions.push((session(&daemon, &workdir, "begin").await, workdir));
    }
    let client = daemon.client().await;
    let mut follower = Follower::attach(&client, &sessions[0].0).await;
    follower
        .until("the first call is over", |body| {
            matches!(body, EventBody::ToolFinished(_))
        })
        .await;
    let before = Logs::told(&client).await.unwrap();
    daemon.kill().await;
    let daemon = daemon.restart(None).await;
    let client = daemon.client().await;
    for (id, workdir) in &sessions {
        let mut follower = Follower::attach(&client, id).await;
        assert_eq!(follower.turn_finished(1).await.text, "Both files are written.");
        let two = std::fs::read_to_string(format!("{workdir}/two.txt")).unwrap();
        assert_eq!(two, "2\n");
    }
    let after = Logs::told(&client).await.unwrap();
    after.continue_from(&before);
    assert!(!daemon.data_dir().join("agentd.db").exists());

    let checked = daemon.agentctl(&["doctor"]).await;
    let said = checked.stdout;
    assert!(said.contains("postgres://agentd:***@"), "{said}");
    assert!(said.contains("none in "), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn i1_a_daemon_goes_on_when_the_database_crashes_and_comes_back() {
    let Some(server) = Postgres::own("a crash of PostgreSQL") else {
        return;
    };
    let database = server.create("crashes");
    let script = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(script.path(), SCRIPT).unwrap();
    let daemon = Daemon::start(DaemonOptions {
        config: config(&database, script.path()),
        ..DaemonOptions::default()
    })
    .await;
    let client = daemon.client().await;
    let id = session(&daemon, &daemon.workdir("w"), "begin").await;
    let mut follower = Follower::attach(&client, &id).await;
    follower
        .until("the first call is over", |body| {
            matches!(body, EventBody::ToolFinished(_))
        })
        .await;
    server.crash();
    assert_eq!(follower.turn_finished(1).await.text, "Both files are written.");
    let params = SendParams {
        session: id.clone(),
        content: vec![Block::text("again")],
        ..SendParams::default()
    };
    client.send(&params).await.unwrap();
    follower.turn_finished(2).await;
    Logs::told(&client).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn i1_i8_a_database_that_cannot_be_used_is_refused_with_the_reason_and_without_the_password() {
    if Postgres::database("refused databases").is_none() {
        return;
    }
    let unsafe_one = Postgres::start(&["fsync=off"]).unwrap();
    unsafe_one.run("postgres", "SELECT 1");
    let of = |url: String, more: &str| DaemonOptions {
        config: format!("[store]\nurl = \"{url}\"\n{more}"),
        env: vec![("DATABASE_PASSWORD".to_owned(), "correct-horse-battery".to_owned())],
        ..DaemonOptions::default()
    };
    let file = "password_file = \"/no/such/file\"\n";
    let env = "password_env = \"DATABASE_PASSWORD\"\n";
    let missing = "password_env = \"NO_SUCH_VARIABLE\"\n";
    for (options, code, wanted) in [
        (of(unsafe_one.url("postgres"), ""), 1, "fsync is off"),
        (
            of("postgres://ana@127.0.0.1:1/agentd".to_owned(), env),
            1,
            "cannot reach the database 127.0.0.1/agentd",
        ),
        (
            of(
                "postgres://ana:correct-horse-battery@127.0.0.1:1/agentd".to_owned(),
                "",
            ),
            1,
            "cannot reach the database 127.0.0.1/agentd",
        ),
        (
            of("postgres://ana@localhost/db".to_owned(), missing),
            2,
            "$NO_SUCH_VARIABLE is not set",
        ),
        (
            of("postgres://ana@localhost/db".to_owned(), file),
            1,
            "/no/such/file",
        ),
        (
            of(
                "postgres://localhost/db?password=correct-horse-battery".to_owned(),
                "",
            ),
            2,
            "does not belong in the query",
        ),
    ] {
        let (ended, said) = fails_to_start(options).await;
        assert_eq!(ended, Some(code), "{said}");
        assert!(said.contains(wanted), "{wanted}: {said}");
        assert!(!said.contains("correct-horse-battery"), "{said}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn doctor_says_when_the_settings_of_the_database_lose_events() {
    let Some(server) = Postgres::own("doctor and PostgreSQL") else {
        return;
    };
    let database = server.create("checked");
    let daemon = Daemon::start(DaemonOptions {
        config: format!("[store]\nurl = \"{}\"\n", database.url),
        ..DaemonOptions::default()
    })
    .await;
    server.run("postgres", "ALTER SYSTEM SET full_page_writes = off");
    server.run("postgres", "SELECT pg_reload_conf()");
    eventually("the server has read its settings", || {
        server.run("postgres", "SHOW full_page_writes") == "off"
    })
    .await;
    let checked = daemon.agentctl(&["doctor"]).await;
    assert!(
        checked.stdout.contains("full_page_writes is off"),
        "{}",
        checked.stdout
    );
}
