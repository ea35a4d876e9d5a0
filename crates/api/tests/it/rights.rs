//! Where and how the sessions of a token may work: each attack, and that it works without the guard, which local users are.

use crate::harness::Harness;
use agentd_protocol::{Created, PermissionMode, Principal};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

/// A token with these scopes and rights.
async fn token(h: &Harness, name: &str, scopes: &[&str], mut rights: Value) -> Principal {
    rights["name"] = json!(name);
    rights["scopes"] = json!(scopes);
    h.call("token.create", rights).await.unwrap();
    Principal::token(name)
}

async fn code(h: &Harness, who: &Principal, method: &str, params: Value) -> String {
    let outcome = h.api.call(who, method, params).await;
    outcome.map_or_else(|fault| fault.code, |_| "ok".to_owned())
}

/// A directory of the test.
fn dir(h: &Harness, name: &str) -> String {
    let path = h.dir.path().join(name);
    fs::create_dir_all(&path).unwrap();
    path.to_str().unwrap().to_owned()
}

fn link(h: &Harness, from: &str, to: &str) -> String {
    let path: PathBuf = h.dir.path().join(from);
    symlink(h.dir.path().join(to), &path).unwrap();
    path.to_str().unwrap().to_owned()
}

async fn created(h: &Harness, who: &Principal, params: Value) -> Created {
    serde_json::from_value(h.api.call(who, "session.create", params).await.unwrap()).unwrap()
}

