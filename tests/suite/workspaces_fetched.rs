//! The work of sessions, in each kind of workspace: shown, undone, and brought to where it is wanted.

use crate::{YOLO, daemon};
use agentd_bench::model_server::ModelServer;
use agentd_protocol::{Diffed, PutBackDone};
use agentd_tests::{Daemon, Finished, check_log, eventually, git};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

/// A daemon, a repository and a directory without git.
struct World {
    _server: ModelServer,
    daemon: Daemon,
    app: PathBuf,
    plain: PathBuf,
}

impl World {
    async fn new() -> Self {
        Self::with("").await
    }

    /// With more settings of workspaces.
    async fn with(more: &str) -> Self {
        let server = ModelServer::start(false).await.unwrap();
        let config = format!("{YOLO}[workspace]\ncheckpoint = \"step\"\n{more}");
        let daemon = daemon(&server, &config).await;
        let (app, plain) = (
            PathBuf::from(daemon.workdir("app")),
            PathBuf::from(daemon.workdir("plain")),
        );
        for dir in [&app, &plain] {
            fs::write(dir.join("a.txt"), "one\n").unwrap();
        }
        git(&app, &["init", "-q"]);
        git(&app, &["add", "."]);
        git(&app, &["commit", "-qm", "one"]);
        Self {
            _server: server,
            daemon,
            app,
            plain,
        }
    }

    fn source(&self, kind: &str) -> &Path {
        if kind == "copy" { &self.plain } else { &self.app }
    }

    /// Runs a session whose command writes a file. Returns its directory.
    async fn works(&self, kind: &str, name: &str) -> PathBuf {
        let prompt = format!("plan:{name} steps=1 command=echo_{name}_>>_marks;");
        let dir = self.source(kind).to_str().unwrap();
        let run = [
            "run",
            "-q",
            "-C",
            dir,
            "--workspace",
            kind,
            "--name",
            name,
            &prompt,
        ];
        self.exits(&run, 0).await;
        PathBuf::from(self.daemon.client().await.get(name).await.unwrap().workdir)
    }

