//! A sub-agent inherits tools, tool servers, rules, hooks, sandbox, mode and pause of its parent, never more; and
//! custom agents, which only narrow that.

use crate::mcp::everything;
use crate::played::{daemon, model, results};
use crate::subagents::{all, kinds, node, root, when_over};
use crate::{ASKING, YOLO};
use agentd_client::Client;
use agentd_protocol::{
    CreateParams, EndReason, Event, EventBody, PermissionMode, RunState, SandboxLevel, SendParams, Summary,
    ToolStatus, UpdateParams,
};
use agentd_tests::fault_server::{FaultServer, Say};
use agentd_tests::{Daemon, Follower, check_log, eventually, found, tool_servers, within};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

type Call = (&'static str, Value);

fn task(name: &str, agent: Option<&str>) -> Call {
    let prompt = format!("node:{name};");
    let input = match agent {
        Some(agent) => json!({ "description": name, "prompt": prompt, "agent": agent }),
        None => json!({ "description": name, "prompt": prompt }),
    };
    ("Task", input)
}

/// A model whose agents make their calls: the root all in one answer, the others one by one.
async fn acting(of_root: Vec<Call>, others: Vec<(&'static str, Vec<Call>)>) -> FaultServer {
    model(move |body, step| {
        let node = node(body);
        if node == "r" && step == 0 {
            let calls = of_root
                .iter()
                .map(|(name, input)| ((*name).to_owned(), input.clone()));
            return Say {
                calls: calls.collect(),
                ..Say::text("")
            };
        }
        let calls = others
            .iter()
            .find(|(name, _)| *name == node)
            .map(|(_, calls)| calls);
        match calls.and_then(|calls| calls.get(step)) {
            Some((name, input)) => Say::call(name, input.clone()),
            None => Say::text("done"),
        }
    })
    .await
}

fn write(daemon: &Daemon, path: &str, text: &str) {
    let path = PathBuf::from(daemon.workdir("project")).join(path);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

/// The logs of the sub-agents by their titles.
async fn log_of(client: &Client, rows: &[Summary], name: &str) -> Vec<Event> {
    let row = rows.iter().find(|row| row.name == name).unwrap();
    check_log(client, &row.session.to_string()).await
}

fn levels(log: &[Event]) -> Vec<SandboxLevel> {
    let level = |event: &Event| match &event.body {
        EventBody::ToolStarted(started) if started.title.starts_with("Bash") => Some(started.sandbox),
        _ => None,
    };
    log.iter().filter_map(level).collect()
}

fn statuses(log: &[Event]) -> Vec<ToolStatus> {
    results(log).into_iter().map(|(status, _)| status).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn i7_a_sub_agent_has_the_tools_and_servers_of_its_parent_narrowed_by_its_agent() {
    let Some(servers) = tool_servers("i7_a_sub_agent_has_the_tools_and_servers") else {
        return;
    };
    let echo = || ("mcp__all__echo", json!({ "message": "hi" }));
    let bash = || ("Bash", json!({ "command": "echo x > made" }));
    let sum = ("mcp__all__get-sum", json!({ "a": 1, "b": 2 }));
    let server = acting(
        vec![task("plain", None), task("narrow", Some("narrow"))],
        vec![
            ("plain", vec![echo(), sum, bash()]),
            ("narrow", vec![echo(), ("Ls", json!({ "path": "." })), bash()]),
        ],
    )
    .await;
    let daemon = daemon(&server, &format!("{ASKING}{}", everything(&servers, ""))).await;
    let client = daemon.client().await;
    let agent = "---\ndescription: Calls\ntools: Bash, mcp__all__*\nmode: yolo\n---\nYou call.\n";
    write(&daemon, ".agentd/agents/narrow.md", agent);
    let tools = ["Ls", "Task", "mcp__all__echo"].map(str::to_owned).to_vec();
    let params = CreateParams {
        tools: Some(tools),
        rules: vec!["allow mcp__*".to_owned()],
        ..CreateParams::default()
    };
    let session = root(&daemon, &client, params).await;
    let mut follower = Follower::attach(&client, &session).await;
    assert_eq!(follower.turn_finished(1).await.reason, EndReason::Completed);
    let rows = when_over(&client, 2).await;
    for name in ["plain", "narrow"] {
        let log = log_of(&client, &rows, name).await;
        let (ok, no) = (ToolStatus::Ok, ToolStatus::Error);
        assert_eq!(statuses(&log), [ok, no, no], "{name}: {:?}", results(&log));
    }
    assert!(
        rows.iter().all(|row| row.mode == PermissionMode::Default),
        "the agent's yolo loosens nothing"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn i7_hooks_rules_and_the_sandbox_hold_for_a_sub_agent_as_for_its_parent() {
    let bash = |command: &str| ("Bash", json!({ "command": command }));
    let server = acting(
        vec![bash("echo root"), task("part", None)],
        vec![(
            "part",
            vec![
                bash("echo forbidden"),
                bash("rm open.txt"),
                ("Read", json!({ "file_path": "secret/a.txt" })),
                ("Grep", json!({ "pattern": "needle" })),
                bash("echo fine"),
            ],
        )],
    )
    .await;
    let hooks = "[hooks]\nrun = [\n  { name = \"no\", event = \"PreToolUse\", timeout = \"50s\", command = [\"/bin/sh\", \"-c\", \
                 '''grep -q forbidden && { echo 'not here' >&2; exit 2; }; exit 0'''] },\n  { name = \"end\", event = \"SubagentStop\", \
                 timeout = \"50s\", command = [\"/bin/sh\", \"-c\", '''cat >> told.SubagentStop'''] },\n]\n";
    let daemon = daemon(&server, &format!("{YOLO}{hooks}")).await;
    let client = daemon.client().await;
    write(&daemon, "secret/a.txt", "the needle of the secret\n");
    write(&daemon, "open.txt", "a needle in the open\n");
    let params = CreateParams {
        rules: vec!["deny Read(secret/**)".to_owned(), "deny Bash(rm:*)".to_owned()],
        ..CreateParams::default()
    };
    let session = root(&daemon, &client, params).await;
    let mut follower = Follower::attach(&client, &session).await;
    assert_eq!(follower.turn_finished(1).await.reason, EndReason::Completed);
    let rows = when_over(&client, 1).await;
    let log = log_of(&client, &rows, "part").await;
    let (ok, no) = (ToolStatus::Ok, ToolStatus::Denied);
    let said = results(&log);
    assert_eq!(statuses(&log), [no, no, no, ok, ok], "{said:?}");
    assert!(said[0].1.contains("not here"), "{said:?}");
    assert!(
        said[3].1.contains("open.txt") && !said[3].1.contains("secret"),
        "{said:?}"
    );
    let own = levels(&check_log(&client, &session).await);
    assert_eq!(
        (own.len(), levels(&log).first()),
        (1, own.first()),
        "the same level"
    );
    let told = PathBuf::from(daemon.workdir("project")).join("told.SubagentStop");
    assert!(told.is_file(), "the hook heard of its end");
    assert!(kinds(&log, "hook.finished").count() >= 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn i7_grep_and_the_map_show_no_file_that_a_rule_denies() {
    let server = model(|_, step| match step {
        0 => Say::call("Grep", json!({ "pattern": "needle" })),
        1 => Say::call("Grep", json!({ "pattern": "needle", "path": "secret" })),
        2 => Say::call("RepoMap", json!({})),
        _ => Say::text("done"),
    })
    .await;
    for config in [ASKING, YOLO] {
        let daemon = daemon(&server, config).await;
        let client = daemon.client().await;
        write(&daemon, "secret/hidden.rs", "pub fn needle_of_the_secret() {}\n");
        write(&daemon, "tls/server.pem", "needle\n");
        write(&daemon, "open.rs", "pub fn needle_in_the_open() {}\n");
        let params = CreateParams {
            rules: vec!["deny Read(secret/**)".to_owned()],
            ..CreateParams::default()
        };
        let session = root(&daemon, &client, params).await;
        let mut follower = Follower::attach(&client, &session).await;
        assert_eq!(follower.turn_finished(1).await.reason, EndReason::Completed);
        let said = results(&check_log(&client, &session).await);
        assert!(said[0].1.contains("needle_in_the_open"), "{said:?}");
        assert!(said[2].1.contains("needle_in_the_open"), "{said:?}");
        for (_, text) in &said {
            assert!(
                !text.contains("of_the_secret") && !text.contains("server.pem"),
                "{said:?}"
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_names_a_custom_agent_and_the_model_is_told_which_there_are_in_stable_bytes() {
    let bodies: Arc<Mutex<Vec<Value>>> = Arc::default();
    let seen = Arc::clone(&bodies);
    let server = model(move |body, step| {
        seen.lock().unwrap().push(serde_json::from_str(body).unwrap());
        match (node(body), step) {
            ("r", 0) => Say {
                calls: [task("known", Some("caller")), task("unknown", Some("nobody"))]
                    .map(|(name, input)| (name.to_owned(), input))
                    .to_vec(),
                ..Say::text("")
            },
            _ => Say::text("done"),
        }
    })
    .await;
    let mut daemon = daemon(&server, YOLO).await;
    write(
        &daemon,
        ".agentd/agents/caller.md",
        "---\ndescription: Calls people\n---\nYou call people.\n",
    );
    let client = daemon.client().await;
    let session = root(&daemon, &client, CreateParams::default()).await;
    let mut follower = Follower::attach(&client, &session).await;
    assert_eq!(follower.turn_finished(1).await.reason, EndReason::Completed);
    let said = results(&check_log(&client, &session).await);
    let unknown = said
        .iter()
        .find(|(status, _)| *status == ToolStatus::Error)
        .unwrap();
    assert!(
        unknown.1.contains("there is no agent nobody; there are: caller"),
        "{said:?}"
    );
    assert!(
        said.iter()
            .any(|(status, text)| (*status, text.as_str()) == (ToolStatus::Ok, "done")),
        "{said:?}"
    );
    // Another agent on another daemon: the session's requests begin with the same bytes.
    write(
        &daemon,
        ".agentd/agents/later.md",
        "---\ndescription: Comes later\n---\nYou are late.\n",
    );
    daemon.kill().await;
    let daemon = daemon.restart(None).await;
    let client = daemon.client().await;
    let again = SendParams {
        session: session.clone(),
        content: vec![agentd_protocol::Block::text("again")],
        ..SendParams::default()
    };
    client.send(&again).await.unwrap();
    let mut follower = Follower::attach(&client, &session).await;
    follower.turn_finished(2).await;
    same_tools(&bodies.lock().unwrap());
}

/// The list of agents is the same in each request of the root, and the child has the instructions of its agent.
fn same_tools(bodies: &[Value]) {
    let of_root = bodies.iter().filter(|body| node(&body.to_string()) == "r");
    // Side calls have no tools.
    let told: Vec<String> = of_root
        .filter_map(|body| body.get("tools"))
        .map(Value::to_string)
        .collect();
    let first = told.first().unwrap();
    assert!(first.contains("- caller: Calls people"), "{first}");
    assert!(told.len() >= 3, "{}", told.len());
    for other in &told {
        assert_eq!(other, first);
    }
    let child = bodies
        .iter()
        .find(|body| node(&body.to_string()) == "known")
        .unwrap();
    let system = child.get("system").unwrap().to_string();
    assert!(system.contains("You call people."), "{system}");
}

/// A tree whose two lower agents wait for a file.
async fn waiting_tree() -> FaultServer {
    model(|body, step| match (node(body), step) {
        ("r", 0) => Say::call("Task", task("middle", None).1),
        ("middle", 0) => Say::call("Task", task("low", None).1),
        ("low", 0) => Say::call(
            "Bash",
            json!({ "command": "until [ -e go ]; do sleep 0.1; done" }),
        ),
        (node, _) => Say::text(&format!("answer of {node}")),
    })
    .await
}

async fn when(client: &Client, what: &str, all_are: impl Fn(&[Summary]) -> bool) -> Vec<Summary> {
    found(what, async || {
        let rows = all(client).await;
        all_are(&rows).then_some(rows)
    })
    .await
}

/// Whether the lowest agent's command runs: the agents above it wait in a tool, too, before it exists.
fn running_tool(rows: &[Summary]) -> bool {
    rows.iter()
        .any(|row| row.name == "low" && row.status.state == RunState::RunningTool)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_paused_root_pauses_all_below_it_also_over_a_crash_and_its_resume_resumes_them() {
    let server = waiting_tree().await;
    let mut daemon = daemon(&server, YOLO).await;
    let client = daemon.client().await;
    let session = root(&daemon, &client, CreateParams::default()).await;
    when(&client, "the command runs", running_tool).await;
    let paused = daemon.agentctl(&["pause", &session]).await;
    assert_eq!(paused.code, Some(0), "{}", paused.stderr);
    let rows = all(&client).await;
    assert!(rows.len() == 3 && rows.iter().all(|row| row.paused), "{rows:?}");
    write(&daemon, "go", "");
    let all_paused = |rows: &[Summary]| rows.iter().all(|row| row.status.state == RunState::Paused);
    when(&client, "the command ended and nothing goes on", all_paused).await;
    daemon.kill().await;
    let daemon = daemon.restart(None).await;
    let client = daemon.client().await;
    when(&client, "the pause is durable", all_paused).await;
    // A session whose log is being read says so for a moment.
    within("those below say what they wait for", async {
        loop {
            let shown = daemon.agentctl(&["ps", "--tree"]).await.stdout;
            if shown.matches("the session that it works for").count() == 2 {
                return;
            }
        }
    })
    .await;
    let child = all(&client)
        .await
        .into_iter()
        .find(|row| row.name == "low")
        .unwrap();
    let refused = daemon.agentctl(&["resume", &child.session.to_string()]).await;
    assert_eq!(refused.code, Some(5), "{}", refused.stderr);
    let resumed = daemon.agentctl(&["resume", &session]).await;
    assert_eq!(resumed.code, Some(0), "{}", resumed.stderr);
    let mut follower = Follower::attach(&client, &session).await;
    assert_eq!(follower.turn_finished(1).await.reason, EndReason::Completed);
    assert_eq!(results(&follower.events)[0].1, "answer of middle");
}

#[tokio::test(flavor = "multi_thread")]
async fn i7_a_typed_mode_reaches_those_below_and_none_of_them_gets_a_looser_one() {
    let server = waiting_tree().await;
    let daemon = daemon(&server, YOLO).await;
    let client = daemon.client().await;
    let session = root(&daemon, &client, CreateParams::default()).await;
    when(&client, "the command runs", running_tool).await;
    let typed = daemon.agentctl(&["send", &session, "/plan", "--commands"]).await;
    assert_eq!(typed.code, Some(0), "{}", typed.stderr);
    let rows = all(&client).await;
    assert!(
        rows.iter().all(|row| row.mode == PermissionMode::Plan),
        "{rows:?}"
    );
    let low = rows.iter().find(|row| row.name == "low").unwrap();
    let looser = UpdateParams {
        session: low.session.to_string(),
        mode: Some(PermissionMode::Yolo),
        ..UpdateParams::default()
    };
    let refused = client.update(&looser).await.unwrap_err();
    assert!(refused.to_string().contains("a less strict mode"), "{refused}");
    write(&daemon, "go", "");
    let mut follower = Follower::attach(&client, &session).await;
    follower.turn_finished(1).await;
    eventually("nothing is left", || {
        agentd_tests::working_in(&daemon.dir.path().join("work")).is_empty()
    })
    .await;
}
