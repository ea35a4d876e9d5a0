//! Out and in again.

use crate::harness::Harness;
use agentd_protocol::*;
use serde_json::{Value, json};

async fn lines(h: &Harness, word: &str) -> Vec<String> {
    let exported = h
        .call("session.export", json!({ "session": word }))
        .await
        .unwrap();
    serde_json::from_value::<Exported>(exported).unwrap().lines
}

#[tokio::test]
async fn i2_an_export_imports_elsewhere_as_the_same_lines() {
    let (h, other) = (Harness::start().await, Harness::start().await);
    let session = h.session("a").await;
    h.log.note(session, "x").await;
    let out = lines(&h, "a").await;
    let first = json!({ "lines": out[..1], "key": "k", "more": true });
    assert_eq!(
        other.call("session.import", first.clone()).await.unwrap(),
        Value::Null
    );
    let last = json!({ "lines": out[1..], "key": "k" });
    let created: Created =
        serde_json::from_value(other.call("session.import", last.clone()).await.unwrap()).unwrap();
    assert_eq!(
        created,
        Created {
            session,
            name: "a".into(),
            input: None,
            seq: 2,
            notices: Vec::new(),
        }
    );
    assert_eq!(lines(&other, "a").await, out);
    // The same once more makes no second session.
    other.call("session.import", first).await.unwrap();
    assert_eq!(other.call("session.import", last).await.unwrap(), json!(created));
    // Into the store it came from it is another session.
    let twin = h.call("session.import", json!({ "lines": out })).await.unwrap();
    assert_ne!(twin["session"], json!(session));
}

#[tokio::test]
async fn lines_that_are_no_log_are_refused_and_leave_nothing() {
    let h = Harness::start().await;
    h.session("a").await;
    let good = lines(&h, "a").await.remove(0);
    let other = Harness::start().await;
    let gap = good.replace("\"seq\":1", "\"seq\":2");
    let rules = json!({"v":1,"session":SessionId::NIL,"seq":1,"at":"2025-11-20T09:00:00.123Z","by":"user:eve","type":"rule.added","rule":"allow Bash"});
    let cases = [
        (vec![], FaultClass::Invalid, "bad_import"),
        (vec!["not json".to_owned()], FaultClass::Invalid, "bad_import"),
        (vec![gap], FaultClass::Invalid, "bad_import"),
        (
            vec![good.clone(), good.clone()],
            FaultClass::Invalid,
            "bad_import",
        ),
        (vec![rules.to_string()], FaultClass::Denied, "rules_import"),
    ];
    for (lines, class, code) in cases {
        let refused = other.refused("session.import", json!({ "lines": lines })).await;
        assert_eq!(refused, (class, code.to_owned()), "{lines:?}");
    }
    let more = other
        .refused("session.import", json!({ "lines": [good], "more": true }))
        .await;
    assert_eq!(more, (FaultClass::Invalid, "key_missing".to_owned()));
    assert_eq!(
        other.call("session.list", json!({ "all": true })).await.unwrap(),
        json!([])
    );
}
