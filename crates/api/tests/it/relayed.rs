//! What a node may do with requests that it signs: each attack, and that it works without the guard, for a local user of this
//! node or for who has the proof.

use crate::harness::Harness;
use agentd_api::{Scope, methods};
use agentd_node_keys::{Arrived, Here, Identity, Keys, NodeKey, Outgoing, Proof, Verified, Verifier};
use agentd_protocol::{Created, Fault, PermissionMode, Principal, Timestamp, TokenCreated};
use agentd_settings::Settings;
use bytes::Bytes;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use std::ops::Deref;

const CALL: &str = "/v1/node/call";

fn node(name: &str) -> Identity {
    Identity {
        name: name.to_owned(),
        incarnation: 1,
    }
}

/// What the node `web1`, which has a key of the fleet, sends to this one.
fn signed(by: Proof, body: &Value) -> Verified {
    let (key, body) = (NodeKey::random().unwrap(), body.to_string());
    let (from, to, at) = (node("web1"), node("a1"), Timestamp(1_000));
    let keys: Keys = [(from.clone(), key.public())].into_iter().collect();
    let outgoing = Outgoing {
        method: "POST",
        path: CALL,
        body: body.as_bytes(),
        to: to.clone(),
        from,
        at,
        by,
    };
    let signed = outgoing.sign(&key).unwrap();
    let arrived = Arrived {
        method: "POST",
        path: CALL,
        authorization: &signed.authorization,
    };
    let here = Here {
        node: to,
        now: at,
        window_ms: 1,
        most: 1,
    };
    let vouched = Verifier::default().vouch(&arrived, &here, &keys).unwrap();
    vouched.with(Bytes::from(body)).unwrap()
}

async fn passed(h: &Harness, by: Proof, method: &str, params: Value) -> Result<Value, Fault> {
    let request = signed(by, &json!({ "method": method, "params": params }));
    h.api.peer_call(&request).await
}

fn code(outcome: Result<Value, Fault>) -> String {
    outcome.map_or_else(|fault| fault.code, |_| "ok".to_owned())
}

fn ana() -> Proof {
    Proof::User("ana".to_owned())
}

/// A node of a fleet that shares a directory.
struct Member {
    h: Harness,
    _shared: tempfile::TempDir,
}

impl Deref for Member {
    type Target = Harness;

    fn deref(&self) -> &Harness {
        &self.h
    }
}

async fn sharing(change: impl FnOnce(&mut Settings)) -> Member {
    let shared = tempfile::tempdir().unwrap();
    let path = shared.path().canonicalize().unwrap();
    let h = Harness::with(|settings| {
        settings.node.shared_paths = vec![path.display().to_string()];
        change(settings);
    })
    .await;
    Member { h, _shared: shared }
}

fn shared(h: &Harness) -> String {
    h.api.loaded().settings.node.shared_paths[0].clone()
}

async fn token(h: &Harness, name: &str, scopes: &[&str], labels: Value) -> Proof {
    let params = json!({ "name": name, "scopes": scopes, "labels": labels, "dirs": ["/"], "mode": "yolo" });
    let made = h.call("token.create", params).await.unwrap();
    let made: TokenCreated = serde_json::from_value(made).unwrap();
    Proof::Token {
        name: name.to_owned(),
        hash: Sha256::digest(made.token.expose()).into(),
    }
}

#[tokio::test]
async fn i7_a_local_user_of_another_node_administers_nothing_here() {
    let h = sharing(|_| {}).await;
    let mut refused = 0;
    for (method, scope) in methods() {
        assert_eq!(
            h.api
                .may_call(&Harness::ana(), method)
                .map_err(|fault| fault.code),
            Ok(()),
            "{method}"
        );
        let family = method.split('.').next().unwrap_or_default();
        let about_node = ["rule", "audit", "token", "workspace"].contains(&family)
            || (family == "node" && method != "node.status");
        if !about_node && scope != Scope::Import {
            continue;
        }
        let code = code(passed(&h, ana(), method, json!({})).await);
        assert!(
            ["beyond_node", "missing_scope"].contains(&code.as_str()),
            "{method}: {code}"
        );
        refused += 1;
    }
    assert!(refused > 20, "{refused}");
    // Ordinary work goes on.
    let made = passed(&h, ana(), "session.create", json!({ "workdir": shared(&h) })).await;
    let made: Created = serde_json::from_value(made.unwrap()).unwrap();
    for method in ["session.get", "session.pause", "session.resume", "session.export"] {
        let done = passed(&h, ana(), method, json!({ "session": made.session })).await;
        assert_eq!(code(done), "ok", "{method}");
    }
}

