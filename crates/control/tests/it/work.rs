//! Clients that follow the protocol.

use crate::harness::Harness;
use crate::wire_client::Server;
use agentd_protocol::*;
use agentd_wire::{Push, ServerFrame};
use serde_json::json;
use std::collections::BTreeSet;
use tokio::io::AsyncWriteExt;

fn seq_of(json: &[u8]) -> Seq {
    serde_json::from_slice::<Event>(json).unwrap().seq
}

#[tokio::test]
async fn the_welcome_names_node_version_and_limits() {
    let server = Server::start(|_| {}).await;
    let mut raw = server.silent().await;
    raw.hello(agentd_wire::VersionRange { min: 0, max: 9 }).await;
    let Some(ServerFrame::Welcome(welcome)) = raw.next().await else {
        panic!("no welcome")
    };
    assert_eq!((welcome.protocol, welcome.node.as_str()), (1, "a1"));
    assert_eq!(welcome.scopes, ["read", "steer", "approve", "import", "admin"]);
    assert!(welcome.principal.0.starts_with("user:"));
    assert_eq!(welcome.limits.max_in_flight, 64);
}

#[tokio::test]
async fn all_concurrent_requests_are_answered() {
    let server = Server::start(|_| {}).await;
    server.h.session("a").await;
    let mut raw = server.client().await;
    for id in 0..500 {
        raw.request(id, "session.get", json!({ "session": "a" })).await;
    }
    let mut answered = BTreeSet::new();
    while answered.len() < 500 {
        match raw.next().await.unwrap() {
            ServerFrame::Ok { id, .. } => assert!(answered.insert(id)),
            other => panic!("not ok: {other:?}"),
        }
    }
}

#[tokio::test]
async fn a_client_that_half_closes_still_gets_its_answer() {
    let server = Server::start(|_| {}).await;
    let mut raw = server.client().await;
    raw.request(3, "node.status", json!({})).await;
    raw.stream.shutdown().await.unwrap();
    assert!(matches!(raw.next().await, Some(ServerFrame::Ok { id: 3, .. })));
    assert_eq!(raw.next().await, None);
}

#[tokio::test]
async fn i2_a_stalled_socket_viewer_catches_up_with_every_event_once() {
    let server = Server::start(|settings| settings.limits.attach_ring = 16).await;
    let session = server.h.session("a").await;
    let mut stalled = server.client().await;
    stalled
        .ok("session.attach", json!({ "session": "a", "deltas": true }))
        .await;
    let mut quick = server.client().await;
    quick.ok("session.attach", json!({ "session": "a" })).await;
    let text = "x".repeat(20_000);
    let mut seen = 0;
    for n in 2..=160 {
        assert_eq!(server.h.log.note(session, &text).await, n);
        while seen < n {
            if let Push::Event(event) = quick.push().await {
                seen += 1;
                assert_eq!(seq_of(&event.json), seen);
            }
        }
    }
    let (mut seen, mut lagged) = (0, false);
    while seen < 160 {
        match stalled.push().await {
            Push::Event(event) => {
                seen += 1;
                assert_eq!(seq_of(&event.json), seen);
            }
            Push::Lagged(Lagged { after_seq }) => {
                assert_eq!(after_seq, seen);
                lagged = true;
            }
            Push::Synced(synced) => assert_eq!(synced.seq, seen),
            Push::Delta(delta) => assert!(matches!(delta, Delta::Viewers { .. }), "{delta:?}"),
            other => panic!("unexpected: {other:?}"),
        }
    }
    assert!(
        lagged,
        "160 events of 20 kB fit into the queues of a viewer that reads nothing"
    );
}

#[tokio::test]
async fn the_first_of_two_deciding_clients_wins_and_both_learn_the_result() {
    let server = Server::start(|_| {}).await;
    let session = server.h.session("a").await;
    let approval = server.h.log.ask(session, "run x").await;
    let (mut a, mut b, mut viewer) = (
        server.client().await,
        server.client().await,
        server.client().await,
    );
    viewer
        .ok("session.attach", json!({ "session": "a", "tail": 0 }))
        .await;
    let Push::Synced(synced) = viewer.push().await else {
        panic!("not synced")
    };
    assert_eq!(synced.approvals[0].approval, approval);
    let decide = |decision: &str| json!({ "approval": approval.to_string(), "decision": decision, "policy": decision == "allow" });
    let (a, b) = tokio::join!(
        a.call(1, "approval.decide", decide("allow")),
        b.call(2, "approval.decide", decide("deny")),
    );
    let classes = [a, b].map(|answer| match answer {
        ServerFrame::Ok { .. } => None,
        ServerFrame::Fault { fault, .. } => Some(fault.class),
        other => panic!("no answer: {other:?}"),
    });
    assert!(
        classes.contains(&None) && classes.contains(&Some(FaultClass::Conflict)),
        "{classes:?}"
    );
    let Push::Event(event) = viewer.push().await else {
        panic!("no event")
    };
    assert!(String::from_utf8_lossy(&event.json).contains("approval.decided"));
}

#[tokio::test]
async fn a_detached_subscription_stops_and_others_continue() {
    let server = Server::start(|_| {}).await;
    let session = server.h.session("a").await;
    let mut raw = server.client().await;
    let first: Subscribed = serde_json::from_value(
        raw.ok("session.attach", json!({ "session": "a", "tail": 0 }))
            .await,
    )
    .unwrap();
    assert!(matches!(raw.push().await, Push::Synced(_)));
    raw.ok("session.detach", json!({ "sub": first.sub })).await;
    match raw.call(2, "session.detach", json!({ "sub": first.sub })).await {
        ServerFrame::Fault { fault, .. } => assert_eq!(fault.code, "unknown_subscription"),
        other => panic!("not refused: {other:?}"),
    }
    let second: Subscribed = serde_json::from_value(
        raw.ok("session.attach", json!({ "session": "a", "tail": 0 }))
            .await,
    )
    .unwrap();
    assert!(matches!(raw.push().await, Push::Synced(_)));
    server.h.log.note(session, "x").await;
    match raw.next().await {
        Some(ServerFrame::Push {
            sub,
            push: Push::Event(_),
        }) => assert_eq!(sub, second.sub),
        other => panic!("not the event: {other:?}"),
    }
}

#[tokio::test]
async fn open_connections_are_counted() {
    let server = Server::start(|_| {}).await;
    let _other = server.client().await;
    let status = server.client().await.ok("node.status", json!({})).await;
    assert_eq!(status["connections"], json!(2));
    assert!(Harness::ana().0.starts_with("user:"));
}
