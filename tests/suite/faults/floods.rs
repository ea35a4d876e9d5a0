//! Clients that come without end, die in the middle of a word, or ask more than anybody can answer.

use crate::{YOLO, daemon, session};
use agentd_bench::model_server::ModelServer;
use agentd_client::{Client, ClientError, ConnectOptions};
use agentd_protocol::{AttachParams, Block, EndReason, FaultClass, SendParams};
use agentd_tests::{Follower, check_log, status_of};
use tokio::io::AsyncWriteExt as _;
use tokio::net::UnixStream;

#[tokio::test(flavor = "multi_thread")]
async fn i2_i6_a_viewer_that_connects_a_thousand_times_costs_the_agent_nothing() {
    const TIMES: usize = 1_000;
    let server = ModelServer::start(false).await.unwrap();
    let daemon = daemon(&server, YOLO).await;
    let client = daemon.client().await;
    let session = session(&daemon, &client, "plan:r steps=40 command=echo_{n}_>>_marks;").await;
    let mut last = None;
    let mut seen = Vec::new();
    for n in 0..TIMES {
        // Every third one dies in the middle of a frame that it began.
        if n % 3 == 0 {
            let mut stream = UnixStream::connect(daemon.socket()).await.unwrap();
            stream.write_all(&[0, 0, 1, 0, 0x82]).await.unwrap();
            continue;
        }
        let viewer = Client::connect(&daemon.socket(), &ConnectOptions::default())
            .await
            .unwrap();
        let params = AttachParams {
            session: session.clone(),
            after_seq: last,
            deltas: true,
            ..AttachParams::default()
        };
        let mut subscription = viewer.attach(&params).await.unwrap();
        while let Some(push) = subscription.next().await {
            match push {
                agentd_client::Push::Event(stored) => {
                    let event: agentd_protocol::Event = serde_json::from_slice(&stored.json).unwrap();
                    last = Some(event.seq);
                    seen.push(event);
                }
                agentd_client::Push::Synced(_) => break,
                _ => {}
            }
        }
    }
    let mut follower = Follower::attach(&client, &session).await;
    assert_eq!(follower.turn_finished(1).await.reason, EndReason::Completed);
    let log = check_log(&client, &session).await;
    assert!(
        log.starts_with(&seen),
        "I2: over all connections each event came once and in order"
    );
    let marks = std::fs::read_to_string(format!("{}/marks", daemon.workdir("project"))).unwrap();
    assert_eq!(marks.lines().count(), 40);
}

#[tokio::test(flavor = "multi_thread")]
async fn i6_a_flood_of_commands_for_one_session_is_refused_and_memory_stays_flat() {
    const CLIENTS: usize = 8;
    const EACH: usize = 4_000;
    const ROOM_KIB: u64 = 96 << 10;
    let server = ModelServer::start(false).await.unwrap();
    let daemon = daemon(&server, YOLO).await;
    let client = daemon.client().await;
    // A model that hangs: nothing is taken out of the queue.
    let busy = session(&daemon, &client, "plan:f steps=1 hang=0;").await;
    Follower::attach(&client, &busy)
        .await
        .until_text("Thinking")
        .await;
    let before = status_of(daemon.pid(), "VmRSS");
    let mut flood = tokio::task::JoinSet::new();
    for _ in 0..CLIENTS {
        let client = daemon.client().await;
        let params = SendParams {
            session: busy.clone(),
            content: vec![Block::text("more ".repeat(100))],
            delivery: Some(agentd_protocol::Delivery::Queue),
            ..SendParams::default()
        };
        flood.spawn(async move {
            let mut refused = 0;
            for _ in 0..EACH / 50 {
                let many = (0..50).map(|_| client.send(&params));
                for answer in futures_util::future::join_all(many).await {
                    match answer {
                        Ok(_) => {}
                        Err(ClientError::Refused(fault)) => {
                            assert!(
                                matches!(fault.class, FaultClass::Busy | FaultClass::Limit),
                                "{fault}"
                            );
                            refused += 1;
                        }
                        Err(error) => panic!("{error}"),
                    }
                }
            }
            refused
        });
    }
    let mut refused = 0;
    while let Some(done) = flood.join_next().await {
        refused += done.unwrap();
    }
    assert!(refused > CLIENTS * EACH * 9 / 10, "{refused} were refused");
    let after = status_of(daemon.pid(), "VmRSS");
    assert!(after < before + ROOM_KIB, "{before} KiB became {after} KiB");
    // The others go on, and so does this one.
    let other = session(&daemon, &client, "plan:o steps=1 command=true;").await;
    assert_eq!(
        Follower::attach(&client, &other)
            .await
            .turn_finished(1)
            .await
            .reason,
        EndReason::Completed
    );
    check_log(&client, &busy).await;
}
