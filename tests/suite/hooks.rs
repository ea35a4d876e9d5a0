//! Hooks of the operator in a real daemon: a shell script for each event, in the sandbox of this machine.

use crate::{ASKING, YOLO, daemon, session};
use agentd_bench::model_server::ModelServer;
use agentd_client::Client;
use agentd_protocol::{
    Block, CreateParams, EndReason, Event, EventBody, HookEvent, HookFinished, HookStatus, PermissionMode,
    SendParams, ToolStatus, VerdictKind,
};
use agentd_tests::{Daemon, Follower, check_log, eventually, found};
use serde_json::Value;

/// One hook: its event and its script.
type Script<'a> = (&'a str, &'a str);

/// Stores its input below the working directory, under the name of its event.
fn keeps(event: &str) -> String {
    match event {
        // A new file in the project voids an open approval, and nothing waits for this hook: it writes after the turn.
        "Notification" => "until [ -e told.Stop ]; do sleep 0.05; done; cat >> told.Notification".to_owned(),
        event => format!("cat >> told.{event}"),
    }
}

fn hooks(scripts: &[Script<'_>], more: &str) -> String {
    let entry = |(n, (event, script)): (usize, &Script<'_>)| {
        format!(
            "  {{ name = \"h{n}\", event = \"{event}\", timeout = \"50s\", command = [\"/bin/sh\", \"-c\", '''{script}'''] {more}}},\n"
        )
    };
    let run: String = scripts.iter().enumerate().map(entry).collect();
    format!("[hooks]\nrun = [\n{run}]\n")
}

async fn with(base: &str, scripts: &[Script<'_>], more: &str) -> (ModelServer, Daemon, Client) {
    let server = ModelServer::start(false).await.unwrap();
    let config = format!("{base}{}[log]\ntrace = true\n", hooks(scripts, more));
    let daemon = daemon(&server, &config).await;
    let client = daemon.client().await;
    (server, daemon, client)
}

/// The JSON that a hook got, once it ran.
async fn told(daemon: &Daemon, event: &str) -> Vec<Value> {
    let path = format!("{}/told.{event}", daemon.workdir("project"));
    let read = || std::fs::read_to_string(&path).unwrap_or_default();
    eventually(&format!("{event} is told"), || read().ends_with('\n')).await;
    let lines = read();
    lines
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn records(log: &[Event], event: HookEvent) -> Vec<HookFinished> {
    let record = |body: &EventBody| match body {
        EventBody::HookFinished(finished) if finished.event == event => Some(finished.clone()),
        _ => None,
    };
    log.iter().filter_map(|event| record(&event.body)).collect()
}

fn results(log: &[Event]) -> Vec<(ToolStatus, String)> {
    let result = |body: &EventBody| match body {
        EventBody::ToolFinished(finished) => {
            Some((finished.outcome.status, finished.outcome.llm_text.clone()))
        }
        _ => None,
    };
    log.iter().filter_map(|event| result(&event.body)).collect()
}

fn notes(log: &[Event]) -> Vec<String> {
    let note = |body: &EventBody| match body {
        EventBody::NoteInjected(note) => Some(note.text.clone()),
        _ => None,
    };
    log.iter().filter_map(|event| note(&event.body)).collect()
}

async fn ended(client: &Client, session: &str) -> (EndReason, Vec<Event>) {
    let end = Follower::attach(client, session).await.turn_finished(1).await;
    (end.reason, check_log(client, session).await)
}

#[tokio::test(flavor = "multi_thread")]
async fn each_of_the_eleven_events_is_told_as_json_to_a_hook_in_the_sandbox() {
    let scripts: Vec<(String, String)> = HookEvent::ALL
        .iter()
        .map(|event| format!("{event:?}"))
        .map(|name| (name.clone(), keeps(&name)))
        .collect();
    let scripts: Vec<Script<'_>> = scripts.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
    let (_server, daemon, client) = with(ASKING, &scripts, "").await;
    let parent = session(&daemon, &client, "plan:p steps=1 command=false;").await;
    let mut follower = Follower::attach(&client, &parent).await;
    let asked = follower
        .until("the question", |body| matches!(body, EventBody::ApprovalAsked(_)))
        .await;
    let EventBody::ApprovalAsked(asked) = asked.body else {
        unreachable!("the test waited for it")
    };
    let allowed = daemon.agentctl(&["approve", &asked.approval.to_string()]).await;
    assert_eq!(allowed.code, Some(0), "{}", allowed.stderr);
    assert_eq!(follower.turn_finished(1).await.reason, EndReason::Completed);
    // A command that the hooks allow, in a child whose conversation is too long at first.
    let params = CreateParams {
        prompt: Some(vec![Block::text("plan:c steps=1 command=true fail=1:413;")]),
        workdir: daemon.workdir("project"),
        parent: parent.parse().ok(),
        mode: Some(PermissionMode::Yolo),
        ..CreateParams::default()
    };
    let overflowing = client.create(&params).await.unwrap().session.to_string();
    ended(&client, &overflowing).await;
    let params = CreateParams {
        prompt: Some(vec![Block::text("plan:d steps=1 command=true;")]),
        ..params
    };
    let child = client.create(&params).await.unwrap().session.to_string();
    assert_eq!(ended(&client, &child).await.0, EndReason::Completed);
    let closed = daemon.agentctl(&["close", &parent]).await;
    assert_eq!(closed.code, Some(0), "{}", closed.stderr);
    for event in HookEvent::ALL {
        let name = format!("{event:?}");
        let told = told(&daemon, &name).await;
        assert_eq!(told[0]["event"], name.as_str(), "{told:?}");
        assert!(told[0]["session"].is_string(), "{told:?}");
    }
    let failures = told(&daemon, "PostToolUseFailure").await;
    assert_eq!(failures[0]["status"], "error", "{failures:?}");
    assert_eq!(told(&daemon, "SubagentStop").await[0]["session"], child);
    // Two hooks of this event run at the same time: the other one tells that the session is idle.
    found("the approval is told", async || {
        let kinds = told(&daemon, "Notification").await;
        kinds.iter().any(|told| told["kind"] == "approval").then_some(())
    })
    .await;
    trace_has_the_stages(&daemon, &parent).await;
    model_calls_are_in_the_trace_and_in_the_log(&daemon, &parent).await;
}

/// The trace has each request with its settings and the last messages; the log has a line for each answer.
async fn model_calls_are_in_the_trace_and_in_the_log(daemon: &Daemon, session: &str) {
    let read =
        |name: &str| std::fs::read_to_string(daemon.data_dir().join("logs").join(name)).unwrap_or_default();
    let sent = || {
        let text = read("trace.jsonl");
        let records = text
            .lines()
            .filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let mine =
            records.filter(|record| record["session"] == session && record["event"] == "llm_request_sent");
        let read = |record: Value| {
            let data = |path: &str| record.pointer(&format!("/data/{path}")).unwrap().clone();
            let address = data("base_url").as_str().unwrap().to_owned();
            (data("messages_count"), data("last_messages/0/role"), address)
        };
        mine.map(read).collect::<Vec<_>>()
    };
    eventually("both requests are in the trace", || sent().len() == 2).await;
    for ((count, role, address), expected) in sent().into_iter().zip([1, 3]) {
        assert_eq!((count, role), (expected.into(), "user".into()));
        assert!(address.starts_with("http://127.0.0.1:"), "{address}");
    }
    eventually("the answers are in the log", || {
        let answered = |line: &str| line.contains("the model answered") && line.contains(session);
        read("agentd.log").lines().filter(|line| answered(line)).count() == 2
    })
    .await;
}

/// The seven stages of the one call of a session, each once and in order.
async fn trace_has_the_stages(daemon: &Daemon, session: &str) {
    let path = daemon.data_dir().join("logs/trace.jsonl");
    let stages = || {
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        let records = text
            .lines()
            .filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let mine =
            records.filter(|record| record["session"] == session && record["event"] == "stage_complete");
        let stage = |record: Value| {
            let data = |name: &str| record.pointer(&format!("/data/{name}")).unwrap();
            assert!(data("ms").is_number(), "{record}");
            format!(
                "{} {}",
                data("stage").as_str().unwrap(),
                data("outcome").as_str().unwrap()
            )
        };
        mine.map(stage).collect::<Vec<_>>()
    };
    // The file is written in pieces; the last piece comes at the end of the daemon or after a pause.
    eventually("the stages are written", || {
        stages().iter().any(|stage| stage.starts_with("formatting"))
    })
    .await;
    assert_eq!(
        stages(),
        [
            "discovery ok",
            "permission ask",
            "pre_hook ok",
            "confirmation allow",
            "execution error",
            "post_hook ok",
            "formatting error",
        ]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_prompt_that_a_hook_blocks_is_told_to_its_sender_and_another_gets_context() {
    let script =
        "grep -q secret && { echo 'no secrets here' >&2; exit 2; }; echo '{\"context\": \"mind the gap\"}'";
    let (_server, daemon, client) = with(YOLO, &[("UserPromptSubmit", script)], "").await;
    let workdir = daemon.workdir("project");
    let blocked = daemon
        .agentctl(&["run", "-C", &workdir, "-o", "json", "the secret plan:a steps=0;"])
        .await;
    let result: Value = serde_json::from_str(&blocked.stdout).unwrap();
    assert_eq!(result["reason"], "denied", "{result}");
    assert!(
        result["error"]["message"]
            .as_str()
            .unwrap()
            .ends_with("hook h0: no secrets here"),
        "{result}"
    );
    assert_eq!(blocked.code, Some(6), "{}", blocked.stderr);
    let session = result["session"].as_str().unwrap().to_owned();
    let log = check_log(&client, &session).await;
    assert!(!log.iter().any(|event| event.body.kind() == "turn.started"));
    let next = SendParams {
        session: session.clone(),
        content: vec![Block::text("plan:b steps=0;")],
        ..SendParams::default()
    };
    client.send(&next).await.unwrap();
    let (reason, log) = ended(&client, &session).await;
    assert_eq!(reason, EndReason::Completed);
    assert_eq!(notes(&log), ["[hook h0] mind the gap"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn hooks_change_inputs_and_results_and_the_log_has_what_was_before() {
    let before = "echo '{\"modifiedInput\": {\"command\": \"echo changed\"}}'";
    let after = "echo '{\"modifiedOutput\": \"all is well\"}'";
    let (_server, daemon, client) = with(YOLO, &[("PreToolUse", before), ("PostToolUse", after)], "").await;
    let session = session(&daemon, &client, "plan:a steps=1 command=echo_original;").await;
    let (reason, log) = ended(&client, &session).await;
    assert_eq!(reason, EndReason::Completed);
    assert_eq!(results(&log), [(ToolStatus::Ok, "all is well".to_owned())]);
    let replaced = records(&log, HookEvent::PostToolUse)[0].replaced.clone().unwrap();
    assert!(
        replaced.contains("changed") && !replaced.contains("original"),
        "{replaced}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hook_of_the_end_has_the_agent_go_on_and_cannot_do_so_for_ever() {
    let (_server, daemon, client) = with(YOLO, &[("Stop", "echo 'the tests fail' >&2; exit 2")], "").await;
    let session = session(&daemon, &client, "plan:a steps=0;").await;
    let (reason, log) = ended(&client, &session).await;
    assert_eq!(reason, EndReason::Completed);
    assert_eq!(records(&log, HookEvent::Stop).len(), 3);
    let models = log.iter().filter(|event| event.body.kind() == "model.finished");
    assert_eq!(models.count(), 3);
    assert_eq!(
        notes(&log),
        vec!["The turn does not end yet. hook h0: the tests fail"; 2]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hook_answers_a_question_only_when_the_operator_lets_it() {
    let script = "echo '{\"decision\": \"allow\", \"reason\": \"it is harmless\"}'";
    let (_server, daemon, client) =
        with(ASKING, &[("PermissionRequest", script)], ", may_allow = true").await;
    let id = session(&daemon, &client, "plan:a steps=1 command=echo_hi;").await;
    let (reason, log) = ended(&client, &id).await;
    assert_eq!(reason, EndReason::Completed);
    assert_eq!(results(&log)[0].0, ToolStatus::Ok);
    assert!(!log.iter().any(|event| event.body.kind() == "approval.asked"));
    let (_server, daemon, client) = with(ASKING, &[("PermissionRequest", script)], "").await;
    let id = session(&daemon, &client, "plan:a steps=1 command=echo_hi;").await;
    Follower::attach(&client, &id)
        .await
        .until("the question", |body| matches!(body, EventBody::ApprovalAsked(_)))
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn i7_hooks_that_crash_time_out_or_talk_nonsense_only_narrow() {
    for script in ["kill -9 $$", "exit 124", "echo nonsense", "exit 1", "sleep 1000"] {
        let timeout = if script.starts_with("sleep") { "1s" } else { "50s" };
        let of = |event: &str| {
            let config = hooks(&[(event, script)], "");
            config.replace("50s", timeout)
        };
        for (event, base) in [
            ("PreToolUse", YOLO),
            ("PermissionRequest", ASKING),
            ("UserPromptSubmit", YOLO),
            ("Compaction", YOLO),
            ("Stop", YOLO),
        ] {
            let server = ModelServer::start(false).await.unwrap();
            let daemon = daemon(&server, &format!("{base}{}", of(event))).await;
            let client = daemon.client().await;
            let fails = if event == "Compaction" { "fail=1:413" } else { "" };
            let plan = format!("plan:a steps=1 command=echo_hi {fails};");
            let session = session(&daemon, &client, &plan).await;
            let mut follower = Follower::attach(&client, &session).await;
            match event {
                "PreToolUse" => {
                    follower.turn_finished(1).await;
                    let log = check_log(&client, &session).await;
                    assert_eq!(results(&log)[0].0, ToolStatus::Denied, "{script}");
                }
                "PermissionRequest" => {
                    follower
                        .until("the question", |body| matches!(body, EventBody::ApprovalAsked(_)))
                        .await;
                }
                "UserPromptSubmit" => {
                    follower
                        .until("it is not let in", |body| {
                            matches!(body, EventBody::InputCancelled(_))
                        })
                        .await;
                }
                "Compaction" => {
                    let end = follower.turn_finished(1).await;
                    assert_eq!(end.reason, EndReason::ContextOverflow, "{script}");
                }
                _ => assert_eq!(
                    follower.turn_finished(1).await.reason,
                    EndReason::Completed,
                    "{script}"
                ),
            }
            let log = check_log(&client, &session).await;
            let failed = log.iter().any(|event| {
                matches!(&event.body, EventBody::HookFinished(hook)
                    if matches!(hook.status, HookStatus::Failed | HookStatus::Timeout)
                        && hook.decision != Some(VerdictKind::Allow))
            });
            assert!(failed, "{event} {script}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn i3_a_daemon_that_is_killed_while_hooks_are_asked_goes_on_with_one_result() {
    // The first time each hook hangs, the second time it answers.
    let once = |name: &str| format!("test -e seen.{name} || {{ touch seen.{name}; sleep 1000; }}");
    for event in ["UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop"] {
        let script = once(event);
        let (_server, mut daemon, client) = with(YOLO, &[(event, &script)], "").await;
        let session = session(&daemon, &client, "plan:a steps=1 command=echo_hi;").await;
        let seen = format!("{}/seen.{event}", daemon.workdir("project"));
        eventually("the hook is asked", || std::path::Path::new(&seen).exists()).await;
        daemon.kill().await;
        let daemon = daemon.restart(None).await;
        let client = daemon.client().await;
        let (reason, log) = ended(&client, &session).await;
        assert_eq!(reason, EndReason::Completed, "{event}");
        let results = results(&log);
        assert_eq!(results.len(), 1, "{event}");
        // A command whose result the hooks were processing may have run: its outcome is unknown now.
        let expected = if event == "PostToolUse" {
            ToolStatus::Interrupted
        } else {
            ToolStatus::Ok
        };
        assert_eq!(results[0].0, expected, "{event}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn doctor_tells_of_the_daemons_hooks_that_cannot_run_and_not_of_those_in_its_own_settings() {
    let server = ModelServer::start(false).await.unwrap();
    let hook = |name: &str| {
        format!(
            "[hooks]\nrun = [{{ name = \"{name}\", event = \"Stop\", command = [\"/nowhere/{name}\"] }}]\n"
        )
    };
    let mut daemon = daemon(&server, &format!("{YOLO}{}", hook("theirs"))).await;
    let config = daemon.dir.path().join(".config/agentd/config.toml");
    std::fs::create_dir_all(config.parent().unwrap()).unwrap();
    std::fs::write(&config, hook("ours")).unwrap();
    for (running, named) in [(true, "theirs"), (false, "ours")] {
        let doctor = daemon.agentctl(&["doctor"]).await.stdout;
        let line = |check: &str| {
            doctor
                .lines()
                .find(|line| line.contains(check))
                .unwrap_or_default()
        };
        let expected = format!("{named}: /nowhere/{named}");
        let hooks = line(" hooks ");
        assert!(hooks.starts_with("FAIL") && hooks.contains(&expected), "{doctor}");
        assert_eq!(line(" config ").contains("the daemon read"), running, "{doctor}");
        if running {
            daemon.terminate();
            daemon.ended().await;
        }
    }
}
