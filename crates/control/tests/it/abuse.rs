//! Clients that break the rules. Each is told, and costs nobody else anything.

use crate::wire_client::{Raw, Server};
use agentd_protocol::FaultClass;
use agentd_wire::{ClientFrame, ServerFrame, VersionRange, encode};
use serde_json::json;
use tokio::io::AsyncWriteExt;

async fn write(raw: &mut Raw, bytes: &[u8]) {
    raw.stream.write_all(bytes).await.unwrap();
}

#[tokio::test]
async fn redteam_49_a_malformed_frame_gets_a_fault_and_closes_only_its_connection() {
    let server = Server::start(|_| {}).await;
    let mut other = server.client().await;
    let junk: [&[u8]; 4] = [
        b"\x00\x00\x00\x01\x90",
        b"\x00\x00\x00\x02\x81\xa1",
        b"GET ",
        b"\x00\x00\x00\x01\x80",
    ];
    let codes = [
        "malformed_frame",
        "malformed_frame",
        "frame_too_large",
        "malformed_frame",
    ];
    for (bytes, code) in junk.iter().zip(codes) {
        let mut raw = server.client().await;
        write(&mut raw, bytes).await;
        assert_eq!(raw.last_word().await.as_deref(), Some(code), "{bytes:?}");
    }
    let mut early = server.silent().await;
    write(&mut early, junk[0]).await;
    assert_eq!(early.last_word().await.as_deref(), Some("malformed_frame"));
    other.ok("node.status", json!({})).await;
}

#[tokio::test]
async fn a_frame_over_the_limit_closes_the_connection_and_an_input_over_its_limit_does_not() {
    let server = Server::start(|settings| {
        settings.limits.max_frame_bytes = 10_000;
        settings.limits.max_input_bytes = 1_000;
    })
    .await;
    server.h.session("a").await;
    let say = |length| json!({ "session": "a", "content": [{ "type": "text", "text": "x".repeat(length) }] });
    let mut raw = server.client().await;
    match raw.call(5, "input.send", say(1_001)).await {
        ServerFrame::Fault { id: Some(5), fault } => {
            assert_eq!(
                (fault.class, fault.code.as_str()),
                (FaultClass::Limit, "input_too_large")
            );
        }
        other => panic!("not refused: {other:?}"),
    }
    raw.ok("input.send", say(1_000)).await;
    raw.request(6, "input.send", say(10_001)).await;
    assert_eq!(raw.last_word().await.as_deref(), Some("frame_too_large"));
}

#[tokio::test]
async fn an_unknown_method_is_a_fault_and_the_connection_lives() {
    let server = Server::start(|_| {}).await;
    let mut raw = server.client().await;
    match raw.call(7, "session.creat", json!({})).await {
        ServerFrame::Fault { id: Some(7), fault } => assert_eq!(fault.code, "unknown_method"),
        other => panic!("not refused: {other:?}"),
    }
    raw.ok("node.status", json!({})).await;
}

#[tokio::test]
async fn a_version_that_we_do_not_speak_is_refused() {
    let server = Server::start(|_| {}).await;
    let mut raw = server.silent().await;
    raw.hello(VersionRange { min: 7, max: 9 }).await;
    match raw.next().await {
        Some(ServerFrame::Fault { id: None, fault }) => assert_eq!(fault.class, FaultClass::Version),
        other => panic!("not refused: {other:?}"),
    }
    assert_eq!(raw.next().await, None);
}

#[tokio::test]
async fn the_first_frame_is_a_hello_and_no_other_is() {
    let server = Server::start(|_| {}).await;
    let mut raw = server.silent().await;
    raw.request(1, "node.status", json!({})).await;
    assert_eq!(raw.last_word().await.as_deref(), Some("hello_missing"));
    let mut twice = server.client().await;
    twice.hello(VersionRange::OURS).await;
    assert_eq!(twice.last_word().await.as_deref(), Some("hello_again"));
}

#[tokio::test]
async fn redteam_50_i6_a_client_that_says_nothing_or_stops_inside_a_frame_is_given_up() {
    let server = Server::start(|_| {}).await;
    let mut mute = server.silent().await;
    let mut slow = server.client().await;
    let whole = encode(&json!({ "id": 1, "method": "node.status" }), 1_000).unwrap();
    write(&mut slow, &whole[..whole.len() - 1]).await;
    // From here the clock runs ahead whenever everybody waits.
    tokio::time::pause();
    assert_eq!(mute.last_word().await.as_deref(), Some("hello_late"));
    assert_eq!(slow.last_word().await.as_deref(), Some("frame_late"));
}

#[tokio::test]
async fn redteam_50_i6_connections_over_the_limit_are_told_and_the_others_go_on() {
    let server = Server::start(|settings| settings.limits.connections = 2).await;
    let (mut a, b) = (server.client().await, server.client().await);
    let mut c = server.silent().await;
    assert_eq!(c.last_word().await.as_deref(), Some("too_many_connections"));
    a.ok("node.status", json!({})).await;
    drop(b);
    // The place is free once the daemon has noticed.
    loop {
        let mut raw = server.silent().await;
        if raw.stream.write_all(&hello()).await.is_ok()
            && let Some(ServerFrame::Welcome(_)) = raw.next().await
        {
            break;
        }
    }
}

fn hello() -> Vec<u8> {
    let hello = agentd_wire::Hello {
        protocol: VersionRange::OURS,
        client: "x".into(),
        token: None,
    };
    encode(&ClientFrame::Hello(hello), 1_000).unwrap()
}

#[tokio::test]
async fn subscriptions_of_one_connection_are_bounded() {
    let server = Server::start(|_| {}).await;
    let mut raw = server.client().await;
    for _ in 0..256 {
        raw.ok("fleet.watch", json!({})).await;
    }
    match raw.call(9, "fleet.watch", json!({})).await {
        ServerFrame::Fault { fault, .. } => assert_eq!(fault.code, "too_many_subscriptions"),
        other => panic!("not refused: {other:?}"),
    }
}
