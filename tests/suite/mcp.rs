//! Third-party tool servers: approved and denied calls; servers that crash, hang and end.

use agentd_client::{Client, Push};
use agentd_protocol::{
    ApprovalId, AttachParams, Block, CancelTurnParams, CreateParams, DecideParams, Decision, Delta,
    EffectClass, EndReason, Event, EventBody, PermissionMode, Scope, SendParams, ToolOutcome, ToolStatus,
    TurnFinished,
};
use agentd_tests::{
    Daemon, DaemonOptions, Follower, check_log, eventually, marked, tool_server, tool_servers, within,
};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::path::Path;
use tempfile::TempDir;

/// A credential for a server.
const TOKEN: &str = "tool-server-canary-77aa10";
/// All calls are allowed.
const ALLOWED: &str = "[permission]\nrules = [{ allow = \"mcp__*\" }]\n";

/// A model that makes these calls, one each step, and then repeats the last result.
fn script(dir: &Path, calls: &[(&str, Value)]) -> String {
    let turn = |(name, input): &(&str, Value)| {
        let input = Value::String(input.to_string());
        format!("[[turn]]\ncalls = [{{ name = \"{name}\", input = {{ \"$json\" = {input} }} }}]\n")
    };
    let turns: String = calls.iter().map(turn).collect();
    let path = dir.join("script.toml");
    std::fs::write(
        &path,
        format!("{turns}[[turn]]\ntext = \"{{{{last_result}}}}\"\n"),
    )
    .unwrap();
    format!(
        "[model]\ndefault = \"tools\"\n[models.tools]\nprovider = \"scripted\"\nmodel = \"{}\"\n",
        path.display()
    )
}

/// The settings of the everything server, `[mcp.servers.all]`.
pub(crate) fn everything(servers: &Path, more: &str) -> String {
    format!(
        "[mcp]\nready_within = \"25s\"\n[mcp.servers.all]\ncommand = [\"node\", {:?}, \"stdio\"]\nread = [{servers:?}]\n\
         start_timeout = \"60s\"\n{more}\n",
        tool_server(servers, "everything")
    )
}

/// The settings of the filesystem server, `[mcp.servers.files]`.
fn filesystem(servers: &Path) -> String {
    format!(
        "[mcp]\nready_within = \"25s\"\n[mcp.servers.files]\ncommand = [\"node\", {:?}, \"{{workdir}}\"]\n\
         read = [{servers:?}]\nstart_timeout = \"60s\"\neffects = {{ read_text_file = \"read\" }}\n",
        tool_server(servers, "filesystem")
    )
}

async fn start(config: String) -> (Daemon, Client) {
    let options = DaemonOptions {
        config,
        env: vec![("SERVER_TOKEN".to_owned(), TOKEN.to_owned())],
        ..DaemonOptions::default()
    };
    let daemon = Daemon::start(options).await;
    let client = daemon.client().await;
    (daemon, client)
}

async fn create(daemon: &Daemon, client: &Client, dir: &str, params: CreateParams) -> String {
    let params = CreateParams {
        prompt: Some(vec![Block::text("go")]),
        workdir: daemon.workdir(dir),
        ..params
    };
    let created = within("a session is created", client.create(&params)).await;
    created.unwrap().session.to_string()
}

async fn run(daemon: &Daemon, client: &Client, dir: &str) -> (TurnFinished, Vec<Event>) {
    let session = create(daemon, client, dir, CreateParams::default()).await;
    let end = Follower::attach(client, &session).await.turn_finished(1).await;
    (end, check_log(client, &session).await)
}

async fn decide(client: &Client, approval: ApprovalId, decision: Decision) {
    let params = DecideParams {
        approval: approval.to_string(),
        decision: Some(decision),
        scope: Scope::Once,
        policy: true,
        ..DecideParams::default()
    };
    client.decide(&params).await.unwrap();
}

fn results(log: &[Event]) -> Vec<ToolOutcome> {
    let result = |body: &EventBody| match body {
        EventBody::ToolFinished(finished) => Some(finished.outcome.clone()),
        _ => None,
    };
    log.iter().filter_map(|event| result(&event.body)).collect()
}

/// The processes of the everything server below this daemon.
fn server_processes(daemon: &Daemon) -> Vec<u32> {
    let root = daemon.dir.path().canonicalize().unwrap();
    let below = agentd_tests::working_in(&root);
    let servers = marked("server-everything/dist/index.js");
    servers.into_iter().filter(|pid| below.contains(pid)).collect()
}

