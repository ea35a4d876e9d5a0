//! Creating, listing and ending sessions; refused requests.

use crate::harness::Harness;
use agentd_actor_kit::LiveStatus;
use agentd_api::StopRequest;
use agentd_protocol::*;
use serde_json::{Value, json};

const INVALID: FaultClass = FaultClass::Invalid;

fn prompt(text: &str) -> Value {
    json!([{ "type": "text", "text": text }])
}

#[tokio::test]
async fn a_session_is_created_from_the_settings_and_the_request() {
    let h = Harness::start().await;
    let params = json!({
        "workdir": h.workdir(), "prompt": prompt("fix the failing test\nplease"),
        "rules": ["deny Bash"], "labels": {"team": "infra"}, "tools": ["bash", "Read", "read_file"],
    });
    let created: Created = serde_json::from_value(h.call("session.create", params).await.unwrap()).unwrap();
    assert_eq!((created.name.as_str(), created.seq), ("fix the failing test", 2));
    let lines = h
        .call("session.export", json!({ "session": "@last" }))
        .await
        .unwrap();
    let lines: Exported = serde_json::from_value(lines).unwrap();
    let event: Event = serde_json::from_str(&lines.lines[0]).unwrap();
    let EventBody::SessionCreated(first) = event.body else {
        panic!("not created: {event:?}")
    };
    let project = "work";
    let expected = SessionCreated {
        title: "fix the failing test".into(),
        project: project.into(),
        workdir: h.workdir(),
        model: "scripted".into(),
        mode: PermissionMode::Default,
        agent: None,
        labels: Labels::from([("team".into(), "infra".into())]),
        requires: [].into(),
        parent: None,
        limits: LoopLimits::default(),
        budget: Budget::default(),
        tools: vec!["Read".into()],
        system_prompt: None,
        append_system_prompt: None,
        rules: vec!["deny Bash".into()],
        lineage: None,
        prompt: Some(Box::default()),
        derived_title: true,
        workspace: None,
    };
    assert_eq!(first, expected);
    assert_eq!((event.by, lines.head), (Harness::ana(), 2));
}

#[tokio::test]
async fn a_session_keeps_the_real_path_of_its_directory() {
    let h = Harness::start().await;
    let link = h.dir.path().join("link");
    std::os::unix::fs::symlink(h.workdir(), &link).unwrap();
    h.call("session.create", json!({ "workdir": link }))
        .await
        .unwrap();
    let shown = h
        .call("session.get", json!({ "session": "@last" }))
        .await
        .unwrap();
    assert_eq!(shown["workdir"], h.workdir());
}

#[tokio::test]
async fn a_headless_session_has_a_deadline_for_people() {
    let h = Harness::start().await;
    h.call(
        "session.create",
        json!({ "workdir": h.workdir(), "headless": true, "preset": "react" }),
    )
    .await
    .unwrap();
    let lines = h
        .call("session.export", json!({ "session": "@last" }))
        .await
        .unwrap();
    let event: Value = serde_json::from_str(lines["lines"][0].as_str().unwrap()).unwrap();
    let limits = &event["limits"];
    assert_eq!(
        (
            &limits["unattended_ms"],
            &limits["headless"],
            &limits["max_turns"]
        ),
        (&json!(0), &json!(true), &json!(20))
    );
}

#[tokio::test]
async fn an_image_is_refused_if_its_model_is_known_to_take_none() {
    let h = Harness::start().await;
    let png =
        json!({ "type": "image", "media_type": "image/png", "data": "iVBORw0KGgoAAAANSUhEUgAAAAEAAAAB" });
    let content = json!([{ "type": "text", "text": "look" }, png]);
    let create = |model: &str, title: &str| json!({ "workdir": h.workdir(), "title": title, "model": model, "prompt": content });
    let refused = h.call("session.create", create("blind", "a")).await.unwrap_err();
    assert_eq!(refused.code, "images_not_taken");
    let hint = refused.hint.unwrap();
    assert!(
        hint.contains("capabilities.images = true in [models.blind]"),
        "{hint}"
    );
    // Only a guess: the session warns.
    h.call("session.create", create("scripted", "b")).await.unwrap();
    let send = |model: Value| json!({ "session": "b", "content": content, "model": model });
    h.call("input.send", send(json!(null))).await.unwrap();
    let refused = h.call("input.send", send(json!("blind"))).await.unwrap_err();
    assert_eq!(refused.code, "images_not_taken");
    let words = json!({ "session": "b", "content": prompt("go"), "model": "blind" });
    h.call("input.send", words).await.unwrap();
}

