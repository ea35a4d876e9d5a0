//! Workspaces as a person uses them: made by `run`, listed, measured, removed.

use crate::{YOLO, daemon};
use agentd_bench::model_server::ModelServer;
use agentd_protocol::{EventBody, WorkspaceKind};
use agentd_tests::{Daemon, check_log, git};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

async fn world() -> (ModelServer, Daemon, PathBuf) {
    world_with("").await
}

async fn world_with(config: &str) -> (ModelServer, Daemon, PathBuf) {
    let server = ModelServer::start(false).await.unwrap();
    let daemon = daemon(&server, &format!("{YOLO}{config}")).await;
    let app = PathBuf::from(daemon.workdir("app"));
    git(&app, &["init", "-q"]);
    fs::write(app.join("a.txt"), "one\n").unwrap();
    git(&app, &["add", "."]);
    git(&app, &["commit", "-qm", "one"]);
    (server, daemon, app)
}

/// Runs `agentctl` with JSON output.
async fn json(daemon: &Daemon, args: &[&str]) -> Value {
    let done = daemon.agentctl(&[args, &["-o", "json"]].concat()).await;
    let read = serde_json::from_str(&done.stdout);
    assert!(read.is_ok(), "{args:?}: {}{}", done.stdout, done.stderr);
    read.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn run_makes_a_workspace_and_says_what_stays_behind() {
    let (_server, daemon, app) = world().await;
    fs::write(app.join("a.txt"), "changed\n").unwrap();
    let dir = app.to_str().unwrap();
    let run = [
        "run",
        "-q",
        "-C",
        dir,
        "--workspace",
        "clone",
        "--name",
        "own",
        "plan:own text=done;",
    ];
    let done = daemon
        .agentctl(&run.map(|word| if word == "-q" { "--no-tui" } else { word }))
        .await;
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    assert!(
        done.stderr.contains("1 file with uncommitted changes"),
        "{}",
        done.stderr
    );
    let client = daemon.client().await;
    let row = client.get("own").await.unwrap();
    let log = check_log(&client, &row.session.to_string()).await;
    let EventBody::SessionCreated(created) = &log[0].body else {
        panic!("{:?}", log[0])
    };
    let workspace = created.workspace.as_deref().unwrap();
    assert_eq!(
        (workspace.kind, &workspace.path),
        (WorkspaceKind::Clone, &row.workdir)
    );
    assert_eq!(
        (created.project.as_str(), workspace.source.as_str()),
        ("app", dir)
    );
    assert_eq!(
        workspace.base.as_deref(),
        Some(git(&app, &["rev-parse", "HEAD"]).as_str())
    );
    assert_eq!(
        fs::read_to_string(Path::new(&row.workdir).join("a.txt")).unwrap(),
        "one\n"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn uncommitted_changes_come_along_on_request() {
    let (_server, daemon, app) = world().await;
    fs::write(app.join("a.txt"), "changed\n").unwrap();
    let dir = app.to_str().unwrap();
    let with = [
        "run",
        "-q",
        "-C",
        dir,
        "--workspace",
        "worktree",
        "--with-changes",
        "--name",
        "with",
        "plan:with text=done;",
    ];
    assert_eq!(daemon.agentctl(&with).await.code, Some(0));
    let with = daemon.client().await.get("with").await.unwrap();
    assert_eq!(
        fs::read_to_string(Path::new(&with.workdir).join("a.txt")).unwrap(),
        "changed\n"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn without_git_there_is_nothing_to_clone_and_the_error_says_what_to_do() {
    let (_server, daemon, _app) = world().await;
    // Without git there is nothing to clone, and the error says what to do.
    let plain = daemon.workdir("plain");
    let refused = daemon
        .agentctl(&["run", "-q", "-C", &plain, "--workspace", "clone", "hi"])
        .await;
    assert_eq!(refused.code, Some(2), "{}", refused.stderr);
    assert!(
        refused.stderr.contains("not in a git repository"),
        "{}",
        refused.stderr
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn workspaces_are_listed_measured_and_removed_unless_work_is_lost() {
    let (_server, daemon, app) = world().await;
    let dir = app.to_str().unwrap();
    for (name, plan) in [
        ("idle", "plan:idle text=done;"),
        ("works", "plan:works steps=1 command=echo_{n}_>>_marks;"),
    ] {
        let done = daemon
            .agentctl(&[
                "run",
                "-q",
                "-C",
                dir,
                "--workspace",
                "clone",
                "--name",
                name,
                plan,
            ])
            .await;
        assert_eq!(done.code, Some(0), "{}", done.stderr);
    }
    let rows = json(&daemon, &["workspace", "ls"]).await;
    assert_eq!(rows.as_array().unwrap().len(), 2, "{rows}");
    assert_eq!(rows[0]["kind"], "clone");
    let rows = json(&daemon, &["workspace", "du"]).await;
    assert!(rows[0]["bytes"].as_u64().unwrap() > 0, "{rows}");
    assert_eq!(
        (&rows[0]["unfetched"], &rows[1]["unfetched"]),
        (&Value::Null, &Value::from("changed files"))
    );
    let rows = rows.as_array().unwrap().len();
    assert_eq!(rows, 2);
    closed_ones_are_pruned(&daemon).await;
}

async fn closed_ones_are_pruned(daemon: &Daemon) {
    // Open sessions keep theirs.
    let done = daemon.agentctl(&["workspace", "prune"]).await;
    assert!(done.stderr.contains("0 workspaces removed"), "{}", done.stderr);
    for name in ["idle", "works"] {
        assert_eq!(daemon.agentctl(&["close", name]).await.code, Some(0));
    }
    let dry = daemon.agentctl(&["workspace", "prune", "--dry-run"]).await;
    assert!(
        dry.stderr.contains("1 workspace would be removed"),
        "{}",
        dry.stderr
    );
    let done = daemon.agentctl(&["workspace", "prune"]).await;
    assert_eq!(done.code, Some(5), "{}", done.stderr);
    assert!(
        done.stderr.contains("work was not fetched: changed files"),
        "{}",
        done.stderr
    );
    assert_eq!(
        json(daemon, &["workspace", "ls"]).await.as_array().unwrap().len(),
        1
    );
    let refused = daemon.agentctl(&["rm", "works"]).await;
    assert_eq!(refused.code, Some(5), "{}", refused.stderr);
    let done = daemon.agentctl(&["rm", "--force", "works"]).await;
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    assert_eq!(json(daemon, &["workspace", "ls"]).await, Value::Array(Vec::new()));
    assert_eq!(
        fs::read_dir(daemon.data_dir().join("workspaces"))
            .unwrap()
            .count(),
        0
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn each_line_of_a_file_gets_a_session_and_the_results_are_a_table() {
    let (_server, daemon, app) = world().await;
    let tasks = app.join("tasks.txt");
    fs::write(&tasks, "alpha\n\nbeta\ngamma\n").unwrap();
    let (dir, file) = (app.to_str().unwrap(), tasks.to_str().unwrap());
    let prompt = "plan:{} steps=1 command=echo_{}_>>_marks;";
    let each = [
        "run",
        "-C",
        dir,
        "--each",
        file,
        "--at-once",
        "2",
        "--workspace",
        "worktree",
        prompt,
    ];
    let rows = json(&daemon, &each).await;
    let rows = rows.as_array().unwrap();
    assert_eq!(rows.len(), 3, "{rows:?}");
    for (row, task) in rows.iter().zip(["alpha", "beta", "gamma"]) {
        assert_eq!(
            (&row["task"], &row["exit"], &row["state"]),
            (&task.into(), &0.into(), &"idle".into()),
            "{row}"
        );
        let marks = Path::new(row["workdir"].as_str().unwrap()).join("marks");
        assert_eq!(fs::read_to_string(marks).unwrap(), format!("{task}\n"));
    }
    assert_eq!(git(&app, &["worktree", "list"]).lines().count(), 4);
    assert!(!app.join("marks").exists());
    let refused = daemon
        .agentctl(&["run", "-C", dir, "--each", file, "no place"])
        .await;
    assert_eq!(refused.code, Some(2), "{}", refused.stderr);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_url_is_cloned_and_the_settings_of_a_directory_decide_without_a_request() {
    let (server, plain, app) = world().await;
    let url = format!("file://{}", app.display());
    let done = plain
        .agentctl(&[
            "run",
            "-q",
            "--repo",
            &url,
            "--ref",
            "main",
            "--name",
            "url",
            "plan:url text=done;",
        ])
        .await;
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    let row = plain.client().await.get("url").await.unwrap();
    assert_eq!(
        fs::read_to_string(Path::new(&row.workdir).join("a.txt")).unwrap(),
        "one\n"
    );
    let config = format!(
        "{YOLO}[workspace]\ndirectories = {{ {:?} = \"worktree\" }}\n",
        app.display().to_string()
    );
    let daemon = daemon(&server, &config).await;
    let dir = app.to_str().unwrap();
    let done = daemon
        .agentctl(&["run", "-q", "-C", dir, "--name", "set", "plan:set text=done;"])
        .await;
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    let rows = json(&daemon, &["workspace", "ls"]).await;
    assert_eq!(rows[0]["kind"], "worktree", "{rows}");
    assert_eq!(git(&app, &["worktree", "list"]).lines().count(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn setup_commands_run_before_the_first_turn_and_a_failure_is_a_clear_state() {
    let server = ModelServer::start(false).await.unwrap();
    // It fails in a workspace without the file `ready`.
    let setup = r#"setup = ["test -e ready", "echo made > made.txt"]"#;
    let daemon = daemon(&server, &format!("{YOLO}\n[workspace]\n{setup}\n")).await;
    let app = daemon.workdir("app");
    let run = [
        "run",
        "--no-tui",
        "-C",
        &app,
        "--workspace",
        "copy",
        "--name",
        "own",
        "plan:own text=done;",
    ];
    let failed = daemon.agentctl(&run).await;
    assert_eq!(failed.code, Some(6), "{}{}", failed.stdout, failed.stderr);
    assert!(failed.stderr.contains("test -e ready"), "{}", failed.stderr);
    let client = daemon.client().await;
    let row = client.get("own").await.unwrap();
    assert_eq!(row.status.state, agentd_protocol::RunState::Failed, "{row:?}");
    assert_eq!(row.steps, 0, "no model was called");

    fs::write(Path::new(&row.workdir).join("ready"), "").unwrap();
    let done = daemon
        .agentctl(&["run", "-q", "--session", "own", "plan:own text=done;"])
        .await;
    assert_eq!(done.code, Some(0), "{}{}", done.stdout, done.stderr);
    assert_eq!(
        fs::read_to_string(Path::new(&row.workdir).join("made.txt")).unwrap(),
        "made\n"
    );
    assert!(!Path::new(&app).join("made.txt").exists());
    let log = check_log(&client, &row.session.to_string()).await;
    let ran: Vec<usize> = log
        .iter()
        .filter_map(|event| match &event.body {
            EventBody::WorkspacePrepared(prepared) => Some(prepared.commands.len()),
            _ => None,
        })
        .collect();
    assert_eq!(ran, [1, 2]);
    let shared = daemon
        .agentctl(&["run", "-q", "-C", &app, "plan:shared text=done;"])
        .await;
    assert_eq!(
        shared.code,
        Some(0),
        "a shared directory is not set up: {}",
        shared.stderr
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fork_gets_a_workspace_of_its_own_with_the_files_of_that_point() {
    let (_server, daemon, app) = world_with("[workspace]\ncheckpoint = \"step\"\n").await;
    let dir = app.to_str().unwrap();
    for kind in ["clone", "worktree"] {
        let run = ["run", "-q", "-C", dir, "--workspace", kind, "--name", kind];
        let first = format!("plan:{kind} steps=1 command=echo_first_>_mine; text=one;");
        let done = daemon.agentctl(&[&run[..], &[first.as_str()]].concat()).await;
        assert_eq!(done.code, Some(0), "{}", done.stderr);
        let client = daemon.client().await;
        let origin = client.get(kind).await.unwrap();
        let at = check_log(&client, &origin.session.to_string())
            .await
            .len()
            .to_string();
        let more = format!("plan:{kind}-more steps=1 command=echo_second_>_mine; text=two;");
        let done = daemon.agentctl(&["run", "-q", "--session", kind, &more]).await;
        assert_eq!(done.code, Some(0), "{}", done.stderr);

        let title = format!("{kind}-fork");
        let forked = daemon
            .agentctl(&["fork", kind, "--at", &at, "--name", &title])
            .await;
        assert_eq!(forked.code, Some(0), "{}", forked.stderr);
        let fork = client.get(&title).await.unwrap();
        assert_ne!(fork.workdir, origin.workdir);
        let read = |dir: &str| fs::read_to_string(Path::new(dir).join("mine")).unwrap();
        assert_eq!(
            (read(&fork.workdir).as_str(), read(&origin.workdir).as_str()),
            ("first\n", "second\n")
        );
        assert!(!app.join("mine").exists(), "the original is untouched");

        // It goes on there, and its diff is about its own files.
        let third = format!("plan:{kind}-third steps=1 command=echo_third_>_other; text=three;");
        let done = daemon.agentctl(&["run", "-q", "--session", &title, &third]).await;
        assert_eq!(done.code, Some(0), "{}", done.stderr);
        assert!(Path::new(&fork.workdir).join("other").exists());
        assert!(!Path::new(&origin.workdir).join("other").exists());
        let diff = daemon.agentctl(&["diff", &title]).await;
        assert!(
            diff.stdout.contains("other") && diff.stdout.contains("mine"),
            "{}",
            diff.stdout
        );
        let log = check_log(&client, &fork.session.to_string()).await;
        let moved = log
            .iter()
            .any(|event| matches!(&event.body, EventBody::WorkspaceCreated(_)));
        assert!(moved, "{log:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn by_default_a_repository_is_cloned_and_one_without_commits_is_shared() {
    let (_server, daemon, app) = world_with("[workspace]\ncheckpoint = \"off\"\n").await;
    let run = |dir: &Path, name: &'static str| {
        [
            "run",
            "--no-tui",
            "-C",
            dir.to_str().unwrap(),
            "--name",
            name,
            "plan:x text=done;",
        ]
        .map(str::to_owned)
    };
    let client = daemon.client().await;
    let sent = run(&app, "cloned");
    let done = daemon.agentctl(&sent.each_ref().map(String::as_str)).await;
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    assert_ne!(client.get("cloned").await.unwrap().workdir, app.to_string_lossy());
    let new = PathBuf::from(daemon.workdir("new"));
    git(&new, &["init", "-q"]);
    let sent = run(&new, "shared");
    let done = daemon.agentctl(&sent.each_ref().map(String::as_str)).await;
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    assert!(done.stderr.contains("no commit yet"), "{}", done.stderr);
    assert_eq!(client.get("shared").await.unwrap().workdir, new.to_string_lossy());
}
