//! The prompt: its sources, plan mode to its end, mentions, skills, and a prefix whose bytes
//! never change.

use crate::{YOLO, daemon};
use agentd_bench::model_server::ModelServer;
use agentd_tests::{Daemon, DaemonOptions, Finished};
use serde_json::Value;
use std::path::{Path, PathBuf};

async fn ctl(daemon: &Daemon, args: &[&str], code: i32) -> Finished {
    let done = daemon.agentctl(args).await;
    assert_eq!(done.code, Some(code), "{args:?}: {}{}", done.stdout, done.stderr);
    done
}

async fn json(daemon: &Daemon, args: &[&str]) -> Value {
    let done = ctl(daemon, &[args, &["-o", "json"]].concat(), 0).await;
    serde_json::from_str(&done.stdout).unwrap()
}

fn write(path: impl AsRef<Path>, text: &str) {
    let path = path.as_ref();
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

/// A daemon whose model plays a script.
async fn scripted(dir: &tempfile::TempDir, script: &str) -> Daemon {
    let path = dir.path().join("script.toml");
    write(&path, script);
    let config = format!(
        "[model]\ndefault = \"played\"\n[models.played]\nprovider = \"scripted\"\nmodel = {:?}\n[permission]\nrules = [{{ allow = \"Write(**)\" }}]\n",
        path.display().to_string()
    );
    Daemon::start(DaemonOptions {
        config,
        ..DaemonOptions::default()
    })
    .await
}

fn workdir(daemon: &Daemon) -> PathBuf {
    PathBuf::from(daemon.workdir("project"))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_is_shown_approved_and_carried_out() {
    let dir = tempfile::tempdir().unwrap();
    let script = r##"
[[turn]]
calls = [{ name = "Write", input = { file_path = "early.txt", content = "x" } }]
[[turn]]
calls = [{ name = "ExitPlanMode", input = { plan = "# Summary\nWrite done.txt" } }]
[[turn]]
calls = [{ name = "Write", input = { file_path = "done.txt", content = "yes" } }]
[[turn]]
text = "It is written."
"##;
    let daemon = scripted(&dir, script).await;
    let project = workdir(&daemon);
    let place = project.to_str().unwrap();
    ctl(
        &daemon,
        &[
            "run", "-d", "-C", place, "--name", "p", "--mode", "plan", "write it",
        ],
        0,
    )
    .await;
    ctl(&daemon, &["wait", "--for", "approval", "p"], 0).await;
    let inbox = json(&daemon, &["approvals"]).await;
    assert_eq!(
        (&inbox[0]["kind"], &inbox[0]["detail"]),
        (&"plan".into(), &"# Summary\nWrite done.txt".into())
    );
    assert!(
        !project.join("early.txt").exists(),
        "plan mode denies what writes"
    );
    ctl(&daemon, &["approve", "p"], 0).await;
    ctl(&daemon, &["wait", "p"], 0).await;
    assert_eq!(std::fs::read_to_string(project.join("done.txt")).unwrap(), "yes");
    let lines = ctl(&daemon, &["export", "p", "--jsonl"], 0).await.stdout;
    for kind in ["mode.changed", "note.injected"] {
        assert!(lines.contains(kind), "{kind} is missing: {lines}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn show_prompt_tells_the_sources_and_stays_the_same_when_files_change_and_the_daemon_restarts() {
    let server = ModelServer::start(true).await.unwrap();
    let mut first = daemon(&server, YOLO).await;
    let project = workdir(&first);
    write(project.join("AGENTS.md"), "Use tabs.\n");
    write(
        project.join(".agentd/skills/release/SKILL.md"),
        "---\ndescription: Cut a release\n---\nTag it.\n",
    );
    let place = project.to_str().unwrap();
    let run = [
        "run",
        "-d",
        "-C",
        place,
        "--name",
        "s",
        "--append-system-prompt",
        "Purr.",
        "plan:s steps=1 command=true;",
    ];
    ctl(&first, &run, 0).await;
    ctl(&first, &["wait", "s"], 0).await;
    let before = json(&first, &["show", "--prompt", "s"]).await;
    let names: Vec<&str> = before["sources"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["name"].as_str().unwrap())
        .collect();
    let agents = project.join("AGENTS.md").display().to_string();
    assert_eq!(
        names,
        [
            "base",
            "template anthropic",
            agents.as_str(),
            "skills",
            "appended",
            "environment"
        ]
    );
    let shown = ctl(&first, &["show", "--prompt", "s"], 0).await.stdout;
    assert!(shown.contains("Use tabs.") && shown.contains(" total"), "{shown}");
    write(project.join("AGENTS.md"), "Use spaces.\n");
    first.kill().await;
    let second = first.restart(None).await;
    ctl(&second, &["send", "s", "--wait", "and more"], 0).await;
    assert_eq!(json(&second, &["show", "--prompt", "s"]).await, before);
    let systems: std::collections::BTreeSet<String> =
        server.bodies().iter().map(|body| prefix(body)).collect();
    assert_eq!(systems.len(), 1, "the same bytes before and after the restart");
}

/// Everything in a request before its messages.
fn prefix(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body).into_owned();
    let (before, _) = text.split_once("\"messages\":").expect("a request has messages");
    before.to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_bytes_before_the_messages_are_equal_over_fifty_steps() {
    let server = ModelServer::start(true).await.unwrap();
    let daemon = daemon(&server, YOLO).await;
    ctl(
        &daemon,
        &["run", "-d", "--name", "long", "plan:s steps=50 command=true;"],
        0,
    )
    .await;
    ctl(&daemon, &["wait", "long"], 0).await;
    let bodies = server.bodies();
    assert!(bodies.len() > 50, "{} requests", bodies.len());
    let first = prefix(&bodies[0]);
    assert!(first.contains("You are an agent of agentd"), "{first}");
    for (number, body) in bodies.iter().enumerate() {
        assert_eq!(prefix(body), first, "request {number}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_skill_is_read_and_a_mentioned_file_is_attached_but_no_secret() {
    let dir = tempfile::tempdir().unwrap();
    let script = "[[turn]]\ncalls = [{ name = \"Skill\", input = { name = \"release\" } }]\n[[turn]]\ntext = \"read: {{last_result}}\"\n";
    let daemon = scripted(&dir, script).await;
    let project = workdir(&daemon);
    write(
        project.join(".agentd/skills/release/SKILL.md"),
        "---\ndescription: Cut a release\n---\nTag it.\n",
    );
    write(project.join("a.txt"), "first\nsecond\n");
    write(project.join(".env"), "KEY=canary\n");
    let place = project.to_str().unwrap();
    let run = [
        "run",
        "-C",
        place,
        "--name",
        "m",
        "--commands",
        "use @a.txt:2 and @.env",
    ];
    let done = json(&daemon, &run).await;
    assert!(done["text"].as_str().unwrap().contains("Tag it."), "{done}");
    let lines = ctl(&daemon, &["export", "m", "--jsonl"], 0).await.stdout;
    assert!(
        lines.contains("<file path=\\\"a.txt\\\" lines=\\\"2-2\\\">\\nsecond"),
        "{lines}"
    );
    assert!(
        lines.contains("[.env is not attached: ") && !lines.contains("canary"),
        "{lines}"
    );
    let said = ctl(&daemon, &["send", "m", "--commands", "/mode plan"], 0)
        .await
        .stdout;
    assert_eq!(said, "the mode is now plan\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn react_sessions_are_told_the_map_of_their_tree_and_others_are_not() {
    let config = r#"
[permission]
rules = [{ deny = "Read(secret/**)" }]
"#;
    let daemon = Daemon::start(DaemonOptions {
        config: config.to_owned(),
        ..DaemonOptions::default()
    })
    .await;
    let project = workdir(&daemon);
    write(project.join("src/core.rs"), "pub fn open_session() {}\n");
    write(project.join("secret/key.rs"), "pub fn hidden_thing() {}\n");
    let place = project.to_str().unwrap();
    let source = "map of the source tree";
    for (name, preset, told) in [("r", "react", true), ("d", "default", false)] {
        let run = [
            "run", "-d", "-C", place, "--name", name, "--preset", preset, "hello",
        ];
        ctl(&daemon, &run, 0).await;
        ctl(&daemon, &["wait", name], 0).await;
        let prompt = json(&daemon, &["show", "--prompt", name]).await;
        let text = prompt["text"].as_str().unwrap();
        assert_eq!(
            text.contains("src/core.rs:\n    1| pub fn open_session() {}"),
            told,
            "{text}"
        );
        assert!(!text.contains("hidden_thing"), "{text}");
        let shown = ctl(&daemon, &["show", "--prompt", name], 0).await.stdout;
        assert_eq!(shown.contains(source), told, "{shown}");
    }
}
