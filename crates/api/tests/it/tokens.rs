//! Tokens: what they open, how far they reach, and how they end.

use crate::harness::Harness;
use agentd_api::{Push, Pushed, Scope, methods};
use agentd_protocol::{
    Created, Event, EventBody, Fault, FaultClass, Principal, SessionId, Summary, TokenCreated, TokenRow,
};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::timeout;

const TEAM: &str = "infra";

fn prompt(text: &str) -> Value {
    json!([{ "type": "text", "text": text }])
}

async fn made(h: &Harness, params: Value) -> TokenCreated {
    serde_json::from_value(h.call("token.create", params).await.unwrap()).unwrap()
}

/// A token of this scope that reaches only the sessions of the team.
async fn limited(h: &Harness, scope: Scope) -> Principal {
    let params = json!({ "name": scope.as_str(), "scopes": [scope.as_str()], "labels": { "team": TEAM }, "dirs": ["/"], "mode": "yolo" });
    let created = made(h, params).await;
    h.api.authenticate(created.token.expose()).await.unwrap()
}

async fn session(h: &Harness, title: &str, team: &str) -> SessionId {
    let params = json!({ "workdir": h.workdir(), "title": title, "labels": { "team": team } });
    let created = h.call("session.create", params).await.unwrap();
    serde_json::from_value::<Created>(created).unwrap().session
}

async fn names(h: &Harness, who: &Principal, params: Value) -> Vec<String> {
    let rows = h.api.call(who, "session.list", params).await.unwrap();
    let rows: Vec<Summary> = serde_json::from_value(rows).unwrap();
    rows.into_iter().map(|row| row.name).collect()
}

/// The target of a method.
enum About {
    /// One session, named by these parameters.
    Session(Value),
    /// Sessions that it makes, or all sessions in sight.
    Sight(Value),
    /// The whole daemon.
    Node,
}

/// Parameters with which a method is about this session. A new method needs its row here.
fn about(method: &str, h: &Harness, session: &str, approval: &str, blob: &str) -> About {
    use About::{Node, Sight};
    let one = |mut extra: Value| {
        extra["session"] = json!(session);
        About::Session(extra)
    };
    match method {
        "session.get" | "session.prompt" | "session.commands" | "session.context" | "session.close"
        | "session.pause" | "session.resume" | "session.compact" | "session.summarize" | "session.export"
        | "session.diff" | "session.files" | "session.undo" | "session.fork" | "input.list"
        | "turn.cancel" | "session.attach" => one(json!({})),
        "session.delete" => one(json!({ "force": true })),
        "session.bulk" => Sight(json!({ "action": "pause", "sessions": [session] })),
        "session.apply" => one(json!({ "to": "/tmp" })),
        "session.branch" => one(json!({ "name": "b" })),
        "session.patch" => one(json!({})),
        "session.rewind" => one(json!({ "at": 1, "dry_run": true })),
        "session.update" => one(json!({ "title": "new" })),
        "input.send" => one(json!({ "content": prompt("go") })),
        "input.cancel" => one(json!({ "input": "01890a5d-ac96-774b-bcce-b302099a8057" })),
        "session.blob" => About::Session(json!({ "name": blob })),
        "approval.decide" => {
            About::Session(json!({ "approval": approval, "decision": "allow", "policy": true }))
        }
        "approval.changes" | "approval.question" => About::Session(json!({ "approval": approval })),
        "approval.list" => one(json!({})),
        "session.create" => Sight(json!({ "workdir": h.workdir() })),
        "session.import" => Sight(json!({ "workdir": h.workdir(), "lines": [] })),
        "session.list" | "usage.query" | "usage.daily" | "node.status" | "model.list" | "tool.list"
        | "mcp.list" | "fleet.history" | "session.detach" => Sight(json!({})),
        "fleet.watch" => Sight(json!({ "once": true })),
        "rule.list" | "rule.remove" | "node.list" | "node.place" | "node.rotate_key" | "node.remove_key"
        | "node.admit_key" | "node.diagnostics" | "node.config" | "node.check" | "node.reload"
        | "audit.query" | "audit.verify" | "node.log" | "node.backup" | "node.backup_part"
        | "node.backup_end" | "node.drain" | "node.stop" | "token.create" | "token.link" | "token.list"
        | "token.revoke" | "workspace.list" | "workspace.prune" => Node,
        new => panic!("say what {new} is about, and who may see it"),
    }
}