/// Checks that a creation with these parameters in a valid working directory is refused with this code.
async fn check_refused(h: &Harness, extra: Value, code: &str) {
    let mut params = json!({ "workdir": h.workdir() });
    for (key, value) in extra.as_object().unwrap() {
        params[key] = value.clone();
    }
    let class = if code.ends_with("_too_large") {
        FaultClass::Limit
    } else {
        INVALID
    };
    assert_eq!(
        h.refused("session.create", params).await,
        (class, code.to_owned()),
        "{extra}"
    );
}

#[tokio::test]
async fn a_working_directory_must_be_an_existing_absolute_directory() {
    let h = Harness::start().await;
    let file = h.dir.path().join("file");
    std::fs::write(&file, "x").unwrap();
    let up = format!("{}/../x", h.workdir());
    for workdir in ["", "relative", "/no/such/directory", file.to_str().unwrap(), &up] {
        check_refused(&h, json!({ "workdir": workdir }), "bad_workdir").await;
    }
}

#[tokio::test]
async fn invalid_parameters_of_a_create_are_named() {
    let h = Harness::with(|settings| settings.limits.max_input_bytes = 100).await;
    let tool_use = json!([{"type": "tool_use", "id": "1", "name": "x", "input": {}}]);
    let cases = [
        (json!({"prompt": prompt("  ")}), "empty_input"),
        (json!({"prompt": []}), "empty_input"),
        (json!({"prompt": prompt(&"x".repeat(101))}), "input_too_large"),
        (json!({"prompt": tool_use}), "bad_content"),
        (
            json!({"append_system_prompt": "x".repeat(101)}),
            "prompt_too_large",
        ),
        (json!({"title": "x".repeat(201)}), "bad_title"),
        (json!({"title": "@last"}), "bad_title"),
        (json!({"labels": {"a b": "c"}}), "bad_label"),
        (json!({"labels": {"a": "b,c"}}), "bad_label"),
        (json!({"rules": ["allow Bash("]}), "bad_rule"),
        (json!({"rules": ["deny "]}), "bad_rule"),
        (json!({"rules": ["deny"]}), "bad_rule"),
        (json!({"rules": ["deny Bsh"]}), "unknown_tool"),
        (json!({"tools": ["Telepathy"]}), "unknown_tool"),
        (json!({"tools": ["mcp__mail__*"]}), "unknown_tool"),
        (json!({"tools": ["mcp__files__"]}), "unknown_tool"),
        (json!({"tools": ["mcp__files__a b"]}), "unknown_tool"),
        (json!({"model": "sonet"}), "unknown_model"),
        (json!({"model": ""}), "unknown_model"),
        (json!({"max_turns": -2}), "bad_max_turns"),
        (
            json!({"budget": {"tokens": 0, "usd": -1.0, "time_ms": 0, "steps": 0}}),
            "bad_budget",
        ),
        (json!({"key": ""}), "bad_key"),
        (json!({"colour": "red"}), "bad_params"),
    ];
    for (extra, code) in cases {
        check_refused(&h, extra, code).await;
    }
    assert_eq!(
        h.call("session.list", json!({"all": true})).await.unwrap(),
        json!([])
    );
}

