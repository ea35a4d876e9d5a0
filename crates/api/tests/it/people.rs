//! References to sessions, and the inbox.

use crate::harness::Harness;
use agentd_protocol::*;
use serde_json::{Value, json};

async fn open(h: &Harness, params: Value) -> Vec<ApprovalId> {
    let open: Vec<OpenApproval> =
        serde_json::from_value(h.call("approval.list", params).await.unwrap()).unwrap();
    open.into_iter().map(|open| open.approval).collect()
}

#[tokio::test]
async fn a_session_is_found_by_id_prefix_suffix_name_and_last() {
    let h = Harness::start().await;
    let first = h.session("first").await;
    let last = h.session("twin").await.max(h.session("twin").await).max(first);
    let full = first.to_string();
    for word in [
        full.as_str(),
        &full.replace('-', ""),
        &first.short(),
        &first.short()[4..],
        "first",
        " first ",
    ] {
        let found = h.call("session.get", json!({ "session": word })).await.unwrap();
        assert_eq!(found["session"], json!(first), "{word}");
    }
    let found = h
        .call("session.get", json!({ "session": "@last" }))
        .await
        .unwrap();
    assert_eq!(found["session"], json!(last));
    let fault = h
        .call("session.get", json!({ "session": "twin" }))
        .await
        .unwrap_err();
    assert_eq!(
        (fault.class, fault.code.as_str()),
        (FaultClass::Conflict, "ambiguous_session")
    );
    assert!(fault.message.contains("(twin), "), "{}", fault.message);
}

#[tokio::test]
async fn the_inbox_lists_open_approvals_of_all_sessions() {
    let h = Harness::start().await;
    let (a, b) = (h.session("a").await, h.session("b").await);
    h.session("idle").await;
    let (first, second) = (h.log.ask(a, "run x").await, h.log.ask(b, "run y").await);
    h.log
        .edit(b, |row| {
            row.labels.insert("team".into(), "x".into());
        })
        .await;
    let mut all = open(&h, json!({})).await;
    all.sort_by_key(|approval| *approval == second);
    assert_eq!(all, [first, second]);
    assert_eq!(open(&h, json!({ "session": "a" })).await, [first]);
    assert_eq!(open(&h, json!({ "labels": {"team": "x"} })).await, [second]);
    assert_eq!(
        open(&h, json!({ "session": "a", "labels": {"team": "x"} })).await,
        []
    );
}

#[tokio::test]
async fn the_first_of_two_deciders_wins_and_the_other_gets_a_conflict() {
    let h = Harness::start().await;
    let session = h.session("a").await;
    let approval = h.log.ask(session, "run x").await;
    let decide = |decision| json!({ "approval": approval.to_string(), "decision": decision });
    let (ana, bob) = (Harness::ana(), Principal::user("bob"));
    let (a, b) = tokio::join!(
        h.api.call(&ana, "approval.decide", decide("allow")),
        h.api.call(&bob, "approval.decide", decide("deny")),
    );
    let (won, lost) = if a.is_ok() { (a, b) } else { (b, a) };
    let decided: Decided = serde_json::from_value(won.unwrap()).unwrap();
    assert_eq!(
        decided,
        Decided {
            approval,
            session,
            seq: 3
        }
    );
    assert_eq!(lost.unwrap_err().class, FaultClass::Conflict);
    // The same holds much later, and by its short form.
    let late = h
        .refused(
            "approval.decide",
            json!({ "approval": approval.short(), "decision": "allow" }),
        )
        .await;
    assert_eq!(late, (FaultClass::Conflict, "approval_decided".to_owned()));
}

#[tokio::test]
async fn an_approval_is_found_by_its_session_when_it_is_the_only_one() {
    let h = Harness::start().await;
    let session = h.session("a").await;
    let decide = json!({ "approval": "a", "decision": "allow" });
    assert_eq!(
        h.refused("approval.decide", decide.clone()).await,
        (FaultClass::Conflict, "nothing_open".into())
    );
    let first = h.log.ask(session, "run x").await;
    let second = h.log.ask(session, "run y").await;
    let fault = h.call("approval.decide", decide.clone()).await.unwrap_err();
    assert_eq!(fault.code, "ambiguous_approval");
    assert!(
        fault.message.contains("run x") && fault.message.contains(&second.short()),
        "{}",
        fault.message
    );
    h.call(
        "approval.decide",
        json!({ "approval": first.short(), "decision": "deny" }),
    )
    .await
    .unwrap();
    let decided = h.call("approval.decide", decide).await.unwrap();
    assert_eq!(decided["approval"], json!(second));
}

#[tokio::test]
async fn invalid_decisions_are_refused() {
    let h = Harness::start().await;
    let refused = |params| h.refused("approval.decide", params);
    let invalid = |code: &str| (FaultClass::Invalid, code.to_owned());
    assert_eq!(
        refused(json!({ "approval": "x" })).await,
        invalid("decision_missing")
    );
    assert_eq!(
        refused(json!({ "approval": "x", "decision": "expired" })).await,
        invalid("bad_decision")
    );
    assert_eq!(
        refused(json!({ "decision": "allow" })).await,
        invalid("approval_missing")
    );
    let unknown = refused(json!({ "approval": "0123456789ab", "decision": "allow" })).await;
    assert_eq!(unknown, (FaultClass::NotFound, "unknown_approval".to_owned()));
}