async fn tried(h: &Harness, who: &Principal, method: &str, params: Value) -> Result<(), Fault> {
    match method {
        "session.attach" => h.api.attach(who, params).await.map(|_| ()),
        "fleet.watch" => h.api.watch(who, params).await.map(|_| ()),
        _ => h.api.call(who, method, params).await.map(|_| ()),
    }
}

fn code(outcome: &Result<(), Fault>) -> &str {
    outcome.as_ref().err().map_or("ok", |fault| fault.code.as_str())
}

/// A session of a team, an approval that is open in it, and content that it keeps.
async fn furnished(h: &Harness, title: &str, team: &str) -> [String; 3] {
    let session = session(h, title, team).await;
    let approval = h.log.ask(session, "may I?").await;
    let blob = h
        .log
        .backend
        .put_blob(session, title.to_owned().into())
        .await
        .unwrap();
    [session.to_string(), approval.to_string(), blob]
}

#[tokio::test]
async fn i7_every_method_with_every_scope_inside_and_outside_the_labels() {
    let h = Harness::start().await;
    let mut tokens = Vec::new();
    for scope in Scope::ALL {
        tokens.push((scope, limited(&h, scope).await));
    }
    let absent = [
        "01890a5d-ac96-774b-bcce-b302099a8057".to_owned(),
        "b302099a8057".to_owned(),
        "0".repeat(64),
    ];
    for (number, (method, needed)) in methods().enumerate() {
        for (scope, who) in &tokens {
            let at = format!("{method} with {scope}");
            let mine = furnished(&h, &format!("mine {number} {scope}"), TEAM).await;
            let theirs = furnished(&h, &format!("theirs {number} {scope}"), "web").await;
            let about = |[session, approval, blob]: &[String; 3]| about(method, &h, session, approval, blob);
            let params = |things: &[String; 3]| match about(things) {
                About::Session(params) | About::Sight(params) => params,
                About::Node => json!({}),
            };
            let within = tried(&h, who, method, params(&mine)).await;
            let beyond = tried(&h, who, method, params(&theirs)).await;
            if *scope != needed {
                assert_eq!(
                    (code(&within), code(&beyond)),
                    ("missing_scope", "missing_scope"),
                    "{at}"
                );
                continue;
            }
            let refused = [
                "missing_scope",
                "beyond_labels",
                "unknown_session",
                "unknown_approval",
                "no_blob",
            ];
            match about(&mine) {
                About::Node => assert_eq!(code(&within), "beyond_labels", "{at}"),
                About::Sight(_) => assert!(!refused.contains(&code(&within)), "{at}: {within:?}"),
                About::Session(_) => {
                    assert!(!refused.contains(&code(&within)), "{at}: {within:?}");
                    // As if it did not exist: the same fault, word for word.
                    let missing = tried(&h, who, method, params(&absent)).await.unwrap_err();
                    let mut hidden = beyond.unwrap_err();
                    for (theirs, absent) in theirs.iter().zip(&absent) {
                        hidden.message = hidden.message.replace(theirs, absent);
                    }
                    assert_eq!((hidden.class, &hidden), (FaultClass::NotFound, &missing), "{at}");
                }
            }
        }
    }
}

#[tokio::test]
async fn i7_a_list_contains_only_sessions_that_the_token_sees() {
    let h = Harness::start().await;
    let who = limited(&h, Scope::Read).await;
    let mine = session(&h, "nightly", TEAM).await;
    let theirs = session(&h, "nightly", "web").await;
    let (my_approval, _) = (h.log.ask(mine, "mine").await, h.log.ask(theirs, "theirs").await);
    for (session, cost) in [(mine, 1.0), (theirs, 2.0)] {
        h.log.edit(session, |row| row.cost_usd = cost).await;
    }
    let call = async |method: &str, params: Value| h.api.call(&who, method, params).await.unwrap();
    assert_eq!(names(&h, &who, json!({ "all": true })).await, ["nightly"]);
    assert_eq!(
        names(&h, &who, json!({ "labels": { "team": "web" } }))
            .await
            .len(),
        0
    );
    for word in ["nightly", "@last"] {
        assert_eq!(
            call("session.get", json!({ "session": word })).await["session"],
            json!(mine)
        );
    }
    let open = call("approval.list", json!({})).await;
    assert_eq!(
        (open.as_array().unwrap().len(), &open[0]["approval"]),
        (1, &json!(my_approval))
    );
    assert_eq!(call("node.status", json!({})).await["sessions"], json!(1));
    let spent = async || {
        let rows = call("usage.query", json!({})).await;
        (
            rows.as_array().unwrap().len(),
            rows[0]["cost_usd"].as_f64().unwrap(),
        )
    };
    assert_eq!(spent().await, (1, 1.0));
    h.call(
        "session.delete",
        json!({ "session": theirs.to_string(), "force": true }),
    )
    .await
    .unwrap();
    assert_eq!(
        spent().await,
        (1, 1.0),
        "what others spent and removed counts for nothing"
    );
}