fn signal(pids: &[u32], signal: Signal) {
    for pid in pids {
        let pid = Pid::from_raw(i32::try_from(*pid).unwrap()).unwrap();
        // A process that is already gone counts as stopped.
        let _ = kill_process(pid, signal);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn i7_a_tool_of_a_server_is_asked_about_then_runs_and_what_is_denied_does_not() {
    let Some(servers) = tool_servers("i7_a_tool_of_a_server_is_asked_about") else {
        return;
    };
    let dir = TempDir::new().unwrap();
    let calls = [
        ("mcp__all__get-sum", json!({ "a": 2, "b": 40 })),
        ("mcp__all__echo", json!({ "message": "never said" })),
    ];
    let (daemon, client) =
        start(script(dir.path(), &calls) + &everything(&servers, "deny = [\"get-env\"]")).await;
    let session = create(&daemon, &client, "project", CreateParams::default()).await;
    let mut follower = Follower::attach(&client, &session).await;
    for (n, decision) in [Decision::Allow, Decision::Deny].into_iter().enumerate() {
        let tool = calls[n].0;
        let asked = follower
            .until(
                tool,
                |body| matches!(body, EventBody::ApprovalAsked(asked) if asked.title.starts_with(tool)),
            )
            .await;
        let EventBody::ApprovalAsked(asked) = asked.body else {
            unreachable!("the test waited for it");
        };
        for (name, value) in calls[n].1.as_object().unwrap() {
            assert!(
                asked.detail.contains(name) && asked.detail.contains(value.to_string().trim()),
                "{}",
                asked.detail
            );
        }
        decide(&client, asked.approval, decision).await;
    }
    let end = follower.turn_finished(1).await;
    assert_eq!(end.reason, EndReason::Completed);
    let results = results(&check_log(&client, &session).await);
    assert_eq!(results[0].llm_text, "The sum of 2 and 40 is 42.");
    assert_eq!(results[1].status, ToolStatus::Denied);
    let tools = client.tools().await.unwrap();
    let sum = tools
        .iter()
        .find(|tool| tool.name == "mcp__all__get-sum")
        .unwrap();
    assert_eq!(sum.effect, EffectClass::Exec);
    assert!(tools.iter().all(|tool| tool.name != "mcp__all__get-env"));
    let shown = daemon.agentctl(&["mcp"]).await;
    assert!(
        shown.code == Some(0) && shown.stdout.contains("running"),
        "{shown:?}"
    );
}

/// Waits until the server reports progress. `tool.started` is not enough: the daemon writes it before the server has
/// the call, and a call that never left the daemon has a known outcome.
async fn server_works_on_a_call(client: &Client, session: &str) {
    let live = AttachParams {
        session: session.to_owned(),
        deltas: true,
        ..AttachParams::default()
    };
    let mut viewer = client.attach(&live).await.unwrap();
    within("the server works on the call", async {
        loop {
            let news = viewer.next().await.expect("it stays attached");
            if matches!(news, Push::Delta(Delta::ToolOutput { .. })) {
                return;
            }
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn i3_a_server_that_crashes_in_a_call_leaves_one_result_and_the_next_call_works() {
    let Some(servers) = tool_servers("i3_a_server_that_crashes_in_a_call") else {
        return;
    };
    let dir = TempDir::new().unwrap();
    let calls = [
        (
            "mcp__all__trigger-long-running-operation",
            json!({ "duration": 3600, "steps": 36000 }),
        ),
        ("mcp__all__echo", json!({ "message": "again" })),
    ];
    let (daemon, client) = start(script(dir.path(), &calls) + ALLOWED + &everything(&servers, "")).await;
    let session = create(&daemon, &client, "project", CreateParams::default()).await;
    let mut follower = Follower::attach(&client, &session).await;
    server_works_on_a_call(&client, &session).await;
    signal(&server_processes(&daemon), Signal::KILL);
    let end = follower.turn_finished(1).await;
    assert_eq!(
        (end.reason, end.text.as_str()),
        (EndReason::Completed, "Echo: again")
    );
    let results = results(&check_log(&client, &session).await);
    assert_eq!(results.len(), 2);
    assert_eq!(
        (results[0].status, results[0].outcome_unknown),
        (ToolStatus::Error, true)
    );
    assert!(
        results[0].llm_text.contains("signal 9"),
        "{}",
        results[0].llm_text
    );
    let rows = client.servers().await.unwrap();
    assert_eq!((rows[0].state.as_str(), rows[0].restarts), ("running", 1));
    assert!(rows[0].tools > 5);
}

#[tokio::test(flavor = "multi_thread")]
async fn i6_a_server_that_hangs_costs_its_call_and_is_replaced() {
    let Some(servers) = tool_servers("i6_a_server_that_hangs") else {
        return;
    };
    let dir = TempDir::new().unwrap();
    let calls = [
        (
            "mcp__all__trigger-long-running-operation",
            json!({ "duration": 3600, "steps": 36000 }),
        ),
        ("mcp__all__echo", json!({ "message": "again" })),
    ];
    let more = "call_timeout = \"20s\"";
    let (daemon, client) = start(script(dir.path(), &calls) + ALLOWED + &everything(&servers, more)).await;
    let session = create(&daemon, &client, "project", CreateParams::default()).await;
    let mut follower = Follower::attach(&client, &session).await;
    server_works_on_a_call(&client, &session).await;
    signal(&server_processes(&daemon), Signal::STOP);
    let end = follower.turn_finished(1).await;
    assert_eq!(end.reason, EndReason::Completed);
    let results = results(&check_log(&client, &session).await);
    assert_eq!(results.len(), 2);
    assert_eq!(
        (results[0].status, results[0].outcome_unknown),
        (ToolStatus::Timeout, true)
    );
    // The first call after that may reach the hanging server, but a turn later there is a new one.
    let again = SendParams {
        session: session.clone(),
        content: vec![Block::text("again")],
        ..SendParams::default()
    };
    client.send(&again).await.unwrap();
    follower.turn_finished(2).await;
    eventually("the one that hangs is gone", || {
        server_processes(&daemon).iter().all(|pid| !stopped(*pid))
    })
    .await;
}

/// Whether a process was stopped.
fn stopped(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(')')
        .next()
        .is_some_and(|rest| rest.trim_start().starts_with('T'))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_turn_gives_the_call_up_and_the_server_lives() {
    let Some(servers) = tool_servers("a_cancelled_turn_gives_the_call_up") else {
        return;
    };
    let dir = TempDir::new().unwrap();
    let calls = [(
        "mcp__all__trigger-long-running-operation",
        json!({ "duration": 3600, "steps": 36000 }),
    )];
    let (daemon, client) = start(script(dir.path(), &calls) + ALLOWED + &everything(&servers, "")).await;
    let session = create(&daemon, &client, "project", CreateParams::default()).await;
    let mut follower = Follower::attach(&client, &session).await;
    follower
        .until("the call", |body| matches!(body, EventBody::ToolStarted(_)))
        .await;
    let before = server_processes(&daemon);
    let cancel = CancelTurnParams {
        session: session.clone(),
        ..CancelTurnParams::default()
    };
    client.cancel_turn(&cancel).await.unwrap();
    assert_eq!(follower.turn_finished(1).await.reason, EndReason::Cancelled);
    let results = results(&check_log(&client, &session).await);
    assert_eq!((results.len(), results[0].status), (1, ToolStatus::Interrupted));
    let mut busy = true;
    while busy {
        let rows = within("the servers are listed", client.servers()).await.unwrap();
        busy = rows.iter().any(|row| row.busy > 0);
    }
    assert_eq!(server_processes(&daemon), before);
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_of_two_directories_have_servers_of_their_own() {
    let Some(servers) = tool_servers("sessions_of_two_directories") else {
        return;
    };
    let dir = TempDir::new().unwrap();
    let calls = [
        ("mcp__files__read_text_file", json!({ "path": "note.txt" })),
        ("mcp__files__read_text_file", json!({ "path": "../a/note.txt" })),
    ];
    let (daemon, client) = start(script(dir.path(), &calls) + &filesystem(&servers)).await;
    for name in ["a", "b"] {
        std::fs::write(
            format!("{}/note.txt", daemon.workdir(name)),
            format!("I am {name}\n"),
        )
        .unwrap();
    }
    // The operator says that the tool only reads: it needs no approval.
    for name in ["a", "b"] {
        let (end, log) = run(&daemon, &client, name).await;
        assert_eq!(end.reason, EndReason::Completed);
        let results = results(&log);
        assert_eq!(results[0].llm_text, format!("I am {name}\n"));
        assert_eq!(
            results[1].status == ToolStatus::Ok,
            name == "a",
            "{}",
            results[1].llm_text
        );
    }
    let rows = client.servers().await.unwrap();
    let places: Vec<_> = rows.iter().filter_map(|row| row.workdir.clone()).collect();
    assert_eq!(places.len(), 2, "{rows:?}");
    assert!(
        places[0].ends_with("/a") && places[1].ends_with("/b"),
        "{places:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn i7_plan_mode_and_rules_bind_the_tools_of_servers() {
    let Some(servers) = tool_servers("i7_plan_mode_and_rules") else {
        return;
    };
    let dir = TempDir::new().unwrap();
    let calls = [
        ("mcp__files__read_text_file", json!({ "path": "note.txt" })),
        (
            "mcp__files__write_file",
            json!({ "path": "made.txt", "content": "x" }),
        ),
    ];
    let (daemon, client) = start(script(dir.path(), &calls) + &filesystem(&servers)).await;
    std::fs::write(format!("{}/note.txt", daemon.workdir("project")), "I am a note\n").unwrap();
    let made = format!("{}/made.txt", daemon.workdir("project"));
    let plan = CreateParams {
        mode: Some(PermissionMode::Plan),
        ..CreateParams::default()
    };
    let ruled = CreateParams {
        mode: Some(PermissionMode::Yolo),
        rules: vec!["deny mcp__files__write_*".to_owned()],
        ..CreateParams::default()
    };
    let chosen = CreateParams {
        mode: Some(PermissionMode::Yolo),
        tools: Some(vec!["Read".to_owned(), "mcp__files__read_*".to_owned()]),
        ..CreateParams::default()
    };
    for (params, second) in [
        (plan, ToolStatus::Denied),
        (ruled, ToolStatus::Error),
        (chosen, ToolStatus::Error),
    ] {
        let session = create(&daemon, &client, "project", params).await;
        Follower::attach(&client, &session).await.turn_finished(1).await;
        let results = results(&check_log(&client, &session).await);
        assert_eq!(results[0].llm_text, "I am a note\n");
        assert_eq!(results[1].status, second, "{}", results[1].llm_text);
        assert!(!Path::new(&made).exists());
    }
    let unknown = CreateParams {
        workdir: daemon.workdir("project"),
        tools: Some(vec!["mcp__file__*".to_owned()]),
        ..CreateParams::default()
    };
    let refused = client.create(&unknown).await.unwrap_err().to_string();
    assert!(refused.contains("no tool server provides"), "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_begins_without_a_server_that_does_not_start_and_says_so() {
    let dir = TempDir::new().unwrap();
    let calls = [("mcp__broken__anything", json!({}))];
    let broken = "[mcp.servers.broken]\ncommand = [\"/bin/sh\", \"-c\", \"echo Error: no database >&2; exit 3\"]\n\
                  [mcp.servers.keyless]\nurl = \"http://127.0.0.1:9/mcp\"\nheaders = { Authorization = \"NO_SUCH_VARIABLE\" }\n";
    let (daemon, client) = start(script(dir.path(), &calls) + ALLOWED + broken).await;
    let (end, log) = run(&daemon, &client, "project").await;
    assert_eq!(end.reason, EndReason::Completed);
    let warnings: Vec<_> = log
        .iter()
        .filter_map(|event| match &event.body {
            EventBody::WarningRaised(raised) if raised.code == "tool_server" => Some(raised.message.clone()),
            _ => None,
        })
        .collect();
    assert_eq!(warnings.len(), 2, "{warnings:?}");
    assert!(warnings[0].contains("no database"), "{warnings:?}");
    assert!(warnings[1].contains("NO_SUCH_VARIABLE"), "{warnings:?}");
    let results = results(&log);
    assert_eq!(results.len(), 1);
    assert!(
        results[0].llm_text.contains("Continue without it"),
        "{}",
        results[0].llm_text
    );
    // The daemon tries them again after the turn.
    let mut settled = false;
    while !settled {
        let rows = within("the servers are listed", client.servers()).await.unwrap();
        settled = rows
            .iter()
            .all(|row| row.state == "failed" && row.last_error.is_some());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn i5_i8_servers_die_with_a_killed_daemon_and_their_credentials_are_concealed() {
    let Some(servers) = tool_servers("i5_i8_servers_die_with_a_killed_daemon") else {
        return;
    };
    let dir = TempDir::new().unwrap();
    let calls = [("mcp__all__get-env", json!({}))];
    let more = "env = [\"SERVER_TOKEN\"]";
    let (mut daemon, client) =
        start(script(dir.path(), &calls) + ALLOWED + &everything(&servers, more)).await;
    let (end, log) = run(&daemon, &client, "project").await;
    assert_eq!(end.reason, EndReason::Completed);
    let result = &results(&log)[0];
    assert_eq!(result.status, ToolStatus::Ok);
    assert!(result.llm_text.contains("SERVER_TOKEN"), "{}", result.llm_text);
    let everywhere = serde_json::to_string(&log).unwrap() + &daemon.said();
    assert!(!everywhere.contains(TOKEN) && !everywhere.contains(agentd_tests::CANARY));
    let pids = server_processes(&daemon);
    assert!(!pids.is_empty());
    daemon.kill().await;
    eventually("its servers are gone", || {
        pids.iter()
            .all(|pid| !Path::new(&format!("/proc/{pid}")).exists())
    })
    .await;
}
