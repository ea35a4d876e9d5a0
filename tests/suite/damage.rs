//! Bytes of the store change on disk, but still parse as an event.

use crate::{YOLO, daemon, session};
use agentd_bench::model_server::ModelServer;
use agentd_protocol::{Block, EndReason, RunState, SendParams};
use agentd_tests::{Follower, eventually};

#[tokio::test(flavor = "multi_thread")]
async fn i6_i7_a_changed_event_that_is_still_one_faults_its_session_and_no_other_and_doctor_finds_it() {
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
    let sound = first.agentctl(&["doctor"]).await;
    assert!(sound.stdout.contains("none in "), "{}", sound.stdout);
    drop(client);
    first.terminate();
    assert_eq!(first.ended().await.code(), Some(0));
    let store = rusqlite::Connection::open(first.data_dir().join("agentd.db")).unwrap();
    let damage = "UPDATE event SET body = replace(body, '\"completed\"', '\"cancelled\"') \
                  WHERE kind = 'turn.finished' AND body LIKE '%' || ? || '%' RETURNING seq";
    let seq: i64 = store.query_row(damage, [&sessions[1]], |row| row.get(0)).unwrap();
    drop(store);
    let second = first.restart(None).await;
    let client = second.client().await;
    let send = |session: &str| SendParams {
        session: session.to_owned(),
        content: vec![Block::text("plan:more text=more;")],
        ..SendParams::default()
    };
    let refused = client.send(&send(&sessions[1])).await.unwrap_err().to_string();
    assert!(
        refused.contains(&format!("event {seq} of the log is damaged")),
        "{refused}"
    );
    let row = client.get(&sessions[1]).await.unwrap();
    assert_eq!(row.status.state, RunState::Faulted);
    client.send(&send(&sessions[0])).await.unwrap();
    let end = Follower::attach(&client, &sessions[0])
        .await
        .turn_finished(2)
        .await;
    assert_eq!(end.reason, EndReason::Completed);
    let said = second.agentctl(&["doctor"]).await;
    assert_eq!(said.code, Some(1), "{}", said.stdout);
    let told = format!("the bytes of event {seq} do not match what was written");
    assert!(said.stdout.contains(&told), "{}", said.stdout);
}

/// A flipped bit in one session's list row used to fail `ps`, approvals and usage for the whole fleet, and no open session
/// continued after a restart.
#[tokio::test(flavor = "multi_thread")]
async fn i6_a_damaged_list_row_costs_its_session_nothing_and_the_others_neither() {
    let server = ModelServer::start(false).await.unwrap();
    let mut first = daemon(&server, YOLO).await;
    let client = first.client().await;
    let mut sessions = Vec::new();
    for name in ["good", "broken"] {
        let id = session(&first, &client, &format!("plan:{name} text=word-of-{name};")).await;
        Follower::attach(&client, &id).await.turn_finished(1).await;
        sessions.push(id);
    }
    drop(client);
    first.terminate();
    assert_eq!(first.ended().await.code(), Some(0));
    let store = rusqlite::Connection::open(first.data_dir().join("agentd.db")).unwrap();
    let uid = sessions[1].replace('-', "");
    let damage = "UPDATE session SET summary = 'x' || substr(summary, 2), labels = '}' WHERE uid = ?";
    assert_eq!(store.execute(damage, [&uid]).unwrap(), 1);
    drop(store);
    let second = first.restart(None).await;
    for list in [
        &["ps", "-a"][..],
        &["approvals"],
        &["usage"],
        &["ps", "-l", "team=x"],
    ] {
        let said = second.agentctl(list).await;
        assert_eq!(said.code, Some(0), "{list:?}: {}{}", said.stdout, said.stderr);
    }
    // The start finds the damaged row, loads its session, and rewrites the row.
    eventually("the row is rebuilt from the log", || {
        second
            .said()
            .contains("rebuilt the damaged list row from the log")
    })
    .await;
    let client = second.client().await;
    assert!(client.get(&sessions[1]).await.unwrap().name.contains("broken"));
    let send = SendParams {
        session: sessions[1].clone(),
        content: vec![Block::text("plan:more text=more;")],
        ..SendParams::default()
    };
    client.send(&send).await.unwrap();
    let end = Follower::attach(&client, &sessions[1])
        .await
        .turn_finished(2)
        .await;
    assert_eq!(end.reason, EndReason::Completed);
    let sound = second.agentctl(&["doctor"]).await;
    assert!(sound.stdout.contains("none in "), "{}", sound.stdout);
}