#[tokio::test]
async fn i7_admin_in_the_settings_gives_users_of_other_nodes_no_method_of_the_daemon() {
    let h = sharing(|settings| {
        settings.fleet.local_users.scopes = Scope::ALL.map(|scope| scope.to_string()).to_vec();
    })
    .await;
    for method in [
        "node.stop",
        "token.create",
        "node.config",
        "rule.remove",
        "node.remove_key",
        "token.link",
    ] {
        assert_eq!(
            code(passed(&h, ana(), method, json!({})).await),
            "beyond_node",
            "{method}"
        );
    }
}

#[tokio::test]
async fn i7_a_local_user_of_another_node_has_the_mode_and_directories_of_the_settings() {
    let h = sharing(|_| {}).await;
    let (inside, outside) = (shared(&h), h.workdir());
    let create = |workdir: &str, mode: &str| json!({ "workdir": workdir, "mode": mode });
    assert_eq!(
        code(passed(&h, ana(), "session.create", create(&inside, "yolo")).await),
        "mode_beyond"
    );
    assert_eq!(
        code(passed(&h, ana(), "session.create", create(&inside, "accept-edits")).await),
        "ok"
    );
    for workdir in [outside.as_str(), "/", "/etc", "/root/.ssh"] {
        let fault = passed(&h, ana(), "session.create", create(workdir, "default"))
            .await
            .unwrap_err();
        assert_eq!(fault.code, "directory_denied", "{workdir}");
        assert!(fault.hint.unwrap_or_default().contains("fleet.local_users"));
    }
    let forced = json!({ "workdir": "/etc", "force": true });
    assert_eq!(
        code(passed(&h, ana(), "session.create", forced).await),
        "directory_denied"
    );
    // A local user of this node may.
    assert_eq!(
        code(h.call("session.create", create(&outside, "yolo")).await),
        "ok"
    );
    // And so may one of another node, if the settings say so.
    let h = sharing(|settings| {
        settings.fleet.local_users.mode = PermissionMode::Yolo;
        settings.fleet.local_users.dirs = vec!["/".to_owned()];
    })
    .await;
    assert_eq!(
        code(passed(&h, ana(), "session.create", create(&h.workdir(), "yolo")).await),
        "ok"
    );
    // What the node allows by default, it allows them, too.
    let h = sharing(|settings| settings.permission.mode = PermissionMode::Yolo).await;
    assert_eq!(
        code(passed(&h, ana(), "session.create", create(&shared(&h), "yolo")).await),
        "ok"
    );
}

#[tokio::test]
async fn i7_without_scopes_a_local_user_of_another_node_does_nothing() {
    let h = sharing(|settings| settings.fleet.local_users.scopes.clear()).await;
    for (method, _) in methods() {
        let code = code(passed(&h, ana(), method, json!({})).await);
        assert!(
            ["missing_scope", "beyond_node"].contains(&code.as_str()),
            "{method}: {code}"
        );
    }
}

#[tokio::test]
async fn i7_a_local_user_of_another_node_makes_no_rule_for_the_fleet() {
    let h = sharing(|_| {}).await;
    let session = h.session("asks").await;
    let approval = h.log.ask(session, "may I?").await;
    let decide =
        |scope: &str| json!({ "approval": approval, "decision": "allow", "scope": scope, "policy": true });
    assert_eq!(
        code(passed(&h, ana(), "approval.decide", decide("always")).await),
        "beyond_node"
    );
    let may = code(passed(&h, ana(), "approval.decide", decide("session")).await);
    assert!(!["beyond_node", "missing_scope"].contains(&may.as_str()), "{may}");
}

