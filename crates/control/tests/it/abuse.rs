//! Clients that break the protocol. Each gets a fault, and none affects the others.

use crate::wire_client::{Raw, Server};
use agentd_protocol::FaultClass;
use agentd_settings::Settings;
use agentd_wire::{ClientFrame, ServerFrame, VersionRange, encode};
use serde_json::{Value, json};
use std::pin::{Pin, pin};
use tokio::io::AsyncWriteExt;

async fn write(raw: &mut Raw, bytes: &[u8]) {
    raw.stream.write_all(bytes).await.unwrap();
}

#[tokio::test]
async fn redteam_49_a_malformed_frame_gets_a_fault_and_closes_only_its_connection() {
    let server = Server::start(|_| {}).await;
    let mut other = server.client().await;
    let junk: [&[u8]; 3] = [b"\x00\x00\x00\x01\x90", b"\x00\x00\x00\x02\x81\xa1", b"GET "];
    let codes = ["malformed_frame", "malformed_frame", "frame_too_large"];
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
async fn an_unknown_method_is_a_fault_and_the_connection_stays_open() {
    let server = Server::start(|_| {}).await;
    let mut raw = server.client().await;
    match raw.call(7, "session.creat", json!({})).await {
        ServerFrame::Fault { id: Some(7), fault } => assert_eq!(fault.code, "unknown_method"),
        other => panic!("not refused: {other:?}"),
    }
    raw.ok("node.status", json!({})).await;
}

#[tokio::test]
async fn a_request_with_an_invalid_field_names_it_and_the_connection_stays_open() {
    let server = Server::start(|_| {}).await;
    let mut raw = server.client().await;
    let body = b"\x82\xa2id\xa1a\xa6method\xacsession.list";
    write(
        &mut raw,
        &[&(u32::try_from(body.len()).unwrap()).to_be_bytes()[..], body].concat(),
    )
    .await;
    match raw.next().await {
        Some(ServerFrame::Fault { id: None, fault }) => {
            assert_eq!(fault.code, "bad_frame");
            assert!(fault.message.contains("id: expected an unsigned"), "{fault:?}");
        }
        other => panic!("not refused: {other:?}"),
    }
    for (id, params, says) in [
        (2, Value::Null, "params: expected a map with named keys, not null"),
        (
            3,
            json!(["work"]),
            "params: expected a map with named keys, not a list",
        ),
        (
            4,
            json!({"workdir": 5}),
            "params: workdir: invalid type: integer `5`, expected a string",
        ),
    ] {
        match raw.call(id, "session.create", params).await {
            ServerFrame::Fault {
                id: Some(told),
                fault,
            } => {
                assert_eq!((told, fault.code.as_str()), (id, "bad_params"));
                assert!(fault.message.starts_with(says), "{fault:?}");
            }
            other => panic!("not refused: {other:?}"),
        }
    }
    let sessions = raw.ok("session.list", json!({})).await;
    assert_eq!(sessions, json!([]), "none of them created a session");
}

#[tokio::test]
async fn an_unsupported_version_is_refused() {
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
async fn only_the_first_frame_may_be_a_hello() {
    let server = Server::start(|_| {}).await;
    let mut raw = server.silent().await;
    raw.request(1, "node.status", json!({})).await;
    assert_eq!(raw.last_word().await.as_deref(), Some("hello_missing"));
    let mut twice = server.client().await;
    twice.hello(VersionRange::OURS).await;
    assert_eq!(twice.last_word().await.as_deref(), Some("hello_again"));
}

#[tokio::test]
async fn redteam_50_i6_a_client_that_stalls_before_or_inside_a_frame_is_disconnected() {
    let server = Server::start(|_| {}).await;
    let mut mute = server.silent().await;
    let mut slow = server.client().await;
    let whole = encode(&json!({ "id": 1, "method": "node.status" }), 1_000).unwrap();
    write(&mut slow, &whole[..whole.len() - 1]).await;
    // From here on the clock advances automatically whenever all tasks wait.
    tokio::time::pause();
    assert_eq!(mute.last_word().await.as_deref(), Some("hello_late"));
    assert_eq!(slow.last_word().await.as_deref(), Some("frame_late"));
}

#[tokio::test]
async fn redteam_50_i6_connections_over_the_limit_are_refused_and_the_others_continue() {
    let server = Server::start(two).await;
    let (mut a, mut b) = (server.client().await, server.client().await);
    for busy in [&mut a, &mut b] {
        busy.ok("fleet.watch", json!({})).await;
    }
    let mut c = server.silent().await;
    assert_eq!(c.last_word().await.as_deref(), Some("too_many_connections"));
    a.ok("node.status", json!({})).await;
    drop(b);
    // The seat is free once the daemon has noticed the close.
    loop {
        let mut raw = server.silent().await;
        if raw.stream.write_all(&hello()).await.is_ok()
            && let Some(ServerFrame::Welcome(_)) = raw.next().await
        {
            break;
        }
    }
}

fn two(settings: &mut Settings) {
    settings.limits.connections = 2;
    settings.limits.connections_reserved = 0;
}

#[tokio::test]
async fn redteam_50_i6_a_new_connection_replaces_an_idle_one() {
    let server = Server::start(two).await;
    let (mut idle, mut mute) = (server.client().await, server.silent().await);
    let mut first = server.client().await;
    assert_eq!(mute.last_word().await.as_deref(), Some("idle_connection_closed"));
    first.ok("fleet.watch", json!({})).await;
    let mut second = server.client().await;
    assert_eq!(idle.last_word().await.as_deref(), Some("idle_connection_closed"));
    second.ok("node.status", json!({})).await;
    first.ok("node.status", json!({})).await;
}

#[tokio::test]
async fn redteam_50_i6_many_silent_connections_do_not_block_new_clients() {
    let server = Server::start(two).await;
    let mut crowd = Vec::new();
    for _ in 0..40 {
        crowd.push(server.silent().await);
    }
    server.client().await.ok("node.status", json!({})).await;
}

#[tokio::test]
async fn redteam_50_i6_one_process_cannot_take_the_reserved_connections() {
    let server = Server::start(|settings| {
        settings.limits.connections = 2;
        settings.limits.connections_reserved = 1;
    })
    .await;
    server.client().await.ok("node.status", json!({})).await;
    let mut only = server.client().await;
    only.ok("fleet.watch", json!({})).await;
    let mut more = server.silent().await;
    assert_eq!(more.last_word().await.as_deref(), Some("too_many_connections"));
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

/// A server and three clients: one announced a frame of 8 MiB and stopped, one sends small requests, one has sent nothing.
async fn behind_a_large_frame(frames_bytes: u64) -> (Server, [Raw; 3]) {
    let server = Server::start(|settings| settings.limits.frames_bytes = frames_bytes).await;
    let mut holder = server.client().await;
    let (mut small, large) = (server.client().await, server.client().await);
    write(&mut holder, &(8_u32 << 20).to_be_bytes()).await;
    for _ in 0..3 {
        small.ok("node.status", json!({})).await;
    }
    (server, [holder, small, large])
}

/// Sends 4 MiB and waits for the answer.
async fn send_large(client: &mut Raw) {
    let text = json!({ "text": "x".repeat(4 << 20) });
    match client.call(8, "no.method", text).await {
        ServerFrame::Fault { id: Some(8), fault } => assert_eq!(fault.code, "unknown_method"),
        other => panic!("not answered: {other:?}"),
    }
}

/// Whether a large frame is answered before a few hundred small ones. Without waiting it needs less time, and even on a
/// slow machine they all take less than a frame may.
async fn is_first(large: Pin<&mut impl Future<Output = ()>>, small: &mut Raw) -> bool {
    let many = async {
        for _ in 0..300 {
            small.ok("node.status", json!({})).await;
        }
    };
    tokio::select! {
        () = large => true,
        () = many => false,
    }
}

#[tokio::test]
async fn redteam_49_i6_large_frames_share_a_limit_and_small_ones_pass() {
    let (_server, [holder, mut small, mut large]) = behind_a_large_frame(8 << 20).await;
    let mut answer = pin!(send_large(&mut large));
    assert!(!is_first(answer.as_mut(), &mut small).await, "it did not wait");
    drop(holder);
    answer.await;
}

#[tokio::test]
async fn redteam_49_i6_the_bound_of_frames_is_that_of_all_transports() {
    let server = Server::start(|settings| settings.limits.frames_bytes = 8 << 20).await;
    let (mut small, mut large) = (server.client().await, server.client().await);
    let body = server.h.api.memory().account().take(8 << 20).await;
    let mut answer = pin!(send_large(&mut large));
    assert!(!is_first(answer.as_mut(), &mut small).await, "it did not wait");
    drop(body);
    answer.await;
}

#[tokio::test]
async fn redteam_control_a_large_frame_within_the_bound_does_not_wait() {
    let (_server, [_holder, mut small, mut large]) = behind_a_large_frame(12 << 20 | 64 << 10).await;
    assert!(is_first(pin!(send_large(&mut large)), &mut small).await);
}