/// The methods that give a session a directory, with parameters that name this one.
fn ways(session: &Created, workdir: &str, lines: &Value) -> [(&'static str, Value); 3] {
    [
        ("session.create", json!({ "workdir": workdir })),
        ("session.import", json!({ "workdir": workdir, "lines": lines })),
        (
            "session.resume",
            json!({ "session": session.session, "workdir": workdir }),
        ),
    ]
}

#[tokio::test]
async fn i7_a_token_works_only_in_its_directories() {
    let h = Harness::start().await;
    let (mine, others) = (dir(&h, "mine"), dir(&h, "others"));
    let below = dir(&h, "mine/below");
    let out = link(&h, "mine/out", "others");
    let near = dir(&h, "mine-too");
    let scopes = ["read", "steer", "import"];
    let who = token(&h, "ci", &scopes, json!({ "dirs": [mine] })).await;
    let session = created(&h, &who, json!({ "workdir": mine })).await;
    let export = json!({ "session": session.session });
    let lines = h.call("session.export", export).await.unwrap()["lines"].clone();
    let missing = format!("{others}/missing");
    for workdir in [
        &others,
        &out,
        &near,
        &missing,
        &"/".to_owned(),
        &"/etc".to_owned(),
    ] {
        for (method, params) in ways(&session, workdir, &lines) {
            assert_eq!(
                code(&h, &who, method, params).await,
                "directory_denied",
                "{method} in {workdir}"
            );
        }
    }
    for (method, params) in ways(&session, &below, &lines) {
        assert_eq!(code(&h, &who, method, params).await, "ok", "{method}");
    }
    // Without the guard it works: a local user may, and so may a token with that directory.
    for (method, params) in ways(&session, &others, &lines) {
        assert_eq!(code(&h, &Harness::ana(), method, params).await, "ok", "{method}");
    }
    let wide = token(&h, "wide", &scopes, json!({ "dirs": [others] })).await;
    assert_eq!(
        code(&h, &wide, "session.create", json!({ "workdir": out })).await,
        "directory_denied"
    );
    assert_eq!(
        code(&h, &wide, "session.create", json!({ "workdir": others })).await,
        "ok"
    );
}

#[tokio::test]
async fn i7_a_token_without_directories_works_in_none_and_learns_nothing_of_them() {
    let h = Harness::start().await;
    let who = token(&h, "ci", &["read", "steer"], json!({})).await;
    let fault = async |workdir: &str| {
        let mut fault = h
            .api
            .call(&who, "session.create", json!({ "workdir": workdir }))
            .await
            .unwrap_err();
        fault.message = fault.message.replace(workdir, "DIR");
        fault
    };
    let missing = format!("{}/missing", h.workdir());
    let there = fault(&h.workdir()).await;
    assert_eq!(there.code, "directory_denied");
    assert_eq!(there, fault(&missing).await);
}

#[tokio::test]
async fn i7_no_session_works_in_the_files_of_the_daemon() {
    let h = Harness::start().await;
    let all = h.dir.path().to_str().unwrap();
    let who = token(&h, "ci", &["read", "steer"], json!({ "dirs": [all] })).await;
    link(&h, "work/data", "data");
    for own in [
        "data",
        "data/logs",
        "data/blobs",
        "data/checkpoints/a",
        "data/workspaces",
        "data/mirrors",
        "work/data/logs",
    ] {
        let workdir = dir(&h, own);
        for by in [&who, &Harness::ana()] {
            for params in [
                json!({ "workdir": workdir }),
                json!({ "workdir": workdir, "force": true }),
                json!({ "workdir": workdir, "workspace": { "kind": "copy" } }),
            ] {
                assert_eq!(
                    code(&h, by, "session.create", params).await,
                    "bad_workdir",
                    "{own} by {by}"
                );
            }
        }
    }
    // What contains them is not for tokens, either. Local users are refused where a sandbox would expose them.
    assert_eq!(
        code(&h, &who, "session.create", json!({ "workdir": all })).await,
        "bad_workdir"
    );
    assert_eq!(
        code(&h, &Harness::ana(), "session.create", json!({ "workdir": all })).await,
        "ok"
    );
}

#[tokio::test]
async fn i7_a_protected_place_is_no_working_directory() {
    let h = Harness::start().await;
    let all = h.dir.path().to_str().unwrap();
    let who = token(
        &h,
        "ci",
        &["read", "steer", "approve"],
        json!({ "dirs": [all], "mode": "yolo" }),
    )
    .await;
    let ana = Harness::ana();
    for place in [
        ".ssh",
        ".config/autostart",
        ".config/systemd/user",
        ".config/git",
        ".git_template/hooks",
        ".cargo/bin",
        "bin",
        ".codex",
        "project/.git/hooks",
    ] {
        let workdir = dir(&h, &format!("home/{place}"));
        let plain = json!({ "workdir": workdir, "mode": "accept-edits" });
        let mut forced = plain.clone();
        forced["force"] = json!(true);
        let protected = "protected_directory";
        for (by, params, expected) in [
            (&who, &plain, protected),
            (&who, &forced, protected),
            (&ana, &plain, protected),
            (&ana, &forced, "ok"),
        ] {
            assert_eq!(
                code(&h, by, "session.create", params.clone()).await,
                expected,
                "{place} by {by}"
            );
        }
    }
    let project = dir(&h, "home/project");
    for by in [&who, &ana] {
        assert_eq!(
            code(&h, by, "session.create", json!({ "workdir": project })).await,
            "ok",
            "{by}"
        );
    }
}

#[tokio::test]
async fn i7_a_token_for_a_hidden_directory_has_nothing_protected_below_it() {
    let h = Harness::start().await;
    let app = dir(&h, "place/.hidden/app");
    let who = token(&h, "ci", &["read", "steer"], json!({ "dirs": [app] })).await;
    let above = token(
        &h,
        "above",
        &["read", "steer"],
        json!({ "dirs": [dir(&h, "place")] }),
    )
    .await;
    let create = async |by: &Principal, workdir: &str| {
        code(&h, by, "session.create", json!({ "workdir": workdir })).await
    };
    assert_eq!(create(&who, &app).await, "ok");
    assert_eq!(create(&who, &dir(&h, "place/.hidden/app/etc")).await, "ok");
    assert_eq!(
        create(&above, &app).await,
        "protected_directory",
        "nobody named it"
    );
    for below in [".git/hooks", ".vscode", "src/.github/workflows"] {
        let workdir = dir(&h, &format!("place/.hidden/app/{below}"));
        assert_eq!(create(&who, &workdir).await, "protected_directory", "{below}");
    }
}

#[tokio::test]
async fn i7_steer_does_not_loosen_a_session() {
    let h = Harness::start().await;
    let rights = json!({ "dirs": [h.workdir()], "mode": "yolo" });
    let steers = token(&h, "steers", &["read", "steer"], rights.clone()).await;
    let approves = token(&h, "approves", &["read", "steer", "approve"], rights).await;
    let capped = token(
        &h,
        "capped",
        &["read", "steer", "approve"],
        json!({ "dirs": [h.workdir()] }),
    )
    .await;
    let session = created(&h, &Harness::ana(), json!({ "workdir": h.workdir() }))
        .await
        .session;
    let typed = |text: &str| {
        let content = json!([{ "type": "text", "text": text }]);
        json!({ "session": session, "content": content, "commands": true })
    };
    let update = |change: Value| {
        let mut params = change;
        params["session"] = json!(session);
        params
    };
    let attacks = [
        ("session.update", update(json!({ "mode": "yolo" }))),
        ("session.update", update(json!({ "mode": "accept-edits" }))),
        ("input.send", typed("/mode yolo")),
    ];
    for (method, params) in &attacks {
        let at = params.to_string();
        assert_eq!(
            code(&h, &steers, method, params.clone()).await,
            "needs_approve",
            "{at}"
        );
        assert_eq!(
            code(&h, &capped, method, params.clone()).await,
            "mode_beyond",
            "{at}"
        );
    }
    assert_eq!(
        code(&h, &steers, "session.update", update(json!({ "mode": "plan" }))).await,
        "ok"
    );
    let guarded = || h.played.lock().unwrap().guarded;
    assert_eq!(guarded(), 1, "it rests on the mode that was judged");
    for (method, params) in attacks {
        assert_eq!(
            code(&h, &approves, method, params.clone()).await,
            "ok",
            "{params}"
        );
        h.call("session.update", update(json!({ "mode": "default" })))
            .await
            .unwrap();
    }
}

#[tokio::test]
async fn i7_steer_does_not_create_a_loose_session() {
    let h = Harness::with(|settings| {
        settings.permission.mode = PermissionMode::Yolo;
        settings.budget.session.tokens = 100;
    })
    .await;
    let rights = json!({ "dirs": [h.workdir()] });
    let steers = token(&h, "steers", &["read", "steer"], rights.clone()).await;
    let approves = token(&h, "approves", &["read", "steer", "approve"], rights).await;
    let create = |change: Value| {
        let mut params = change;
        params["workdir"] = json!(h.workdir());
        params
    };
    for (change, by_steer, by_approve) in [
        (json!({ "mode": "yolo" }), "mode_beyond", "mode_beyond"),
        (json!({ "rules": ["allow Bash"] }), "needs_approve", "ok"),
        (
            json!({ "rules": ["deny Edit", "allow Bash(ls)"] }),
            "needs_approve",
            "ok",
        ),
        (json!({ "budget": { "tokens": 101 } }), "needs_approve", "ok"),
        (json!({ "budget": { "usd": 1.0 } }), "needs_approve", "ok"),
        (json!({ "max_turns": 0 }), "needs_approve", "ok"),
        (
            json!({ "rules": ["deny Bash", "ask Edit"], "budget": { "tokens": 5 }, "max_turns": 1 }),
            "ok",
            "ok",
        ),
    ] {
        let at = change.to_string();
        assert_eq!(
            code(&h, &steers, "session.create", create(change.clone())).await,
            by_steer,
            "{at}"
        );
        assert_eq!(
            code(&h, &approves, "session.create", create(change)).await,
            by_approve,
            "{at}"
        );
    }
    // The default of the node is not asked for, so it is lowered and no error.
    for (by, mode) in [(&steers, "default"), (&Harness::ana(), "yolo")] {
        let made = created(&h, by, create(json!({}))).await;
        let log = h
            .call("session.export", json!({ "session": made.session }))
            .await
            .unwrap();
        let first: Value = serde_json::from_str(log["lines"][0].as_str().unwrap()).unwrap();
        assert_eq!(first["mode"], mode, "{by}");
    }
}

#[tokio::test]
async fn i7_a_fork_is_no_way_around_the_rights() {
    let h = Harness::start().await;
    let (mine, others) = (dir(&h, "mine"), dir(&h, "others"));
    let who = token(&h, "ci", &["read", "steer"], json!({ "dirs": [mine] })).await;
    let ana = Harness::ana();
    let fork = async |workdir: &str, mode: &str, by: &Principal| {
        let session = created(&h, &ana, json!({ "workdir": workdir, "mode": mode }))
            .await
            .session;
        code(&h, by, "session.fork", json!({ "session": session })).await
    };
    assert_eq!(fork(&mine, "default", &who).await, "ok");
    assert_eq!(fork(&others, "default", &who).await, "directory_denied");
    assert_eq!(fork(&mine, "yolo", &who).await, "mode_beyond");
    assert_eq!(fork(&others, "yolo", &ana).await, "ok");
}

#[tokio::test]
async fn i7_tokens_made_by_tokens_have_no_more_rights() {
    let h = Harness::start().await;
    let admin = token(
        &h,
        "admin",
        &["read", "steer", "admin"],
        json!({ "dirs": [h.workdir()] }),
    )
    .await;
    let make = |name: &str, rights: Value| {
        let mut params = rights;
        params["name"] = json!(name);
        params["scopes"] = json!(["read", "steer"]);
        params
    };
    for (name, rights, expected) in [
        ("a", json!({ "dirs": ["/"] }), "rights_beyond"),
        ("b", json!({ "mode": "yolo" }), "rights_beyond"),
        ("c", json!({ "sources": ["*"] }), "rights_beyond"),
        ("d", json!({ "dirs": ["relative"] }), "bad_rights"),
        ("e", json!({ "dirs": [h.workdir()] }), "ok"),
    ] {
        assert_eq!(
            code(&h, &admin, "token.create", make(name, rights)).await,
            expected,
            "{name}"
        );
    }
    assert_eq!(
        code(
            &h,
            &Harness::ana(),
            "token.create",
            make("f", json!({ "dirs": ["/"], "mode": "yolo" }))
        )
        .await,
        "ok"
    );
    let rows = h.call("token.list", json!({})).await.unwrap();
    let row = |name: &str| {
        rows.as_array()
            .unwrap()
            .iter()
            .find(|row| row["name"] == name)
            .unwrap()
            .clone()
    };
    assert_eq!(
        (&row("e")["dirs"], &row("e")["mode"]),
        (&json!([h.workdir()]), &json!("default"))
    );
    let words = row("e")["may"].to_string();
    assert!(
        words.contains(&h.workdir()) && words.contains("writes and commands ask"),
        "{words}"
    );
}
