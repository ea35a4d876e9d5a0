//! A client that leaves while its request is carried out.

use crate::{YOLO, daemon};
use agentd_bench::model_server::ModelServer;
use agentd_protocol::{ApplyParams, Block, CreateParams, EventBody};
use agentd_tests::{Follower, check_log};
use std::fs;

#[tokio::test(flavor = "multi_thread")]
async fn a_transfer_is_recorded_to_its_end_when_its_client_leaves() {
    let server = ModelServer::start(false).await.unwrap();
    let daemon = daemon(&server, &format!("{YOLO}[workspace]\ncheckpoint = \"step\"\n")).await;
    let client = daemon.client().await;
    // So many files that the transfer takes longer than a client needs to leave.
    let params = CreateParams {
        prompt: Some(vec![Block::text("plan:a steps=1 command=seq_400_|_xargs_touch;")]),
        workdir: daemon.workdir("project"),
        ..CreateParams::default()
    };
    let session = client.create(&params).await.unwrap().session.to_string();
    let mut follower = Follower::attach(&client, &session).await;
    follower.turn_finished(1).await;
    let to = daemon.workdir("to");
    let (leaving, apply) = (
        daemon.client().await,
        ApplyParams {
            session: session.clone(),
            to: to.clone(),
            dry_run: false,
        },
    );
    let request = tokio::spawn(async move { leaving.apply(&apply).await });
    let started = |body: &EventBody| matches!(body, EventBody::TransferStarted(_));
    follower.until("the transfer begins", started).await;
    request.abort();
    let finished = |body: &EventBody| matches!(body, EventBody::TransferFinished(_));
    let end = follower
        .until("the transfer is recorded to its end", finished)
        .await;
    let EventBody::TransferFinished(end) = end.body else {
        unreachable!("it was looked for")
    };
    assert_eq!((end.files, end.error), (400, None));
    assert_eq!(fs::read_dir(&to).unwrap().count(), 400);
    check_log(&client, &session).await;
}
