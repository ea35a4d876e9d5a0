//! Following the fleet.

use crate::harness::Harness;
use agentd_api::{Push, Pushed};
use agentd_protocol::*;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::timeout;

async fn watch(h: &Harness, params: Value) -> (u64, mpsc::Receiver<Pushed>) {
    let (subscribed, watching) = h.api.watch(&Harness::ana(), params).await.unwrap();
    let (out, pushes) = mpsc::channel(1);
    tokio::spawn(watching.run(out));
    (subscribed.head, pushes)
}

async fn next(pushes: &mut mpsc::Receiver<Pushed>) -> Push {
    timeout(Duration::from_secs(10), pushes.recv())
        .await
        .unwrap()
        .unwrap()
        .push
}

/// What an event is, with its cursor.
async fn event(pushes: &mut mpsc::Receiver<Pushed>) -> (String, Seq, u64) {
    match next(pushes).await {
        Push::Event { json, cursor } => {
            let event: Value = serde_json::from_slice(&json).unwrap();
            (
                event["type"].as_str().unwrap().to_owned(),
                event["seq"].as_u64().unwrap(),
                cursor.unwrap(),
            )
        }
        other => panic!("not an event: {other:?}"),
    }
}

#[tokio::test]
async fn i2_a_watcher_that_comes_back_with_its_cursor_misses_nothing() {
    let h = Harness::start().await;
    let (start, mut pushes) = watch(&h, json!({})).await;
    let (a, b) = (h.session("a").await, h.session("b").await);
    h.log.note(a, "x").await;
    let created = "session.created".to_owned();
    assert_eq!(event(&mut pushes).await, (created.clone(), 1, start + 1));
    assert_eq!(event(&mut pushes).await, (created, 1, start + 2));
    drop(pushes);
    h.log.note(b, "y").await;
    let (_, mut again) = watch(&h, json!({ "after": start + 2, "once": true })).await;
    let note = "note.injected".to_owned();
    assert_eq!(event(&mut again).await, (note.clone(), 2, start + 3));
    assert_eq!(event(&mut again).await, (note, 2, start + 4));
    match next(&mut again).await {
        Push::Ended { code, cursor, .. } => assert_eq!((code, cursor), ("end", Some(start + 4))),
        other => panic!("not the end: {other:?}"),
    }
}

#[tokio::test]
async fn a_watcher_chooses_by_kind_and_label_and_sees_labels_change() {
    let h = Harness::start().await;
    let (_, mut pushes) = watch(
        &h,
        json!({ "kinds": ["note", "session.closed"], "labels": {"team": "x"} }),
    )
    .await;
    let (a, b) = (h.session("a").await, h.session("b").await);
    h.call(
        "session.update",
        json!({ "session": "a", "labels": {"team": "x"} }),
    )
    .await
    .unwrap();
    h.log.note(a, "in").await;
    h.log.note(b, "out").await;
    assert_eq!(event(&mut pushes).await.1, 3);
    h.call(
        "session.update",
        json!({ "session": "b", "labels": {"team": "x"} }),
    )
    .await
    .unwrap();
    h.call("session.close", json!({ "session": "b" })).await.unwrap();
    assert_eq!(event(&mut pushes).await.0, "session.closed");
}

#[tokio::test]
async fn i2_a_stalled_watcher_catches_up_from_the_log() {
    let h = Harness::with(|settings| settings.limits.attach_ring = 8).await;
    let session = h.session("a").await;
    let (start, mut pushes) = watch(&h, json!({})).await;
    for n in 0..100 {
        h.log.note(session, &n.to_string()).await;
    }
    let (mut cursor, mut lags) = (start, 0);
    while cursor < start + 100 {
        match next(&mut pushes).await {
            Push::Event { cursor: got, .. } => {
                cursor += 1;
                assert_eq!(got, Some(cursor));
            }
            Push::Lagged(Lagged { after_seq }) => {
                assert_eq!(after_seq, cursor);
                lags += 1;
            }
            other => panic!("unexpected: {other:?}"),
        }
    }
    assert!(lags >= 1);
}
