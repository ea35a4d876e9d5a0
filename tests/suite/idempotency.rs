//! Idempotency keys: a repeated request gets the same answer without a second effect; another request with it is refused.

use crate::{YOLO, daemon};
use agentd_bench::model_server::ModelServer;
use agentd_client::ClientError;
use agentd_protocol::{Block, CreateParams, EventBody, Fault, FaultClass, ListParams, SendParams};
use agentd_tests::{Follower, check_log};
use tokio::task::JoinSet;

fn class(error: ClientError) -> FaultClass {
    Fault::from(error).class
}

#[tokio::test(flavor = "multi_thread")]
async fn i1_a_key_has_one_answer_also_after_a_restart() {
    let server = ModelServer::start(false).await.unwrap();
    let mut first = daemon(&server, YOLO).await;
    let client = first.client().await;
    let create = CreateParams {
        prompt: Some(vec![Block::text("plan:k text=one;")]),
        workdir: first.workdir("project"),
        key: Some("create-1".to_owned()),
        ..CreateParams::default()
    };
    let created = client.create(&create).await.unwrap();
    assert_eq!(client.create(&create).await.unwrap(), created);
    let session = created.session.to_string();
    Follower::attach(&client, &session).await.turn_finished(1).await;
    let send = SendParams {
        session: session.clone(),
        content: vec![Block::text("plan:l text=two;")],
        key: Some("send-1".to_owned()),
        ..SendParams::default()
    };
    let sent = client.send(&send).await.unwrap();
    Follower::attach(&client, &session).await.turn_finished(2).await;
    first.kill().await;
    let second = first.restart(None).await;
    let client = second.client().await;
    assert_eq!(client.create(&create).await.unwrap(), created);
    assert_eq!(client.send(&send).await.unwrap(), sent);
    let other = CreateParams {
        title: Some("other".to_owned()),
        ..create.clone()
    };
    assert_eq!(
        class(client.create(&other).await.unwrap_err()),
        FaultClass::Conflict
    );
    let other = SendParams {
        content: vec![Block::text("something else")],
        ..send.clone()
    };
    assert_eq!(
        class(client.send(&other).await.unwrap_err()),
        FaultClass::Conflict
    );
    let crossed = SendParams {
        key: create.key.clone(),
        ..send
    };
    assert_eq!(
        class(client.send(&crossed).await.unwrap_err()),
        FaultClass::Conflict
    );
    assert_eq!(client.list(&ListParams::default()).await.unwrap().len(), 1);
    let inputs = check_log(&client, &session)
        .await
        .into_iter()
        .filter(|event| matches!(event.body, EventBody::InputAccepted(_)))
        .count();
    assert_eq!(inputs, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn i1_twenty_clients_at_once_with_one_key_make_one_session_and_one_input() {
    let server = ModelServer::start(false).await.unwrap();
    let daemon = daemon(&server, YOLO).await;
    let client = daemon.client().await;
    let create = CreateParams {
        workdir: daemon.workdir("project"),
        key: Some("the-one".to_owned()),
        ..CreateParams::default()
    };
    let mut tries = JoinSet::new();
    for _ in 0..20 {
        let (client, create) = (daemon.client().await, create.clone());
        tries.spawn(async move { client.create(&create).await.unwrap() });
    }
    let created = tries.join_all().await;
    assert!(created.iter().all(|one| *one == created[0]), "{created:?}");
    assert_eq!(client.list(&ListParams::default()).await.unwrap().len(), 1);
    let session = created[0].session.to_string();
    let mut tries = JoinSet::new();
    for _ in 0..20 {
        let send = ["send", "-q", "--key", "again", &session, "plan:a;"].map(str::to_owned);
        let daemon_send = daemon
            .agentctl_command(&send.each_ref().map(String::as_str))
            .output();
        tries.spawn(daemon_send);
    }
    let answers: Vec<_> = tries
        .join_all()
        .await
        .into_iter()
        .map(|output| String::from_utf8_lossy(&output.unwrap().stdout).into_owned())
        .collect();
    assert!(
        !answers[0].is_empty() && answers.iter().all(|one| *one == answers[0]),
        "{answers:?}"
    );
    Follower::attach(&client, &session).await.turn_finished(1).await;
    assert_eq!(server.seen().requests, 1, "no other request disturbed the turn");
    let inputs = check_log(&client, &session)
        .await
        .into_iter()
        .filter(|event| matches!(event.body, EventBody::InputAccepted(_)))
        .count();
    assert_eq!(inputs, 1);
}