#[tokio::test]
async fn a_refusal_names_the_field_or_the_nearest_word() {
    let h = Harness::start().await;
    let colour = json!({ "workdir": h.workdir(), "colour": "red" });
    let fault = h.call("session.create", colour).await.unwrap_err();
    assert_eq!(fault.message, "params: colour: there is no such key");
    let model = json!({ "workdir": h.workdir(), "model": "sonet" });
    let fault = h.call("session.create", model).await.unwrap_err();
    assert_eq!(fault.hint.unwrap(), "did you mean sonnet?");
}

#[tokio::test]
async fn i7_without_a_gate_no_session_is_created() {
    let h = Harness::start().await;
    h.gate.clear();
    let refused = h
        .refused("session.create", json!({ "workdir": h.workdir() }))
        .await;
    assert_eq!(refused, (FaultClass::Unavailable, "actor_down".to_owned()));
    assert_eq!(h.played.lock().unwrap().routed, 0);
}

#[tokio::test]
async fn i1_a_key_repeats_its_answer_and_another_body_is_a_conflict() {
    let h = Harness::start().await;
    let params = json!({ "workdir": h.workdir(), "title": "one", "key": "k1" });
    let first = h.call("session.create", params.clone()).await.unwrap();
    assert_eq!(h.call("session.create", params).await.unwrap(), first);
    let other = json!({ "workdir": h.workdir(), "title": "two", "key": "k1" });
    assert_eq!(
        h.refused("session.create", other).await,
        (FaultClass::Conflict, "key_reused".to_owned())
    );

    let send = json!({ "session": "one", "content": prompt("go"), "key": "k2" });
    let sent = h.call("input.send", send.clone()).await.unwrap();
    assert_eq!(h.call("input.send", send.clone()).await.unwrap(), sent);
    let get = h.call("session.get", json!({ "session": "one" })).await.unwrap();
    assert_eq!((&get["seq"], &sent["seq"]), (&json!(2), &json!(2)));
    // Another user's key is a different key.
    let bob = h
        .api
        .call(&Principal::user("bob"), "input.send", send)
        .await
        .unwrap();
    assert_ne!(bob, sent);
}

#[tokio::test]
async fn two_requests_with_one_key_at_the_same_time_get_one_answer() {
    let h = Harness::start().await;
    h.session("one").await;
    let send = json!({ "session": "one", "content": prompt("go"), "key": "k" });
    let (a, b) = tokio::join!(h.call("input.send", send.clone()), h.call("input.send", send));
    assert_eq!(a.unwrap(), b.unwrap());
    assert_eq!(
        h.call("session.get", json!({ "session": "one" })).await.unwrap()["seq"],
        json!(2)
    );
}

#[tokio::test]
async fn inputs_are_checked() {
    let h = Harness::with(|settings| settings.limits.max_input_bytes = 10).await;
    h.session("one").await;
    let cases = [
        (json!({"session": "one"}), INVALID, "empty_input"),
        (
            json!({"session": "one", "content": prompt("12345678901")}),
            FaultClass::Limit,
            "input_too_large",
        ),
        (
            json!({"session": "none", "content": prompt("x")}),
            FaultClass::NotFound,
            "unknown_session",
        ),
        (json!({"content": prompt("x")}), INVALID, "session_missing"),
        (
            json!({"session": "one", "content": prompt("x"), "model": "nope"}),
            INVALID,
            "unknown_model",
        ),
        (
            json!({"session": "one", "content": prompt("x"), "model": ""}),
            INVALID,
            "unknown_model",
        ),
    ];
    for (params, class, code) in cases {
        assert_eq!(
            h.refused("input.send", params.clone()).await,
            (class, code.to_owned()),
            "{params}"
        );
    }
    assert_eq!(
        h.refused("input.cancel", json!({"session": "one"})).await,
        (INVALID, "input_missing".into())
    );
    assert_eq!(
        h.refused("session.update", json!({"session": "one"})).await,
        (INVALID, "nothing_to_update".into())
    );
}

