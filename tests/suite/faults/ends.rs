//! Starts and ends of daemons: crashes during a start, stores of other versions, many sessions at SIGTERM.

use crate::{YOLO, daemon, session};
use agentd_bench::model_server::ModelServer;
use agentd_protocol::{Block, CreateParams, EndReason, ListParams};
use agentd_tests::{Daemon, DaemonOptions, Follower, Logs, check_log, eventually, within, working_in};
use rustix::process::Signal;
use std::sync::Arc;

#[tokio::test(flavor = "multi_thread")]
async fn i1_a_daemon_that_is_killed_while_it_starts_leaves_nothing_in_the_way() {
    let dir = Arc::new(tempfile::tempdir().unwrap());
    // The first transaction of a daemon registers its node.
    for fault in ["store.in_batch=kill@1", "store.after_commit=kill@1"] {
        let options = DaemonOptions {
            faults: Some(fault.to_owned()),
            ..DaemonOptions::default()
        };
        let mut daemon = Daemon::launch(Arc::clone(&dir), options);
        assert!(!daemon.ready_or_over().await, "{fault}");
        assert_eq!(daemon.ended().await.code(), None, "{fault}: {}", daemon.said());
    }
    let daemon = Daemon::start_in(dir, DaemonOptions::default()).await;
    assert!(daemon.client().await.status().await.is_ok());
}

/// A stopped daemon's directory, with one session in its store.
async fn left_behind(server: &ModelServer) -> Daemon {
    let mut first = daemon(server, YOLO).await;
    let client = first.client().await;
    let session = session(&first, &client, "plan:v steps=1 command=true;").await;
    Follower::attach(&client, &session).await.turn_finished(1).await;
    drop(client);
    first.terminate();
    assert_eq!(first.ended().await.code(), Some(0));
    first
}

#[tokio::test(flavor = "multi_thread")]
async fn i1_a_store_of_another_version_is_refused_and_not_a_byte_of_it_is_changed() {
    let server = ModelServer::start(false).await.unwrap();
    let first = left_behind(&server).await;
    let file = first.data_dir().join("agentd.db");
    let store = rusqlite::Connection::open(&file).unwrap();
    // One file with the whole store, so that its bytes can be compared.
    store
        .query_row("PRAGMA journal_mode=DELETE", [], |_| Ok(()))
        .unwrap();
    let pragma = |name: &str| -> i64 {
        let query = format!("PRAGMA {name}");
        store.query_row(&query, [], |row| row.get(0)).unwrap()
    };
    let (version, ours) = (pragma("user_version"), pragma("application_id"));
    let set = |version: i64, ours: i64| {
        let set = format!("PRAGMA user_version={version}; PRAGMA application_id={ours}");
        store.execute_batch(&set).unwrap();
        set
    };
    for (version, ours) in [
        (version + 1, ours),
        (i64::from(i32::MAX), ours),
        (version, ours + 1),
    ] {
        let other = set(version, ours);
        let bytes = std::fs::read(&file).unwrap();
        let mut second = first.again();
        assert!(!second.ready_or_over().await, "{other}");
        let code = second.ended().await.code();
        assert!(code.is_some_and(|code| code != 0), "{other}: {}", second.said());
        eventually("it says why", || second.said().contains("error:")).await;
        assert_eq!(std::fs::read(&file).unwrap(), bytes, "{other}: it was rewritten");
    }
    set(version, ours);
    drop(store);
    let again = first.restart(None).await;
    assert_eq!(
        again
            .client()
            .await
            .list(&ListParams::default())
            .await
            .unwrap()
            .len(),
        1
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn i1_sigterm_with_two_hundred_running_sessions_loses_nothing_and_a_second_one_ends_at_once() {
    let _heavy = agentd_tests::Heavy::begin().await;
    const SESSIONS: usize = 200;
    let server = ModelServer::start(false).await.unwrap();
    // A drain of this length would take too long: the second SIGTERM ends it. All calls hang at the same time, also if
    // their sessions need minutes to begin.
    let config = format!(
        "{YOLO}[node]\ndrain_timeout = \"10m\"\nwake_per_second = 1000\n[retry]\nidle_ms = 1200000\n"
    );
    let mut first = daemon(&server, &config).await;
    let client = first.client().await;
    for n in 0..SESSIONS {
        let params = CreateParams {
            prompt: Some(vec![Block::text(format!(
                "plan:t{n} steps=2 hang=1 hangs=1 command=true;"
            ))]),
            workdir: first.workdir(&format!("t{n}")),
            ..CreateParams::default()
        };
        client.create(&params).await.unwrap();
    }
    let hang = server.until(|seen| seen.open == SESSIONS as u64);
    within("all calls hang", hang).await;
    let before = Logs::told(&client).await.expect("the logs are told");
    first.terminate();
    eventually("it says that it stops", || first.said().contains("stopping")).await;
    first.signal(Signal::TERM);
    let status = first.ended().await;
    assert_eq!(status.code(), Some(0), "{}", first.said());
    let work = first.dir.path().join("work");
    eventually("I5: nothing is left", || working_in(&work).is_empty()).await;
    let stored = Logs::stored(&first.data_dir()).await;
    stored.continue_from(&before);
    let second = first.restart(None).await;
    let client = second.client().await;
    for session in stored.0.keys().map(ToString::to_string) {
        let end = Follower::attach(&client, &session).await.turn_finished(1).await;
        assert_eq!(end.reason, EndReason::Completed, "{session}");
        check_log(&client, &session).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn i6_a_log_that_was_damaged_faults_its_session_and_no_other() {
    let server = ModelServer::start(false).await.unwrap();
    let mut first = daemon(&server, YOLO).await;
    let client = first.client().await;
    let mut sessions = Vec::new();
    for name in ["good", "broken"] {
        let plan = format!("plan:{name} steps=1 command=true text=word-of-{name};");
        let id = session(&first, &client, &plan).await;
        Follower::attach(&client, &id).await.turn_finished(1).await;
        sessions.push(id);
    }
    drop(client);
    first.terminate();
    assert_eq!(first.ended().await.code(), Some(0));
    // The line of its last answer, which an older version stored without a checksum, is no longer JSON.
    let store = rusqlite::Connection::open(first.data_dir().join("agentd.db")).unwrap();
    let damage = "UPDATE event SET body = substr(body, 2), sum = NULL WHERE kind = 'turn.finished' \
                  AND body LIKE '%' || ? || '%'";
    assert_eq!(store.execute(damage, [&sessions[1]]).unwrap(), 1);
    drop(store);
    let second = first.restart(None).await;
    let client = second.client().await;
    let send = |session: &str| agentd_protocol::SendParams {
        session: session.to_owned(),
        content: vec![Block::text("plan:more text=more;")],
        ..agentd_protocol::SendParams::default()
    };
    let refused = client.send(&send(&sessions[1])).await.unwrap_err();
    assert!(refused.to_string().contains("cannot parse event"), "{refused}");
    let row = client.get(&sessions[1]).await.unwrap();
    assert_eq!(row.status.state, agentd_protocol::RunState::Faulted);
    client.send(&send(&sessions[0])).await.unwrap();
    let end = Follower::attach(&client, &sessions[0])
        .await
        .turn_finished(2)
        .await;
    assert_eq!(end.reason, EndReason::Completed);
}