async fn pushed(pushes: &mut mpsc::Receiver<Pushed>) -> Push {
    timeout(Duration::from_secs(60), pushes.recv())
        .await
        .unwrap()
        .unwrap()
        .push
}

/// The sessions of the next events, up to the end of the stream or a note in the given session.
async fn event_of(pushes: &mut mpsc::Receiver<Pushed>) -> Event {
    loop {
        if let Push::Event { json, .. } = pushed(pushes).await {
            return serde_json::from_slice(&json).unwrap();
        }
    }
}

#[tokio::test]
async fn i7_fleet_events_come_only_from_sessions_that_the_token_sees() {
    let h = Harness::start().await;
    let who = limited(&h, Scope::Read).await;
    let (theirs, mine) = (
        session(&h, "theirs", "web").await,
        session(&h, "mine", TEAM).await,
    );
    let (_, watching) = h.api.watch(&who, json!({ "after": 0 })).await.unwrap();
    let (out, mut pushes) = mpsc::channel(64);
    tokio::spawn(watching.run(out));
    h.log.note(theirs, "theirs").await;
    h.log.note(mine, "mine").await;
    for kind in ["session.created", "note.injected"] {
        let event = event_of(&mut pushes).await;
        assert_eq!((event.session, event.body.kind()), (mine, kind));
    }
    // Out of reach from here on.
    let away = json!({ "session": mine.to_string(), "labels": { "team": "web" } });
    h.call("session.update", away).await.unwrap();
    h.log.note(mine, "hidden").await;
    let last = session(&h, "last", TEAM).await;
    assert_eq!(event_of(&mut pushes).await.session, last);
}

#[tokio::test]
async fn i7_a_session_that_leaves_the_labels_ends_for_its_viewer() {
    let h = Harness::start().await;
    let who = limited(&h, Scope::Read).await;
    let mine = session(&h, "mine", TEAM).await;
    let (_, attachment) = h.api.attach(&who, json!({ "session": "mine" })).await.unwrap();
    let (out, mut pushes) = mpsc::channel(64);
    tokio::spawn(attachment.run(out));
    assert_eq!(event_of(&mut pushes).await.session, mine);
    while !matches!(pushed(&mut pushes).await, Push::Synced(_)) {}
    let away = json!({ "session": "mine", "labels": { "team": "web" } });
    h.call("session.update", away).await.unwrap();
    let end = pushed(&mut pushes).await;
    assert!(matches!(&end, Push::Ended { code: "deleted", .. }), "{end:?}");
}

#[tokio::test]
async fn i7_a_session_made_with_a_token_has_its_labels_and_keeps_them() {
    let h = Harness::start().await;
    let (steer, import) = (limited(&h, Scope::Steer).await, limited(&h, Scope::Import).await);
    let theirs = session(&h, "theirs", "web").await;
    let labels = async |session: &Value| {
        h.call("session.get", json!({ "session": session }))
            .await
            .unwrap()["labels"]
            .clone()
    };
    let made = json!({ "workdir": h.workdir(), "title": "mine", "labels": { "tier": "a" } });
    let mine = h.api.call(&steer, "session.create", made).await.unwrap();
    assert_eq!(
        labels(&mine["session"]).await,
        json!({ "team": TEAM, "tier": "a" })
    );
    let lines = h
        .call("session.export", json!({ "session": theirs.to_string() }))
        .await
        .unwrap();
    let log = json!({ "workdir": h.workdir(), "lines": lines["lines"] });
    let imported = h.api.call(&import, "session.import", log.clone()).await.unwrap();
    assert_eq!(labels(&imported["session"]).await, json!({ "team": TEAM }));
    let refused = async |who: &Principal, method: &str, params: Value| {
        h.api.call(who, method, params).await.unwrap_err().code
    };
    let web = json!({ "team": "web" });
    let elsewhere = json!({ "workdir": h.workdir(), "labels": web });
    assert_eq!(refused(&steer, "session.create", elsewhere).await, "label_fixed");
    let elsewhere = json!({ "workdir": h.workdir(), "labels": web, "lines": log["lines"] });
    assert_eq!(refused(&import, "session.import", elsewhere).await, "label_fixed");
    for labels in [json!({}), json!({ "tier": "b" }), web] {
        // No labels at all is no change of labels.
        let set = json!({ "session": "mine", "title": "x", "labels": labels });
        assert_eq!(
            refused(&steer, "session.update", set).await,
            "label_fixed",
            "{labels}"
        );
    }
    let more = json!({ "session": "mine", "labels": { "team": TEAM, "tier": "b" } });
    h.api.call(&steer, "session.update", more).await.unwrap();
    let below = json!({ "workdir": h.workdir(), "parent": theirs });
    assert_eq!(refused(&steer, "session.create", below).await, "unknown_session");
}