#[tokio::test]
async fn lists_prefer_live_states_and_are_paged() {
    let h = Harness::with(|settings| settings.limits.list_rows = 2).await;
    let mut ids = Vec::new();
    for n in 0..5 {
        ids.push(h.session(&format!("s{n}")).await);
    }
    let said = |seq, reason| LiveStatus {
        seq,
        status: Status::new(RunState::Waiting(reason), "waits", Timestamp(1)),
    };
    // The second session was answered, but has not reported yet that it continues.
    h.played.lock().unwrap().overlay.extend([
        (ids[3], said(None, WaitReason::Permit)),
        (ids[2], said(Some(0), WaitReason::Approval)),
    ]);
    let names = |rows: Value| -> Vec<String> {
        let rows: Vec<Summary> = serde_json::from_value(rows).unwrap();
        rows.into_iter().map(|row| row.name).collect()
    };
    let first = h.call("session.list", json!({})).await.unwrap();
    let after = first[1]["session"].clone();
    let mut all = names(first);
    all.extend(names(
        h.call("session.list", json!({ "after": after, "limit": 9 }))
            .await
            .unwrap(),
    ));
    all.sort();
    assert_eq!(all.len(), 4);
    let waiting = h
        .call("session.list", json!({ "states": ["waiting"] }))
        .await
        .unwrap();
    assert_eq!(names(waiting), ["s3"]);
    let idle = h
        .call("session.list", json!({ "states": ["idle"], "limit": 2 }))
        .await
        .unwrap();
    assert_eq!(names(idle).len(), 2);
    // Rows that a filter leaves out do not count.
    for (state, limit) in [("waiting", 1), ("idle", 2)] {
        let some = json!({ "states": [state], "limit": limit });
        let some = h.call("session.list", some).await.unwrap();
        assert_eq!(names(some).len(), limit, "{state}");
    }
    assert_eq!(
        h.refused("session.list", json!({ "states": ["busy"] })).await,
        (INVALID, "unknown_state".into())
    );
    assert_eq!(h.played.lock().unwrap().routed, 5, "reading wakes no session");
}

#[tokio::test]
async fn the_fleet_history_counts_live_states_per_minute() {
    let h = Harness::start().await;
    let mut ids = Vec::new();
    for n in 0..3 {
        ids.push(h.session(&format!("s{n}")).await);
    }
    let waits = |reason| LiveStatus {
        seq: None,
        status: Status::new(RunState::Waiting(reason), "waits", Timestamp(1)),
    };
    h.played.lock().unwrap().overlay.extend([
        (ids[0], waits(WaitReason::Permit)),
        (ids[1], waits(WaitReason::Approval)),
    ]);
    let history = h.call("fleet.history", json!({})).await.unwrap();
    let states = json!({"idle": 1, "waiting(approval)": 1, "waiting(permit)": 1});
    assert_eq!((&history["states"], &history["minutes"]), (&states, &json!([])));
    let totals = &history["totals"];
    assert_eq!(
        (&totals["waiting_person"], &totals["running"]),
        (&json!(1), &json!(1))
    );
    h.api.count_minute().await.unwrap();
    let later = h.call("fleet.history", json!({})).await.unwrap();
    assert_eq!(later["minutes"], json!([totals]));
}

#[tokio::test]
async fn named_sessions_are_listed_newest_first_without_unknown_ones() {
    let h = Harness::start().await;
    let (first, second) = (h.session("first").await, h.session("second").await);
    h.session("other").await;
    let unknown = "01890a5d-ac96-774b-bcce-b302099a8057";
    let some = json!({ "sessions": [first, unknown, second, first] });
    let rows: Vec<Summary> = serde_json::from_value(h.call("session.list", some).await.unwrap()).unwrap();
    let found: Vec<_> = rows.iter().map(|row| row.session).collect();
    assert_eq!(found, [first.max(second), first.min(second)]);
    let many = json!({ "sessions": vec![unknown; 201] });
    assert_eq!(
        h.refused("session.list", many).await,
        (INVALID, "bad_params".into())
    );
}

