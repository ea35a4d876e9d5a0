//! Clients that another transport has authenticated.

use crate::wire_client::{Raw, Server};
use agentd_protocol::Principal;
use agentd_wire::{ServerFrame, VersionRange};
use serde_json::json;
use std::sync::Arc;
use tokio::io::duplex;

/// A remote client after its hello.
async fn remote(server: &Server, who: Principal) -> (Raw<tokio::io::DuplexStream>, ServerFrame) {
    let (near, far) = duplex(4_096);
    let connections = Arc::clone(&server.connections);
    let stop = server.shutdown.subscribe();
    tokio::spawn(async move { connections.serve_remote(far, who, stop).await });
    let mut raw = Raw::over(near);
    raw.hello(VersionRange::OURS).await;
    let welcome = raw.next().await.unwrap();
    (raw, welcome)
}

#[tokio::test]
async fn a_remote_client_has_the_principal_of_its_transport() {
    let server = Server::start(|_| {}).await;
    let (mut ana, welcome) = remote(&server, Principal::user("ana")).await;
    let ServerFrame::Welcome(welcome) = welcome else {
        panic!("no welcome: {welcome:?}");
    };
    assert_eq!(welcome.principal, Principal::user("ana"));
    let workdir = server.h.workdir();
    let created = ana.ok("session.create", json!({"workdir": workdir})).await;
    let attach = json!({"session": created["session"]});
    ana.ok("session.attach", attach).await;
    ana.push().await;
    let params = json!({"name": "importer", "scopes": ["import"]});
    server.h.call("token.create", params).await.unwrap();
    let (mut importer, _) = remote(&server, Principal::token("importer")).await;
    let refused = importer.call(1, "node.status", json!({})).await;
    assert!(
        matches!(&refused, ServerFrame::Fault { fault, .. } if fault.code == "missing_scope"),
        "{refused:?}"
    );
}

#[tokio::test]
async fn refusing_answers_over_the_unix_socket_does_not_affect_remote_clients() {
    let server = Server::start(|settings| settings.control.local_approvals = false).await;
    let (mut remote, _) = remote(&server, Principal::user("ana")).await;
    let decide = json!({"approval": "none", "decision": "allow"});
    let code = |answer| match answer {
        ServerFrame::Fault { fault, .. } => fault.code,
        other => panic!("no fault: {other:?}"),
    };
    let local = server
        .client()
        .await
        .call(1, "approval.decide", decide.clone())
        .await;
    assert_eq!(code(local), "local_approvals_off");
    let remote = remote.call(1, "approval.decide", decide).await;
    assert_ne!(code(remote), "local_approvals_off");
}

#[tokio::test]
async fn i6_remote_clients_share_the_same_seats() {
    let server = Server::start(|settings| {
        settings.limits.connections = 1;
        settings.limits.connections_reserved = 0;
    })
    .await;
    let (mut first, _) = remote(&server, Principal::user("ana")).await;
    let mut second = server.client().await;
    assert_eq!(first.last_word().await.as_deref(), Some("idle_connection_closed"));
    second.ok("node.status", json!({})).await;
}
