//! Agents with a workspace of their own that reach for the original.

use super::{bash, daemon, model, results};
use agentd_client::Client;
use agentd_protocol::{Block, CreateParams, PermissionMode, ToolStatus, WorkspaceChoice, WorkspaceRequest};
use agentd_tests::fault_server::FaultServer;
use agentd_tests::{Daemon, git};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// A model that runs these scripts of the repository, one after the other. Their texts are in no call, so only the walls
/// stop them.
async fn runs(scripts: &[&str]) -> FaultServer {
    model(
        (0..scripts.len())
            .map(|n| bash(&format!("bash {n}.sh")))
            .collect(),
    )
    .await
}

/// A repository with one commit, which has the scripts.
fn repository(daemon: &Daemon, name: &str, scripts: &[&str]) -> PathBuf {
    let app = PathBuf::from(daemon.workdir(name));
    git(&app, &["init", "-q"]);
    for (n, script) in scripts.iter().enumerate() {
        fs::write(app.join(format!("{n}.sh")), script).unwrap();
    }
    fs::write(app.join("README.md"), "one\n").unwrap();
    git(&app, &["add", "."]);
    git(&app, &["commit", "-qm", "one"]);
    app
}

/// Contents, modes and times of everything in a directory.
fn snapshot(top: &Path) -> BTreeMap<PathBuf, (u32, i64, i64, Vec<u8>)> {
    let (mut all, mut queue) = (BTreeMap::new(), vec![top.to_owned()]);
    while let Some(dir) = queue.pop() {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            let found = fs::symlink_metadata(&path).unwrap();
            let bytes = if found.is_file() {
                fs::read(&path).unwrap()
            } else {
                Vec::new()
            };
            if found.is_dir() {
                queue.push(path.clone());
            }
            all.insert(path, (found.mode(), found.mtime(), found.mtime_nsec(), bytes));
        }
    }
    all
}

/// A session with a workspace, in which everything may run. Returns its id and its directory.
async fn session(client: &Client, app: &Path, kind: WorkspaceChoice) -> (String, PathBuf) {
    let params = CreateParams {
        prompt: Some(vec![Block::text("Do what the notes say.")]),
        workdir: app.to_string_lossy().into_owned(),
        mode: Some(PermissionMode::Yolo),
        workspace: Some(WorkspaceRequest {
            kind: Some(kind),
            ..WorkspaceRequest::default()
        }),
        ..CreateParams::default()
    };
    let session = client.create(&params).await.unwrap().session.to_string();
    let workdir = PathBuf::from(client.get(&session).await.unwrap().workdir);
    (session, workdir)
}

const COMMIT: &str =
    "echo two > README.md && git -c user.name=a -c user.email=a@b commit -qam two && git log --format=%s";