#[tokio::test]
async fn closed_sessions_are_listed_only_on_request() {
    let h = Harness::start().await;
    h.session("one").await;
    h.call("session.close", json!({ "session": "one" }))
        .await
        .unwrap();
    assert_eq!(h.call("session.list", json!({})).await.unwrap(), json!([]));
    for ask in [json!({ "all": true }), json!({ "states": ["closed"] })] {
        assert_eq!(
            h.call("session.list", ask).await.unwrap()[0]["name"],
            json!("one")
        );
    }
}

#[tokio::test]
async fn a_running_session_is_deleted_only_with_force() {
    let h = Harness::start().await;
    let session = h.session("one").await;
    h.log
        .edit(session, |row| row.status.state = RunState::RunningTool)
        .await;
    let refused = h.refused("session.delete", json!({ "session": "one" })).await;
    assert_eq!(refused, (FaultClass::Conflict, "session_running".to_owned()));
    h.call("session.delete", json!({ "session": "one", "force": true }))
        .await
        .unwrap();
    assert_eq!(h.played.lock().unwrap().evicted, [session]);
    let gone = h
        .refused("session.get", json!({ "session": session.to_string() }))
        .await;
    assert_eq!(gone, (FaultClass::NotFound, "unknown_session".to_owned()));
}

#[tokio::test]
async fn resuming_a_faulted_session_revives_it() {
    let h = Harness::start().await;
    let session = h.session("one").await;
    h.played.lock().unwrap().faulted.push(session);
    let done = h
        .call("session.resume", json!({ "session": "one" }))
        .await
        .unwrap();
    assert_eq!((done, h.played.lock().unwrap().routed), (json!({ "seq": 1 }), 1));
}

#[tokio::test]
async fn unknown_methods_and_sessions_and_missing_actors_have_their_fault_class() {
    let h = Harness::start().await;
    assert_eq!(
        h.refused("session.creat", json!({})).await,
        (INVALID, "unknown_method".into())
    );
    assert_eq!(
        h.refused("session.attach", json!({})).await,
        (INVALID, "needs_connection".into())
    );
    assert_eq!(
        h.refused("node.status", json!({"x": 1})).await,
        (INVALID, "bad_params".into())
    );
    let token = Principal("token:ci".into());
    let denied = h.api.call(&token, "node.stop", json!({})).await.unwrap_err();
    assert_eq!(
        (denied.class, denied.code.as_str()),
        (FaultClass::Denied, "bad_token")
    );
    let node = Principal("node:a1".into());
    let denied = h.api.call(&node, "node.stop", json!({})).await.unwrap_err();
    assert_eq!(
        (denied.class, denied.code.as_str()),
        (FaultClass::Denied, "missing_scope")
    );
    h.session("one").await;
    h.supervisor.clear();
    let refused = h
        .refused("input.send", json!({ "session": "one", "content": prompt("x") }))
        .await;
    assert_eq!(refused, (FaultClass::Unavailable, "actor_down".to_owned()));
}

#[tokio::test]
async fn the_node_reports_its_status_and_stops_on_request() {
    let mut h = Harness::start().await;
    h.session("one").await;
    let counted = h.api.connection_opened();
    let status: NodeStatus = serde_json::from_value(h.call("node.status", json!({})).await.unwrap()).unwrap();
    assert_eq!(
        (
            status.node.as_str(),
            status.hot,
            status.sessions,
            status.connections,
            status.restarts
        ),
        ("a1", 2, 1, 1, 3)
    );
    drop(counted);
    let said = h.call("node.diagnostics", json!({})).await.unwrap();
    assert_eq!(
        (&said["status"]["connections"], &said["rules"][0]),
        (&json!(0), &json!("built-in: deny Bash(sudo:*)"))
    );
    h.call("node.drain", json!({})).await.unwrap();
    assert_eq!(h.stop.recv().await, Some(StopRequest::Drain));
    let tools: Vec<ToolRow> = serde_json::from_value(h.call("tool.list", json!({})).await.unwrap()).unwrap();
    assert!(
        tools
            .iter()
            .any(|tool| tool.name == "Bash" && tool.effect == EffectClass::Exec)
    );
    assert_eq!(
        h.call("model.list", json!({})).await.unwrap()[1]["name"],
        json!("sonnet")
    );
}