#[tokio::test]
async fn i7_a_fork_at_a_point_before_the_labels_gets_them() {
    let h = Harness::start().await;
    let steer = limited(&h, Scope::Steer).await;
    h.session("old").await;
    let now = json!({ "session": "old", "labels": { "team": TEAM } });
    h.call("session.update", now).await.unwrap();
    let fork = json!({ "session": "old", "at": 1, "title": "copy" });
    let forked = h.api.call(&steer, "session.fork", fork).await.unwrap();
    let row = h
        .call("session.get", json!({ "session": forked["session"] }))
        .await
        .unwrap();
    assert_eq!(
        (&row["labels"], &row["name"]),
        (&json!({ "team": TEAM }), &json!("copy"))
    );
    let plain = h
        .call("session.fork", json!({ "session": "old", "at": 1 }))
        .await
        .unwrap();
    let row = h
        .call("session.get", json!({ "session": plain["session"] }))
        .await
        .unwrap();
    assert_eq!(
        row["labels"],
        json!({}),
        "the control: a local user's fork is as the log was"
    );
}

#[tokio::test]
async fn i7_a_limited_token_cannot_decide_for_other_sessions() {
    let h = Harness::start().await;
    let who = limited(&h, Scope::Approve).await;
    let mine = session(&h, "mine", TEAM).await;
    let approval = h.log.ask(mine, "may I?").await;
    let decide = |scope: &str| json!({ "approval": approval, "decision": "allow", "scope": scope });
    for scope in ["always", "everywhere"] {
        let refused = h
            .api
            .call(&who, "approval.decide", decide(scope))
            .await
            .unwrap_err();
        assert_eq!(
            (refused.class, refused.code.as_str()),
            (FaultClass::Denied, "beyond_labels"),
            "{scope}"
        );
    }
    h.api.call(&who, "approval.decide", decide("once")).await.unwrap();
    let lines = h
        .call("session.export", json!({ "session": "mine" }))
        .await
        .unwrap();
    let last = lines["lines"]
        .as_array()
        .unwrap()
        .last()
        .unwrap()
        .as_str()
        .unwrap();
    let event: Event = serde_json::from_str(last).unwrap();
    assert!(matches!(event.body, EventBody::ApprovalDecided(_)), "{event:?}");
    assert_eq!(event.by, Principal::token("approve"), "the log names the token");
}

#[tokio::test]
async fn a_token_is_shown_once_and_ends_when_it_is_revoked() {
    let mut h = Harness::start().await;
    let created = made(
        &h,
        json!({ "name": "ci", "scopes": ["steer", "read", "read"], "ttl_ms": 60_000 }),
    )
    .await;
    assert_eq!(created.row.scopes, ["read", "steer"]);
    let who = h.api.authenticate(created.token.expose()).await.unwrap();
    assert_eq!(who, Principal::token("ci"));
    assert_eq!(h.api.scopes(&who), [Scope::Read, Scope::Steer]);
    let list = h.call("token.list", json!({})).await.unwrap();
    let rows: Vec<TokenRow> = serde_json::from_value(list.clone()).unwrap();
    assert!(rows[0].last_used_at.is_some() && rows[0].expires_at.is_some());
    assert_eq!((rows[0].state.as_str(), &rows[0].by), ("live", &Harness::ana()));
    let session = h.session("a").await;
    let (_, attachment) = h.api.attach(&who, json!({ "session": "a" })).await.unwrap();
    let (_, watching) = h.api.watch(&who, json!({ "after": 0 })).await.unwrap();
    let (seen, mut session_pushes) = mpsc::channel(64);
    let (told, mut fleet_pushes) = mpsc::channel(64);
    tokio::spawn(attachment.run(seen));
    tokio::spawn(watching.run(told));
    for pushes in [&mut session_pushes, &mut fleet_pushes] {
        assert_eq!(event_of(pushes).await.session, session);
    }
    h.call("token.revoke", json!({ "name": "ci" })).await.unwrap();
    for pushes in [&mut session_pushes, &mut fleet_pushes] {
        let ended = async {
            loop {
                if let Push::Ended { code, .. } = pushed(pushes).await {
                    return code;
                }
            }
        };
        assert_eq!(ended.await, "revoked");
    }
    h.api.revoked(&who).await;
    assert_eq!(
        h.api
            .call(&who, "session.list", json!({}))
            .await
            .unwrap_err()
            .code,
        "bad_token"
    );
    assert_eq!(h.api.scopes(&who), []);
    let audited: Vec<Value> = std::iter::from_fn(|| h.audit.try_recv().ok()).collect();
    let events: Vec<&str> = audited
        .iter()
        .map(|line| line["event"].as_str().unwrap())
        .collect();
    assert_eq!(events, ["token.created", "token.revoked"]);
    assert_eq!(
        (&audited[1]["who"], &audited[1]["what"]["name"]),
        (&json!("user:ana"), &json!("ci"))
    );
    for kept in [list.to_string(), json!(audited).to_string()] {
        assert!(!kept.contains(created.token.expose()), "I8: {kept}");
    }
}