#[tokio::test(flavor = "multi_thread")]
async fn redteam_a_session_in_a_clone_commits_there_and_leaves_the_original_untouched() {
    let scripts = [
        COMMIT,
        "echo evil > \"$(git config remote.origin.url)/README.md\"",
        "d=$(cat .git/objects/info/alternates); touch \"$d/x\"; touch \"$d/../HEAD\"; rm -r \"$d\"; ls \"$d/..\"",
        "echo /tmp > .git/objects/info/alternates",
        "git push origin HEAD:refs/heads/main",
        "mkdir -p .git/hooks && echo '#!/bin/sh' > .git/hooks/pre-commit",
        "echo '{}' > ../walls.json; rm ../record.json; ls ..",
    ];
    let server = runs(&scripts).await;
    let daemon = daemon(&server, "").await;
    let client = daemon.client().await;
    let app = repository(&daemon, "app", &scripts);
    let before = snapshot(&app);
    let (agent, tree) = session(&client, &app, WorkspaceChoice::Clone).await;
    let results = results(&client, &agent).await;
    assert_eq!(
        results[0],
        (ToolStatus::Ok, "two\none\n".to_owned()),
        "positive control: {results:?}"
    );
    assert_eq!(snapshot(&app), before, "{results:?}");
    assert_eq!(git(&tree, &["log", "--format=%s"]), "two\none");
    assert!(tree.join("../record.json").exists() && fs::read(tree.join("../walls.json")).unwrap().len() > 3);
    let alternates = fs::read_to_string(tree.join(".git/objects/info/alternates")).unwrap();
    assert_eq!(alternates.trim(), app.join(".git/objects").to_string_lossy());
    assert!(!tree.join(".git/hooks/pre-commit").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn redteam_a_session_in_a_worktree_writes_only_where_git_must() {
    let scripts = [
        COMMIT,
        "g=$(git rev-parse --git-common-dir); echo '[core] fsmonitor = touch M' >> $g/config",
        "g=$(git rev-parse --git-common-dir); mkdir -p $g/hooks; echo 'touch M' > $g/hooks/pre-commit",
        "g=$(git rev-parse --git-common-dir); echo evil > $g/refs/heads/main; echo x > $g/HEAD; rm $g/index",
        "g=$(git rev-parse --git-common-dir); echo /tmp > $g/objects/info/alternates",
        "g=$(git rev-parse --git-dir); echo '[core] fsmonitor = touch M' > $g/config.worktree; echo / > $g/commondir",
        "echo 'gitdir: /tmp/x' > .git",
        "g=$(git rev-parse --git-common-dir); echo evil > $g/../README.md; cat $g/../README.md",
        "git branch -f main HEAD; git update-ref refs/heads/main HEAD",
    ];
    let server = runs(&scripts).await;
    let daemon = daemon(&server, "").await;
    let client = daemon.client().await;
    let app = repository(&daemon, "app", &scripts);
    let config = fs::read(app.join(".git/config")).unwrap();
    let main = git(&app, &["rev-parse", "main"]);
    let (agent, tree) = session(&client, &app, WorkspaceChoice::Worktree).await;
    let git_file = fs::read(tree.join(".git")).unwrap();
    let results = results(&client, &agent).await;
    let (status, said) = &results[0];
    // Git also says that it cannot lock the packed references, which it wants for names that it deletes.
    assert!(
        *status == ToolStatus::Ok && said.ends_with("two\none\n"),
        "positive control: {results:?}"
    );
    assert_eq!(
        git(&app, &["log", "--format=%s", &format!("agentd/{agent}")]),
        "two\none"
    );
    assert_eq!(fs::read(app.join(".git/config")).unwrap(), config, "{results:?}");
    assert_eq!(fs::read(tree.join(".git")).unwrap(), git_file, "{results:?}");
    assert_eq!(git(&app, &["rev-parse", "main"]), main, "{results:?}");
    assert_eq!(git(&app, &["status", "--porcelain"]), "", "{results:?}");
    assert_eq!(fs::read_to_string(app.join("README.md")).unwrap(), "one\n");
    let common = app.join(".git");
    for name in ["hooks/pre-commit", "objects/info/alternates"] {
        assert!(!common.join(name).exists(), "{name}: {results:?}");
    }
    let own = common.join("worktrees").join(format!("agentd-{agent}"));
    assert!(!own.join("config.worktree").exists(), "{results:?}");
    assert_eq!(fs::read_to_string(own.join("commondir")).unwrap(), "../..\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn redteam_no_session_works_among_the_daemons_notes_about_workspaces() {
    let server = model(Vec::new()).await;
    let daemon = daemon(&server, "").await;
    let client = daemon.client().await;
    let app = repository(&daemon, "app", &[]);
    let (_, tree) = session(&client, &app, WorkspaceChoice::Clone).await;
    let place = tree.parent().unwrap();
    let tried = async |dir: &Path| {
        let params = CreateParams {
            workdir: dir.to_string_lossy().into_owned(),
            ..CreateParams::default()
        };
        client.create(&params).await.map(drop)
    };
    for dir in [
        place,
        place.parent().unwrap(),
        &place.join("git"),
        &daemon.data_dir().join("mirrors"),
    ] {
        let refused = tried(dir).await.unwrap_err().to_string();
        assert!(refused.contains("own files"), "{}: {refused}", dir.display());
    }
    tried(&tree).await.unwrap();
}