#[tokio::test]
async fn usage_by_day_is_summed_by_group_and_asked_for_what_is_possible() {
    let h = Harness::start().await;
    let mut cursor = 0;
    let mut spend = |session: SessionId, cost_usd: f64| {
        cursor += 1;
        let usage = json!({ "input": 5, "output": 1 });
        let line = json!({
            "session": session, "at": h.log.clock.now(), "type": "model.finished", "usage": usage, "cost_usd": cost_usd,
        });
        h.daily.take(cursor, line.to_string().as_bytes());
    };
    for (name, team, cost) in [("a", "x", 1.0), ("b", "y", 4.0), ("c", "x", 2.0)] {
        let session = h.session(name).await;
        let edit = |row: &mut Summary| drop(row.labels.insert("team".into(), team.into()));
        h.log.edit(session, edit).await;
        spend(session, cost);
    }
    let asked = async |params| h.call("usage.daily", params).await.unwrap();
    let found = |rows: &Value| -> Vec<(String, f64)> {
        let pair = |row: &Value| {
            (
                row["group"].as_str().unwrap().to_owned(),
                row["cost_usd"].as_f64().unwrap(),
            )
        };
        rows.as_array().unwrap().iter().map(pair).collect()
    };
    let pairs = |pairs: &[(&str, f64)]| -> Vec<(String, f64)> {
        pairs
            .iter()
            .map(|(group, cost)| ((*group).to_owned(), *cost))
            .collect()
    };
    let teams = asked(json!({ "by": "team", "days": 1 })).await;
    assert_eq!(found(&teams), pairs(&[("y", 4.0), ("x", 3.0)]));
    assert_eq!(teams[0]["day"].as_str().unwrap().len(), 10);
    assert_eq!(found(&asked(json!({})).await), pairs(&[("scripted", 7.0)]));
    let labelled = asked(json!({ "labels": "team=x", "by": "kind" })).await;
    assert_eq!(found(&labelled), pairs(&[("(none)", 3.0)]));
    for (params, code) in [
        (json!({ "days": 0 }), "bad_days"),
        (json!({ "days": 63 }), "bad_days"),
        (json!({ "by": "session" }), "bad_group"),
    ] {
        assert_eq!(h.call("usage.daily", params).await.unwrap_err().code, code);
    }
    asked(json!({ "days": 62 })).await;
}

#[tokio::test]
async fn usage_is_summed_by_group() {
    let h = Harness::start().await;
    for (name, team, cost) in [("a", "x", 1.0), ("b", "y", 4.0), ("c", "x", 2.0)] {
        let session = h.session(name).await;
        let edit = |row: &mut Summary| {
            row.labels.insert("team".into(), team.into());
            row.cost_usd = cost;
            row.steps = 2;
        };
        h.log.edit(session, edit).await;
    }
    let rows: Vec<UsageRow> =
        serde_json::from_value(h.call("usage.query", json!({ "by": "team" })).await.unwrap()).unwrap();
    let row = |group: &str, sessions, steps, cost_usd| UsageRow {
        group: group.into(),
        sessions,
        steps,
        usage: Usage::default(),
        cost_usd,
    };
    assert_eq!(rows, [row("y", 1, 2, 4.0), row("x", 2, 4, 3.0)]);
    let by_model: Vec<UsageRow> =
        serde_json::from_value(h.call("usage.query", json!({})).await.unwrap()).unwrap();
    assert_eq!(by_model, [row("scripted", 3, 6, 7.0)]);
    h.call("session.delete", json!({ "session": "b" })).await.unwrap();
    for (asked, expected) in [
        (json!({ "by": "team" }), row("y", 1, 2, 4.0)),
        (json!({ "by": "session" }), row("(removed)", 1, 2, 4.0)),
        (json!({ "labels": { "team": "y" } }), row("scripted", 1, 2, 4.0)),
    ] {
        let rows: Vec<UsageRow> =
            serde_json::from_value(h.call("usage.query", asked).await.unwrap()).unwrap();
        assert_eq!(rows.first(), Some(&expected));
    }
}

