//! Opening and closing the socket.

use crate::wire_client::Server;
use agentd_control::{ControlError, bind};
use agentd_wire::ServerFrame;
use serde_json::json;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

/// Longer than any operation takes.
const LONG: Duration = Duration::from_secs(60);

#[tokio::test]
async fn only_the_user_can_access_the_socket_and_its_directory() {
    let server = Server::start(|_| {}).await;
    let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&server.path), 0o600);
    assert_eq!(mode(server.path.parent().unwrap()), 0o700);
}

#[tokio::test]
async fn a_socket_in_use_is_not_taken_over() {
    let server = Server::start(|_| {}).await;
    let error = bind(&server.path).await.unwrap_err();
    assert!(matches!(error, ControlError::InUse { .. }), "{error}");
    // This also holds when the server of the socket does not know our lock.
    let other = server.h.dir.path().join("other.sock");
    let _foreign = tokio::net::UnixListener::bind(&other).unwrap();
    let error = bind(&other).await.unwrap_err();
    assert!(matches!(error, ControlError::InUse { .. }), "{error}");
    server.client().await.ok("node.status", json!({})).await;
}

#[tokio::test(start_paused = true)]
async fn the_start_waits_for_a_lock_that_briefly_outlives_its_daemon() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.sock");
    let held = std::fs::File::create(dir.path().join("a.sock.lock")).unwrap();
    held.try_lock().unwrap();
    let opening = bind(&path);
    let mut opening = std::pin::pin!(opening);
    let moment = std::time::Duration::from_millis(300);
    assert!(tokio::time::timeout(moment, &mut opening).await.is_err());
    // A process that another test is just starting may have a copy of it, so closing it is not enough.
    held.unlock().unwrap();
    opening.await.unwrap();
}

#[tokio::test]
async fn a_stale_socket_is_replaced_and_any_other_file_is_kept() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.sock");
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    let listener = bind(&path).await.unwrap();
    assert_eq!(listener.path(), path);
    drop(listener);
    assert!(!path.exists());
    std::fs::write(&path, "precious").unwrap();
    let error = bind(&path).await.unwrap_err();
    assert!(matches!(error, ControlError::NotASocket { .. }), "{error}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "precious");
    let long = dir.path().join("x".repeat(120));
    assert!(matches!(
        bind(&long).await.unwrap_err(),
        ControlError::TooLong { most: 107, .. }
    ));
}

#[tokio::test]
async fn i6_a_removed_socket_is_created_again_and_another_file_is_kept() {
    let server = Server::start(|_| {}).await;
    let mut before = server.client().await;
    let there = async || {
        while tokio::net::UnixStream::connect(&server.path).await.is_err() {
            tokio::task::yield_now().await;
        }
    };
    std::fs::remove_dir_all(server.path.parent().unwrap()).unwrap();
    tokio::time::timeout(LONG, there()).await.unwrap();
    let mode = std::fs::metadata(&server.path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode, 0o600);
    server.client().await.ok("node.status", json!({})).await;
    before.ok("node.status", json!({})).await;
    // A file that someone else put there is not ours, not even at shutdown.
    std::fs::remove_file(&server.path).unwrap();
    std::fs::write(&server.path, "precious").unwrap();
    server.shutdown.send_replace(true);
    server.task.await.unwrap();
    assert_eq!(std::fs::read_to_string(&server.path).unwrap(), "precious");
}

#[tokio::test]
async fn a_stopping_daemon_answers_pending_requests_and_says_goodbye() {
    let server = Server::start(|_| {}).await;
    let mut idle = server.client().await;
    let mut busy = server.client().await;
    let session = server.h.session("a").await;
    busy.ok("session.attach", json!({ "session": session })).await;
    server.shutdown.send_replace(true);
    assert_eq!(idle.last_word().await.as_deref(), Some("stopping"));
    let mut last = None;
    while let Some(frame) = busy.next().await {
        last = Some(frame);
    }
    let Some(ServerFrame::Fault { id: None, fault }) = last else {
        panic!("no goodbye: {last:?}")
    };
    assert_eq!(fault.code, "stopping");
    server.task.await.unwrap();
    assert!(!server.path.exists());
}
