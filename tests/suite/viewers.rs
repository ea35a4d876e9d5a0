//! Many viewers of one session: all see the same events; a stalled one catches up; the first answer wins.

use crate::{ASKING, YOLO, daemon, session};
use agentd_bench::model_server::ModelServer;
use agentd_protocol::{DecideParams, Decision, EndReason, EventBody};
use agentd_tests::{Daemon, Follower, Way, check_log, eventually};
use tokio::task::JoinSet;

/// Capacity for the requests of all viewers. Nobody is cut off for reading slowly, unless a test adds that.
const MANY: &str = "[http]\nlisten = \"127.0.0.1:0\"\nrequests_per_second = 100000\n";

/// Two hundred viewers of one session, some of which disconnect and reconnect: all see the log.
async fn come_and_go(daemon: &Daemon, way: &Way) {
    let client = daemon.client().await;
    let session = session(daemon, &client, "plan:v steps=20 tool=read;").await;
    let mut viewers = JoinSet::new();
    for n in 0..200 {
        let (session, way) = (session.clone(), way.clone());
        viewers.spawn(async move {
            let mut follower = way.follow(&session).await;
            if n % 5 == 0 {
                follower
                    .until("some progress", |body| matches!(body, EventBody::ToolFinished(_)))
                    .await;
                follower.resume(&way).await;
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
async fn i2_i6_two_hundred_viewers_that_come_and_go_see_the_same_log() {
    let server = ModelServer::start(false).await.unwrap();
    let daemon = daemon(&server, YOLO).await;
    come_and_go(&daemon, &daemon.over_socket()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn i2_i6_two_hundred_viewers_over_http_that_come_and_go_see_the_same_log() {
    let server = ModelServer::start(false).await.unwrap();
    let daemon = daemon(&server, &format!("{YOLO}{MANY}")).await;
    come_and_go(&daemon, &daemon.over_http().await).await;
}

/// A viewer that attaches and then reads nothing while the session works, and one that reads all.
async fn stall(daemon: &Daemon, way: &Way) -> (Follower, Follower) {
    let client = daemon.client().await;
    let plan = "plan:s steps=60 command=head_-c_20000_/dev/zero_|_tr_'\\\\0'_y;";
    let session = session(daemon, &client, plan).await;
    let stalled = way.follow(&session).await;
    let mut quick = way.follow(&session).await;
    assert_eq!(quick.turn_finished(1).await.reason, EndReason::Completed);
    (stalled, quick)
}

#[tokio::test(flavor = "multi_thread")]
async fn i2_i6_a_stalled_viewer_slows_nobody_and_catches_up_without_a_gap() {
    let server = ModelServer::start(true).await.unwrap();
    // However slow the machine is, the stalled viewer is not disconnected.
    let http = "[http]\nlisten = \"127.0.0.1:0\"\nstall_ms = 86400000\n";
    let config = format!("{YOLO}{http}[limits]\nattach_ring = 16\n");
    let daemon = daemon(&server, &config).await;
    for way in [daemon.over_socket(), daemon.over_http().await] {
        let (mut stalled, quick) = stall(&daemon, &way).await;
        assert_eq!(stalled.turn_finished(1).await.reason, EndReason::Completed);
        // The client of the socket reads ahead.
        assert!(stalled.lagged || matches!(way, Way::Socket(_)), "it is told");
        assert_eq!(stalled.events, quick.events);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn i2_i6_a_viewer_over_http_that_never_reads_is_cut_and_resumes_without_a_gap() {
    let server = ModelServer::start(true).await.unwrap();
    let config = format!("{YOLO}{MANY}stall_ms = 10000\n[limits]\nattach_ring = 16\n");
    let daemon = daemon(&server, &config).await;
    let way = daemon.over_http().await;
    let (mut stalled, quick) = stall(&daemon, &way).await;
    let log = daemon.data_dir().join("logs/agentd.log");
    eventually("it is cut", || {
        std::fs::read_to_string(&log).is_ok_and(|log| log.contains("stopped reading"))
    })
    .await;
    while stalled.next().await.is_some() {}
    assert!(stalled.events.len() < quick.events.len(), "the rest is lost");
    stalled.resume(&way).await;
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
        policy: true,
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
