//! Many viewers of one session: all see the same; a stalled one catches up; one answer wins.

use crate::{ASKING, YOLO, daemon, session};
use agentd_bench::model_server::ModelServer;
use agentd_protocol::{DecideParams, Decision, EndReason, EventBody};
use agentd_tests::{Follower, check_log};
use tokio::task::JoinSet;

#[tokio::test(flavor = "multi_thread")]
async fn i2_fifty_viewers_that_come_and_go_see_the_same_log() {
    let server = ModelServer::start(false).await.unwrap();
    let daemon = daemon(&server, YOLO).await;
    let client = daemon.client().await;
    let session = session(&daemon, &client, "plan:v steps=20;").await;
    let mut viewers = JoinSet::new();
    for n in 0..50 {
        let session = session.clone();
        let client = daemon.client().await;
        viewers.spawn(async move {
            let mut follower = Follower::attach(&client, &session).await;
            if n % 5 == 0 {
                // This one goes away in the middle and comes back.
                follower
                    .until("some progress", |body| matches!(body, EventBody::ToolFinished(_)))
                    .await;
                follower = Follower::attach(&client, &session).await;
            }
            follower.turn_finished(1).await;
            follower.events
        });
    }
    let mut seen = Vec::new();
    while let Some(events) = viewers.join_next().await {
        seen.push(events.unwrap());
    }
    let log = check_log(&client, &session).await;
    assert!(seen.iter().all(|events| *events == log));
}

#[tokio::test(flavor = "multi_thread")]
async fn i2_i6_a_stalled_viewer_slows_nobody_and_catches_up_without_a_gap() {
    let server = ModelServer::start(true).await.unwrap();
    let config = format!("{YOLO}[limits]\nattach_ring = 16\n");
    let daemon = daemon(&server, &config).await;
    let (client, slow) = (daemon.client().await, daemon.client().await);
    let session = session(
        &daemon,
        &client,
        "plan:s steps=60 command=head_-c_20000_/dev/zero_|_tr_'\\\\0'_y;",
    )
    .await;
    // It asks to follow and then reads nothing while the session works.
    let mut stalled = Follower::attach(&slow, &session).await;
    let mut quick = Follower::attach(&client, &session).await;
    assert_eq!(quick.turn_finished(1).await.reason, EndReason::Completed);
    assert_eq!(stalled.turn_finished(1).await.reason, EndReason::Completed);
    assert_eq!(stalled.events, quick.events);
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_answers_the_first_wins_and_the_second_is_told() {
    let server = ModelServer::start(false).await.unwrap();
    let daemon = daemon(&server, ASKING).await;
    let (one, two) = (daemon.client().await, daemon.client().await);
    let session = session(&daemon, &one, "plan:t steps=1;").await;
    let mut follower = Follower::attach(&one, &session).await;
    let asked = follower
        .until("the question", |body| matches!(body, EventBody::ApprovalAsked(_)))
        .await;
    let EventBody::ApprovalAsked(asked) = asked.body else {
        unreachable!()
    };
    let answer = |decision| DecideParams {
        approval: asked.approval.to_string(),
        decision: Some(decision),
        message: Some("please use make".to_owned()),
        ..DecideParams::default()
    };
    let (allow, deny) = (answer(Decision::Allow), answer(Decision::Deny));
    let (first, second) = tokio::join!(one.decide(&allow), two.decide(&deny));
    let wins = usize::from(first.is_ok()) + usize::from(second.is_ok());
    assert_eq!(wins, 1, "{first:?} {second:?}");
    let loser = first.err().or(second.err()).unwrap();
    assert_eq!(
        agentd_protocol::Fault::from(loser).class,
        agentd_protocol::FaultClass::Conflict
    );
    assert_eq!(follower.turn_finished(1).await.reason, EndReason::Completed);
    let log = check_log(&one, &session).await;
    let decided = log
        .iter()
        .filter(|event| matches!(event.body, EventBody::ApprovalDecided(_)))
        .count();
    assert_eq!(decided, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_denial_goes_back_to_the_model_with_the_persons_words() {
    let server = ModelServer::start(true).await.unwrap();
    let daemon = daemon(&server, ASKING).await;
    let client = daemon.client().await;
    let session = session(&daemon, &client, "plan:n steps=1;").await;
    let mut follower = Follower::attach(&client, &session).await;
    follower
        .until("the question", |body| matches!(body, EventBody::ApprovalAsked(_)))
        .await;
    let decide = DecideParams {
        approval: session.clone(),
        decision: Some(Decision::Deny),
        message: Some("please use make instead".to_owned()),
        ..DecideParams::default()
    };
    client.decide(&decide).await.unwrap();
    assert_eq!(follower.turn_finished(1).await.reason, EndReason::Completed);
    let last = server.bodies().pop().unwrap();
    let last = String::from_utf8_lossy(&last);
    assert!(
        last.contains("please use make instead"),
        "the model reads it: {last}"
    );
}
