//! Cancel in every phase: fast, every open call closed, approvals withdrawn, partial text kept.

use crate::{ASKING, YOLO, daemon, session};
use agentd_bench::model_server::ModelServer;
use agentd_client::Client;
use agentd_protocol::{CancelTurnParams, Decision, EndReason, EventBody, FailureClass, ToolStatus};
use agentd_tests::{Follower, check_log, eventually, marked, within};

async fn cancel(client: &Client, session: &str) {
    client
        .cancel_turn(&CancelTurnParams {
            session: session.to_owned(),
            ..CancelTurnParams::default()
        })
        .await
        .unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_streaming_call_is_dropped_at_once_and_its_text_is_kept() {
    let server = ModelServer::start(false).await.unwrap();
    let daemon = daemon(&server, YOLO).await;
    let client = daemon.client().await;
    let session = session(&daemon, &client, "plan:c hang=0;").await;
    let mut follower = Follower::attach(&client, &session).await;
    follower.until_text("about it").await;
    cancel(&client, &session).await;
    let dropped = server.until(|seen| seen.dropped == 1 && seen.open == 0);
    within("the call is dropped", dropped).await;
    assert_eq!(follower.turn_finished(1).await.reason, EndReason::Cancelled);
    let failed = follower
        .until("the end of the call", |body| {
            matches!(body, EventBody::ModelFailed(_))
        })
        .await;
    let EventBody::ModelFailed(failure) = failed.body else {
        unreachable!()
    };
    assert_eq!(
        (failure.class, failure.partial.as_deref()),
        (FailureClass::Cancelled, Some("Thinking about it"))
    );
    check_log(&client, &session).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn i3_i5_a_running_command_is_killed_within_a_second_even_when_it_ignores_term() {
    let server = ModelServer::start(false).await.unwrap();
    let daemon = daemon(&server, YOLO).await;
    let client = daemon.client().await;
    let mark = format!("87654{}", std::process::id());
    let plan = format!("plan:k steps=1 command=trap_''_TERM;_sleep_{mark};");
    // The first `;` would end the plan, so the command avoids it.
    let plan = plan.replace("TERM;_sleep", "TERM_&&_sleep");
    let session = session(&daemon, &client, &plan).await;
    let mut follower = Follower::attach(&client, &session).await;
    let needle = format!("sleep\0{mark}");
    eventually("the command runs", || !marked(&needle).is_empty()).await;
    cancel(&client, &session).await;
    let end = follower.turn_finished(1).await;
    assert_eq!(end.reason, EndReason::Cancelled);
    let done = follower
        .until("the result", |body| matches!(body, EventBody::ToolFinished(_)))
        .await;
    assert!(matches!(&done.body, EventBody::ToolFinished(d) if d.outcome.status == ToolStatus::Interrupted));
    eventually("I5: the command is gone", || marked(&needle).is_empty()).await;
    check_log(&client, &session).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_open_approval_is_withdrawn() {
    let server = ModelServer::start(false).await.unwrap();
    let daemon = daemon(&server, ASKING).await;
    let client = daemon.client().await;
    let session = session(&daemon, &client, "plan:w steps=1;").await;
    let mut follower = Follower::attach(&client, &session).await;
    follower
        .until("the question", |body| matches!(body, EventBody::ApprovalAsked(_)))
        .await;
    cancel(&client, &session).await;
    let decided = follower
        .until("the withdrawal", |body| {
            matches!(body, EventBody::ApprovalDecided(_))
        })
        .await;
    assert!(matches!(&decided.body, EventBody::ApprovalDecided(d) if d.decision == Decision::Withdrawn));
    assert_eq!(follower.turn_finished(1).await.reason, EndReason::Cancelled);
    check_log(&client, &session).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_backs_off_is_cancelled_without_waiting() {
    let server = ModelServer::start(false).await.unwrap();
    let daemon = daemon(&server, YOLO).await;
    let client = daemon.client().await;
    let session = session(&daemon, &client, "plan:b fail=9:529:3600;").await;
    let mut follower = Follower::attach(&client, &session).await;
    follower
        .until("the failure", |body| matches!(body, EventBody::ModelFailed(_)))
        .await;
    cancel(&client, &session).await;
    assert_eq!(follower.turn_finished(1).await.reason, EndReason::Cancelled);
    let again = client
        .cancel_turn(&CancelTurnParams {
            session: session.clone(),
            ..CancelTurnParams::default()
        })
        .await;
    assert!(again.is_err(), "there is nothing left to cancel");
    check_log(&client, &session).await;
}
