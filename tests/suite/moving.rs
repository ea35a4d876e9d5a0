//! `agentctl resume ID -C DIR`: a session works in another directory from then on.

use crate::{YOLO, daemon, session};
use agentd_bench::model_server::ModelServer;
use agentd_client::Client;
use agentd_protocol::{Block, EventBody, RunState, SendParams};
use agentd_tests::{Follower, found};
use std::fs;

async fn send(client: &Client, session: &str, words: &str) {
    let params = SendParams {
        session: session.to_owned(),
        content: vec![Block::text(words)],
        ..SendParams::default()
    };
    client.send(&params).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_works_in_another_directory_but_does_not_move_during_a_call() {
    let server = ModelServer::start(false).await.unwrap();
    let mut daemon = daemon(&server, YOLO).await;
    let client = daemon.client().await;
    let id = session(&daemon, &client, "plan:first steps=1 command=pwd_>_here;").await;
    Follower::attach(&client, &id).await.turn_finished(1).await;
    let old = client.get(&id).await.unwrap().workdir;
    let dir = tempfile::tempdir().unwrap();
    let new = dir.path().canonicalize().unwrap().display().to_string();

    let above = daemon.data_dir().parent().unwrap().display().to_string();
    for (bad, why) in [
        ("/nowhere/at/all", "/nowhere/at/all"),
        (above.as_str(), "data directory"),
    ] {
        let refused = daemon.agentctl(&["resume", &id, "-C", bad]).await;
        assert!(
            refused.code != Some(0) && refused.stderr.contains(why),
            "{}",
            refused.stderr
        );
        assert_eq!(client.get(&id).await.unwrap().workdir, old);
    }
    let moved = daemon.agentctl(&["resume", &id, "-C", &new]).await;
    assert_eq!(moved.code, Some(0), "{}", moved.stderr);
    assert!(moved.stderr.contains(&new), "{}", moved.stderr);
    send(&client, &id, "plan:second steps=1 command=pwd_>_here;").await;
    let mut follower = Follower::attach(&client, &id).await;
    follower.turn_finished(2).await;
    let place = |dir: &str| {
        fs::read_to_string(format!("{dir}/here"))
            .unwrap()
            .trim()
            .to_owned()
    };
    assert_eq!((place(&old), place(&new)), (old.clone(), new.clone()));
    let told = |body: &EventBody| matches!(body, EventBody::NoteInjected(note) if note.text.contains(&new));
    assert!(
        follower.events.iter().any(|event| told(&event.body)),
        "the model is told"
    );

    // A model call is open: its answer may name files of the present directory.
    send(&client, &id, "plan:third steps=1 hang=1;").await;
    found("the third turn calls the model", async || {
        let state = client.get(&id).await.unwrap().status.state;
        (state == RunState::RunningModel).then_some(())
    })
    .await;
    let refused = daemon.agentctl(&["resume", &id, "-C", &old]).await;
    assert!(
        refused.stderr.contains("a call of the session is open"),
        "{}",
        refused.stderr
    );
    assert_eq!(client.get(&id).await.unwrap().workdir, new);

    daemon.kill().await;
    let mut daemon = daemon.again();
    assert!(daemon.ready_or_over().await, "{}", daemon.said());
    let client = daemon.client().await;
    assert_eq!(client.get(&id).await.unwrap().workdir, new, "it is durable");
}
