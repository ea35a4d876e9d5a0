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
    timeout(Duration::from_secs(60), pushes.recv())
        .await
        .unwrap()
        .unwrap()
        .push
}

/// The next push except `CaughtUp`, whose timing is not fixed.
async fn news(pushes: &mut mpsc::Receiver<Pushed>) -> Push {
    loop {
        match next(pushes).await {
            Push::CaughtUp(_) => {}
            news => return news,
        }
    }
}

/// The type, seq and cursor of the next event.
async fn event(pushes: &mut mpsc::Receiver<Pushed>) -> (String, Seq, u64) {
    match news(pushes).await {
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
async fn i2_a_watcher_that_resumes_at_its_cursor_misses_nothing() {
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
        Push::CaughtUp(at) => assert_eq!(at.cursor, start + 4),
        other => panic!("not caught up: {other:?}"),
    }
    match next(&mut again).await {
        Push::Ended { code, cursor, .. } => assert_eq!((code, cursor), ("end", Some(start + 4))),
        other => panic!("not the end: {other:?}"),
    }
}

#[tokio::test]
async fn a_watch_filters_by_kind_and_label_and_follows_label_changes() {
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
        match news(&mut pushes).await {
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

#[tokio::test]
async fn the_head_is_that_of_the_fleet_and_an_unknown_kind_is_refused() {
    let h = Harness::start().await;
    for name in ["a", "b"] {
        h.session(name).await;
    }
    let (head, mut pushes) = watch(&h, json!({ "after": 0, "kinds": ["turn"] })).await;
    assert_eq!(head, 2);
    match next(&mut pushes).await {
        Push::CaughtUp(at) => assert_eq!(at.cursor, 2),
        other => panic!("not caught up: {other:?}"),
    }
    for (kind, near) in [("turn.finishd", "turn.finished"), ("tols", "tool")] {
        let params = json!({ "kinds": ["turn", kind] });
        let fault = h.api.watch(&Harness::ana(), params).await.unwrap_err();
        assert_eq!(
            (fault.class, fault.code.as_str()),
            (FaultClass::Invalid, "unknown_kind")
        );
        assert_eq!(fault.hint, Some(format!("did you mean {near}?")));
    }
}