#[tokio::test]
async fn a_bulk_operation_reports_an_outcome_per_session_in_the_order_of_the_request() {
    let h = Harness::start().await;
    for name in ["one", "two", "three"] {
        h.session(name).await;
    }
    let asked = ["two", "nobody", "one"];
    let close = json!({ "action": "close", "sessions": asked });
    let done: BulkDone = serde_json::from_value(h.call("session.bulk", close).await.unwrap()).unwrap();
    let outcomes = done.outcomes.iter();
    let outcomes: Vec<(&str, bool, Option<&str>)> = outcomes
        .map(|outcome| {
            let code = outcome.fault.as_ref().map(|fault| fault.code.as_str());
            (outcome.session.as_str(), outcome.done.is_some(), code)
        })
        .collect();
    assert_eq!(
        outcomes,
        [
            ("two", true, None),
            ("nobody", false, Some("unknown_session")),
            ("one", true, None),
        ]
    );
    let open = h.call("session.list", json!({})).await.unwrap();
    assert_eq!(open.as_array().unwrap().len(), 1);
    assert_eq!(open[0]["name"], json!("three"));
}

#[tokio::test]
async fn a_bulk_operation_needs_an_action_and_takes_at_most_2000_sessions() {
    let h = Harness::start().await;
    let bulk = |n: usize| json!({ "action": "pause", "sessions": vec!["nobody"; n] });
    let most: BulkDone = serde_json::from_value(h.call("session.bulk", bulk(2_000)).await.unwrap()).unwrap();
    assert_eq!(most.outcomes.len(), 2_000);
    let refused = h.refused("session.bulk", bulk(2_001)).await;
    assert_eq!(refused, (INVALID, "too_many_sessions".to_owned()));
    let refused = h.refused("session.bulk", json!({ "sessions": ["one"] })).await;
    assert_eq!(refused, (INVALID, "action_missing".to_owned()));
}

#[tokio::test]
async fn an_update_of_one_limit_keeps_the_others() {
    let h = Harness::start().await;
    let session = h.session("one").await;
    let change = |budget: Value| h.call("session.update", json!({ "session": session, "budget": budget }));
    let budget = async || {
        h.call("session.get", json!({ "session": session }))
            .await
            .unwrap()["budget"]
            .clone()
    };
    change(json!({"tokens": 9, "usd": 1.5})).await.unwrap();
    change(json!({"steps": 5})).await.unwrap();
    assert_eq!(
        budget().await,
        json!({"tokens": 9, "usd": 1.5, "time_ms": 0, "steps": 5})
    );
    change(json!({"tokens": 0, "usd": null})).await.unwrap();
    assert_eq!(
        budget().await,
        json!({"tokens": 0, "usd": 1.5, "time_ms": 0, "steps": 5})
    );
    let nothing = change(json!({})).await.unwrap_err();
    assert_eq!(nothing.code, "nothing_to_update");
    let typo = change(json!({"step": 7})).await.unwrap_err();
    assert_eq!(typo.message, "params: budget.step: there is no such key");
}

#[tokio::test]
async fn changes_of_different_limits_at_once_are_all_kept() {
    let h = Harness::start().await;
    let session = h.session("one").await;
    let change = |budget: Value| h.call("session.update", json!({ "session": session, "budget": budget }));
    let (a, b, c) = tokio::join!(
        change(json!({"tokens": 9})),
        change(json!({"steps": 5})),
        change(json!({"time_ms": 7}))
    );
    for done in [a, b, c] {
        done.unwrap();
    }
    let row = h
        .call("session.get", json!({ "session": session }))
        .await
        .unwrap();
    assert_eq!(
        row["budget"],
        json!({"tokens": 9, "usd": 0.0, "time_ms": 7, "steps": 5})
    );
}