#[tokio::test]
async fn i7_a_token_is_proved_by_its_hash_and_has_its_own_rights() {
    let h = sharing(|_| {}).await;
    let ours = h
        .call(
            "session.create",
            json!({ "workdir": h.workdir(), "labels": { "team": "a" } }),
        )
        .await;
    let ours = json!({ "session": ours.unwrap()["session"] });
    let reader = token(&h, "reader", &["read"], json!({})).await;
    let other_team = token(&h, "other", &["read", "steer"], json!({ "team": "b" })).await;
    let admin = token(&h, "admin", &["read", "steer", "admin"], json!({})).await;
    assert_eq!(
        code(passed(&h, reader.clone(), "session.get", ours.clone()).await),
        "ok"
    );
    assert_eq!(
        code(passed(&h, reader.clone(), "session.pause", ours.clone()).await),
        "missing_scope"
    );
    assert_eq!(
        code(passed(&h, other_team, "session.get", ours.clone()).await),
        "unknown_session"
    );
    assert_eq!(
        code(passed(&h, admin.clone(), "session.pause", ours.clone()).await),
        "ok"
    );
    // The hash of one token with the name of another one; none; the name as a hash.
    let (Proof::Token { hash, .. }, Proof::Token { hash: of_admin, .. }) = (&reader, &admin) else {
        panic!("tokens are proved as tokens")
    };
    for (name, hash) in [
        ("admin", *hash),
        ("admin", [0; 32]),
        ("admin", Sha256::digest("admin").into()),
        ("admin", Sha256::digest(of_admin).into()),
        ("nobody", *hash),
        ("", *of_admin),
    ] {
        let name = name.to_owned();
        let forged = passed(&h, Proof::Token { name, hash }, "session.pause", ours.clone()).await;
        assert_eq!(code(forged), "bad_token");
    }
    // Also an administrator's token administers a node only there.
    assert_eq!(
        code(passed(&h, admin, "token.list", json!({})).await),
        "beyond_node"
    );
}

#[tokio::test]
async fn i7_a_token_that_ended_meanwhile_proves_nothing() {
    let h = sharing(|_| {}).await;
    let ci = token(&h, "ci", &["read"], json!({})).await;
    assert_eq!(
        code(passed(&h, ci.clone(), "session.list", json!({})).await),
        "ok"
    );
    h.call("token.revoke", json!({ "name": "ci" })).await.unwrap();
    assert_eq!(code(passed(&h, ci, "session.list", json!({})).await), "bad_token");
}

#[tokio::test]
async fn i7_a_request_for_somebody_else_is_refused() {
    let h = sharing(|_| {}).await;
    let session = h.session("s").await;
    // A node by itself calls no method, and a user does not follow a session as a node does.
    assert_eq!(
        code(passed(&h, Proof::Node, "session.list", json!({})).await),
        "no_proof"
    );
    let follow = json!({ "session": session, "deltas": true, "decides": true });
    let followed = async |by| {
        h.api
            .peer_follow(&signed(by, &follow))
            .await
            .map(drop)
            .map_err(|fault| fault.code)
    };
    assert_eq!(followed(ana()).await, Err("no_proof".to_owned()));
    assert_eq!(followed(Proof::Node).await, Ok(()));
    // Names that would read as somebody else.
    for name in ["", "a\nb", "\u{1b}[2K", &"a".repeat(257)] {
        let by = Proof::User(name.to_owned());
        assert_eq!(
            code(passed(&h, by, "session.list", json!({})).await),
            "no_proof",
            "{name:?}"
        );
    }
    // What a body claims counts for nothing.
    let claims = json!({ "by": "user:root", "method": "session.list", "params": {} });
    assert_eq!(code(h.api.peer_call(&signed(ana(), &claims)).await), "bad_body");
    assert_eq!(code(passed(&h, ana(), "session.list", json!({})).await), "ok");
    // A name that is written as another principal stays a name of that node.
    let by = Proof::User("user:root".to_owned());
    let made = passed(&h, by, "session.create", json!({ "workdir": shared(&h) }))
        .await
        .unwrap();
    let made: Created = serde_json::from_value(made).unwrap();
    let log = h
        .call("session.export", json!({ "session": made.session }))
        .await
        .unwrap();
    let first: Value = serde_json::from_str(log["lines"][0].as_str().unwrap()).unwrap();
    assert_eq!(first["by"], "node:web1/user:root");
    assert_eq!(
        h.api.scopes(&Principal(first["by"].as_str().unwrap().to_owned())),
        []
    );
}

#[tokio::test]
async fn the_log_and_the_audit_file_name_the_user_and_the_node() {
    let mut h = sharing(|_| {}).await;
    let params = json!({ "workdir": shared(&h), "key": "once" });
    let made = passed(&h, ana(), "session.create", params.clone()).await.unwrap();
    let line = h.h.audit.recv().await.unwrap();
    assert_eq!(
        (&line["event"], &line["who"]),
        (&json!("node.relayed"), &json!("node:web1/ana"))
    );
    assert_eq!(
        (&line["what"]["node"], &line["what"]["method"]),
        (&json!("web1"), &json!("session.create"))
    );
    // She repeats the request at this node, where she has the same key.
    assert_eq!(h.call("session.create", params).await.unwrap(), made);
    // Reading changes nothing.
    passed(&h, ana(), "session.list", json!({})).await.unwrap();
    passed(&h, ana(), "session.pause", json!({ "session": made["session"] }))
        .await
        .unwrap();
    assert_eq!(h.h.audit.recv().await.unwrap()["what"]["method"], "session.pause");
}