#[tokio::test]
async fn unknown_revoked_and_expired_tokens_get_the_same_fault() {
    let h = Harness::start().await;
    let revoked = made(&h, json!({ "name": "revoked", "scopes": ["read"] })).await;
    h.call("token.revoke", json!({ "name": "revoked" }))
        .await
        .unwrap();
    let expired = made(&h, json!({ "name": "expired", "scopes": ["read"], "ttl_ms": 1 })).await;
    h.api.revoked(&Principal::token("expired")).await;
    let (long, unknown) = ("x".repeat(100_000), format!("agentd_{}", "0".repeat(64)));
    let fault = h.api.authenticate("").await.unwrap_err();
    assert_eq!(
        (fault.class, fault.code.as_str()),
        (FaultClass::Denied, "bad_token")
    );
    for token in [revoked.token.expose(), expired.token.expose(), &unknown, &long] {
        assert_eq!(h.api.authenticate(token).await.unwrap_err(), fault);
    }
    // A name alone is worth nothing, and a user is never revoked.
    h.api.revoked(&Principal::token("nobody")).await;
    let ana = Harness::ana();
    let never = timeout(Duration::from_millis(1), h.api.revoked(&ana));
    assert!(never.await.is_err());
}

#[tokio::test]
async fn invalid_tokens_are_refused_with_the_reason() {
    let h = Harness::start().await;
    let cases = [
        (json!({ "scopes": ["read"] }), "bad_token_name"),
        (json!({ "name": "a b", "scopes": ["read"] }), "bad_token_name"),
        (json!({ "name": "-a", "scopes": ["read"] }), "bad_token_name"),
        (
            json!({ "name": "x".repeat(64), "scopes": ["read"] }),
            "bad_token_name",
        ),
        (json!({ "name": "a" }), "scopes_missing"),
        (json!({ "name": "a", "scopes": ["fly"] }), "unknown_scope"),
        (
            json!({ "name": "a", "scopes": ["read"], "labels": { "a b": "c" } }),
            "bad_label",
        ),
        (json!({ "name": "a", "scopes": ["read"], "ttl_ms": 0 }), "bad_ttl"),
        (
            json!({ "name": "a", "scopes": ["read"], "ttl_ms": u64::MAX }),
            "bad_ttl",
        ),
        (json!({ "name": "a", "scope": "read" }), "bad_params"),
    ];
    for (params, wrong) in cases {
        let refused = h.refused("token.create", params.clone()).await;
        assert_eq!(refused, (FaultClass::Invalid, wrong.to_owned()), "{params}");
    }
    let longest = "x".repeat(63);
    made(&h, json!({ "name": longest, "scopes": ["admin", "read"] })).await;
    let again = h
        .refused("token.create", json!({ "name": longest, "scopes": ["read"] }))
        .await;
    assert_eq!(again, (FaultClass::Conflict, "token_exists".to_owned()));
    let unknown = h.refused("token.revoke", json!({ "name": "nobody" })).await;
    assert_eq!(unknown, (FaultClass::NotFound, "unknown_token".to_owned()));
    // A caller can grant only scopes that it has.
    let admin = Principal::token(&longest);
    let steering = json!({ "name": "b", "scopes": ["read", "steer"] });
    let refused = h.api.call(&admin, "token.create", steering).await.unwrap_err();
    assert_eq!(
        (refused.class, refused.code.as_str()),
        (FaultClass::Denied, "scope_beyond")
    );
}
