//! Export and import.

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
async fn i2_an_imported_export_quotes_every_line_byte_for_byte() {
    let (h, other) = (Harness::start().await, Harness::start().await);
    let session = h.session("a").await;
    h.log.note(session, "x").await;
    let out = lines(&h, "a").await;
    let workdir = other.workdir();
    let first = json!({ "lines": out[..1], "key": "k", "more": true });
    assert_eq!(
        other.call("session.import", first.clone()).await.unwrap(),
        Value::Null
    );
    let last = json!({ "lines": out[1..], "key": "k", "workdir": workdir, "source": "a.jsonl" });
    let created: Created =
        serde_json::from_value(other.call("session.import", last.clone()).await.unwrap()).unwrap();
    assert_ne!(created.session, session, "the lines do not choose the id");
    assert_eq!((created.name.as_str(), created.seq), ("imported: a.jsonl", 4));
    let copy = lines(&other, &created.session.to_string()).await;
    for (quoted, line) in copy[2..].iter().zip(&out) {
        assert!(
            quoted.ends_with(&format!(r#""type":"imported.event","event":{line}}}"#)),
            "{quoted}"
        );
    }
    let head: Vec<Event> = copy[..2]
        .iter()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let kinds: Vec<&str> = head.iter().map(|event| event.body.kind()).collect();
    assert_eq!(kinds, ["session.imported", "session.created"]);
    // Repeating the import does not create a second session.
    other.call("session.import", first).await.unwrap();
    assert_eq!(other.call("session.import", last).await.unwrap(), json!(created));
}

#[tokio::test]
async fn an_import_needs_a_working_directory_from_the_importer() {
    let h = Harness::start().await;
    h.session("a").await;
    let out = lines(&h, "a").await;
    let refused = h.refused("session.import", json!({ "lines": out })).await;
    assert_eq!(refused, (FaultClass::Invalid, "workdir_missing".to_owned()));
    let refused = h
        .refused(
            "session.import",
            json!({ "lines": out, "workdir": "/nowhere/at/all" }),
        )
        .await;
    assert_eq!(refused, (FaultClass::Invalid, "bad_workdir".to_owned()));
}

#[tokio::test]
async fn lines_that_are_not_a_log_are_refused_and_leave_nothing() {
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
        let params = json!({ "lines": lines, "workdir": other.workdir() });
        let refused = other.refused("session.import", params).await;
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