    /// The events about changes that left a session.
    async fn transfers(&self, name: &str) -> Vec<Value> {
        let lines = self.exits(&["logs", name, "-o", "jsonl"], 0).await.stdout;
        let events = lines
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap());
        let transfers = |event: &Value| {
            event["type"]
                .as_str()
                .is_some_and(|kind| kind.starts_with("transfer."))
        };
        events.filter(transfers).collect()
    }

    async fn exits(&self, args: &[&str], code: i32) -> Finished {
        let done = self.daemon.agentctl(args).await;
        assert_eq!(done.code, Some(code), "{args:?}: {}{}", done.stdout, done.stderr);
        done
    }

    async fn json<T: serde::de::DeserializeOwned>(&self, args: &[&str]) -> T {
        let done = self.exits(&[args, &["-o", "json"]].concat(), 0).await;
        serde_json::from_str(&done.stdout).unwrap()
    }

    /// The closed session's workspace goes without force.
    async fn is_pruned(&self, name: &str) {
        self.exits(&["close", name], 0).await;
        let done = self.exits(&["workspace", "prune", name], 0).await;
        assert!(
            done.stderr.contains("1 workspace removed"),
            "{name}: {}",
            done.stderr
        );
    }

    /// The closed session's workspace stays.
    async fn stays(&self, name: &str, what: &str) {
        self.exits(&["close", name], 0).await;
        let done = self.exits(&["workspace", "prune", name], 5).await;
        assert!(
            done.stderr.contains(&format!("work was not fetched: {what}")),
            "{name}: {}",
            done.stderr
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_commands_did_is_shown_and_undone_in_each_kind() {
    let world = World::new().await;
    for kind in ["shared", "worktree", "clone", "copy"] {
        let tree = world.works(kind, kind).await;
        let marks = tree.join("marks");
        let diffed: Diffed = world.json(&["diff", kind]).await;
        let paths: Vec<_> = diffed.files.iter().map(|file| file.path.as_str()).collect();
        assert_eq!(paths, ["marks"], "{kind}");
        let undone: PutBackDone = world.json(&["undo", kind]).await;
        assert!(undone.files == ["marks"] && !marks.exists(), "{kind}");
        world.exits(&["undo", kind, "--change", &undone.undo_id], 0).await;
        assert_eq!(fs::read_to_string(&marks).unwrap(), format!("{kind}\n"));
        world.exits(&["rewind", kind, "--at", "1", "--files"], 0).await;
        assert!(!marks.exists(), "{kind}");
        assert_eq!(fs::read_to_string(tree.join("a.txt")).unwrap(), "one\n");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn applied_work_is_fetched_and_its_workspace_can_go() {
    let world = World::new().await;
    for kind in ["worktree", "clone", "copy"] {
        world.works(kind, kind).await;
        let to = world.daemon.workdir(&format!("to-{kind}"));
        let target = Path::new(&to).join("marks");
        world.exits(&["apply", kind, "--to", &to, "--dry-run"], 0).await;
        assert!(!target.exists(), "{kind}");
        world.exits(&["apply", kind, "--to", &to], 0).await;
        assert_eq!(fs::read_to_string(&target).unwrap(), format!("{kind}\n"));
        world.is_pruned(kind).await;
    }
    // Looking is not fetching.
    world.works("clone", "looked").await;
    let to = world.daemon.workdir("looked-at");
    world
        .exits(&["apply", "looked", "--to", &to, "--dry-run"], 0)
        .await;
    world.exits(&["diff", "looked"], 0).await;
    world.stays("looked", "changed files").await;
    assert_eq!(git(&world.app, &["status", "--porcelain"]), "");
}

#[tokio::test(flavor = "multi_thread")]
async fn redteam_applied_work_reaches_no_protected_place() {
    let world = World::new().await;
    world.works("clone", "work").await;
    let home = world.daemon.data_dir().parent().unwrap().to_owned();
    for place in [
        ".ssh",
        ".config/agentd",
        ".config/autostart",
        "bin",
        "work/app/.git/hooks",
    ] {
        let to = home.join(place);
        fs::create_dir_all(&to).unwrap();
        let refused = world
            .exits(&["apply", "work", "--to", to.to_str().unwrap()], 4)
            .await;
        assert!(
            refused.stderr.contains("is protected"),
            "{place}: {}",
            refused.stderr
        );
        assert!(!to.join("marks").exists(), "{place}");
    }
    assert_eq!(world.transfers("work").await, Vec::<Value>::new());
    let to = world.daemon.workdir("to");
    world.exits(&["apply", "work", "--to", &to], 0).await;
    assert!(Path::new(&to).join("marks").exists(), "positive control");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_leaves_a_session_is_in_its_log_and_in_the_audit_file() {
    let world = World::with("[log]\naudit = true\n").await;
    world.works("clone", "work").await;
    let to = world.daemon.workdir("to");
    world.exits(&["apply", "work", "--to", &to], 0).await;
    world.exits(&["branch", "work", "taken"], 0).await;
    git(&world.app, &["branch", "theirs"]);
    world.exits(&["branch", "work", "theirs"], 5).await;
    let events = world.transfers("work").await;
    let seen: Vec<_> = events
        .iter()
        .map(|event| {
            (
                event["type"].as_str().unwrap(),
                &event["kind"],
                event["error"].is_string(),
            )
        })
        .collect();
    let (apply, branch, none) = (&Value::from("apply"), &Value::from("branch"), &Value::Null);
    let (started, finished) = ("transfer.started", "transfer.finished");
    assert_eq!(
        seen,
        [
            (started, apply, false),
            (finished, none, false),
            (started, branch, false),
            (finished, none, false),
            (started, branch, false),
            (finished, none, true),
        ]
    );
    assert_eq!(
        (&events[0]["to"], &events[1]["started"]),
        (&Value::from(to), &events[0]["seq"])
    );
    check_log(&world.daemon.client().await, "work").await;
    let audit = world.daemon.data_dir().join("logs/audit.jsonl");
    eventually("the audit file has every transfer", || {
        let lines = fs::read_to_string(&audit).unwrap_or_default();
        [started, finished]
            .iter()
            .all(|kind| lines.matches(kind).count() == 3)
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_branch_is_made_in_the_original_and_its_workspace_can_go() {
    let world = World::new().await;
    world.works("shared", "shared").await;
    fs::remove_file(world.app.join("marks")).unwrap();
    let head = git(&world.app, &["rev-parse", "HEAD"]);
    for kind in ["worktree", "clone"] {
        world.works(kind, kind).await;
    }
    // What happens in the original meanwhile is not in the branches of own workspaces.
    fs::write(world.app.join("later.txt"), "later\n").unwrap();
    git(&world.app, &["add", "later.txt"]);
    git(&world.app, &["commit", "-qm", "later"]);
    let later = git(&world.app, &["rev-parse", "HEAD"]);
    for (kind, base) in [("shared", &later), ("worktree", &head), ("clone", &head)] {
        let name = format!("work/{kind}");
        world.exits(&["branch", kind, &name], 0).await;
        assert_eq!(git(&world.app, &["show", &format!("{name}:marks")]), kind);
        assert_eq!(
            git(&world.app, &["rev-parse", &format!("{name}^")]),
            *base,
            "{kind}"
        );
    }
    assert_eq!(git(&world.app, &["status", "--porcelain"]), "");
    assert_eq!(git(&world.app, &["rev-parse", "HEAD"]), later);
    for kind in ["worktree", "clone"] {
        world.is_pruned(kind).await;
    }
    // What was recorded outlives the workspace.
    world.exits(&["branch", "clone", "again"], 0).await;
    assert_eq!(git(&world.app, &["show", "again:marks"]), "clone");
    world.works("copy", "copy").await;
    let refused = world.exits(&["branch", "copy", "work/copy"], 5).await;
    assert!(
        refused.stderr.contains("not in a git repository"),
        "{}",
        refused.stderr
    );
    world.stays("copy", "changed files").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn exported_work_is_fetched_and_a_clone_of_a_url_gives_a_bundle() {
    let world = World::new().await;
    for kind in ["worktree", "clone", "copy"] {
        world.works(kind, kind).await;
        let patch = world.exits(&["export", kind, "--patch"], 0).await.stdout;
        assert!(
            patch.contains("+++ b/marks") && patch.contains(&format!("+{kind}")),
            "{patch}"
        );
        world.is_pruned(kind).await;
    }
    let url = format!("file://{}", world.app.display());
    let prompt = "plan:url steps=1 command=echo_url_>>_marks;";
    world
        .exits(&["run", "-q", "--repo", &url, "--name", "url", prompt], 0)
        .await;
    let refused = world.exits(&["branch", "url", "work"], 5).await;
    assert!(
        refused.stderr.contains("a clone of file://"),
        "{}",
        refused.stderr
    );
    let args = ["export", "url", "--bundle", "work/url"];
    let bundle = world.daemon.agentctl_command(&args).output().await.unwrap();
    let file = world.app.with_extension("bundle");
    fs::write(&file, bundle.stdout).unwrap();
    git(
        &world.app,
        &["fetch", "-q", file.to_str().unwrap(), "work/url:work/url"],
    );
    assert_eq!(git(&world.app, &["show", "work/url:marks"]), "url");
    world.is_pruned("url").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_changed_beside_the_fetched_work_keeps_a_workspace() {
    let world = World::new().await;
    let to = world.daemon.workdir("to");
    // A person's change in the workspace is not part of the session's work.
    let tree = world.works("clone", "person").await;
    fs::write(tree.join("mine.txt"), "mine\n").unwrap();
    world.exits(&["apply", "person", "--to", &to], 0).await;
    world.stays("person", "changed files").await;
    // A change after the work was fetched.
    let tree = world.works("worktree", "later").await;
    world.exits(&["branch", "later", "work/later"], 0).await;
    fs::write(tree.join("marks"), "more\n").unwrap();
    world.stays("later", "changed files").await;
    // Commits of another branch are in no file.
    let tree = world.works("clone", "commits").await;
    git(&tree, &["checkout", "-qb", "other"]);
    git(&tree, &["commit", "-q", "--allow-empty", "-m", "other"]);
    git(&tree, &["checkout", "-q", "-"]);
    world.exits(&["branch", "commits", "work/commits"], 0).await;
    world.stays("commits", "commits").await;
    // The daemon's own data is no place to apply anything to.
    let data = world.daemon.data_dir().join("checkpoints");
    let refused = world
        .exits(&["apply", "person", "--to", data.to_str().unwrap()], 2)
        .await;
    assert!(
        refused.stderr.contains("daemon's own files"),
        "{}",
        refused.stderr
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_branch_is_pushed_only_to_a_listed_url_and_never_over_another() {
    let remotes = tempfile::tempdir().unwrap();
    let (listed, other) = (remotes.path().join("listed"), remotes.path().join("other"));
    for dir in [&listed, &other] {
        fs::create_dir(dir).unwrap();
        git(dir, &["init", "-q", "--bare"]);
    }
    let world = World::with(&format!("push = [\"file://{}\"]\n", listed.display())).await;
    world.works("clone", "mine").await;
    let (to, elsewhere) = (
        format!("file://{}", listed.display()),
        format!("file://{}", other.display()),
    );
    let push = |url: &str| ["branch", "mine", "result", "--yes", "--push", url].map(str::to_owned);
    let done = world.exits(&push(&to).each_ref().map(String::as_str), 0).await;
    assert!(done.stdout.contains("result"), "{}", done.stdout);
    assert_eq!(git(&listed, &["show", "result:marks"]), "mine");
    let branches = git(&world.app, &["branch", "--list", "result"]);
    assert_eq!(branches, "", "the local repository stays as it is");
    // Another commit of that name is not put in its place.
    let again = [
        "branch",
        "mine",
        "result",
        "--message",
        "other",
        "--yes",
        "--push",
        &to,
    ];
    let again = world.daemon.agentctl(&again).await;
    assert_ne!(again.code, Some(0), "{}", again.stdout);
    assert_eq!(git(&listed, &["show", "result:marks"]), "mine");
    let refused = world
        .daemon
        .agentctl(&push(&elsewhere).each_ref().map(String::as_str))
        .await;
    assert!(refused.stderr.contains("workspace.push"), "{}", refused.stderr);
    assert_eq!(git(&other, &["branch", "--list"]), "");
    let asks = world
        .daemon
        .agentctl(&["branch", "mine", "more", "--push", &to])
        .await;
    assert!(asks.stderr.contains("--yes"), "{}", asks.stderr);
    assert_eq!(git(&listed, &["branch", "--list"]).lines().count(), 1);
}
