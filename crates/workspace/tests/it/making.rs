//! What a workspace holds when it is whole.

use crate::kit::{Kit, git, limits, of, snapshot};
use agentd_protocol::{WorkspaceChoice, WorkspaceKind, WorkspaceRequest};
use agentd_workspace::{Limits, WorkspaceError};
use std::fs;
use std::path::Path;

#[tokio::test]
async fn a_clone_has_the_commit_and_its_history_and_the_original_stays_untouched() {
    let mut kit = Kit::new();
    let (app, before) = (kit.app(), snapshot(&kit.app()));
    let (session, made) = kit.make(WorkspaceChoice::Clone).await;
    let tree = Path::new(&made.workspace.path);
    assert_eq!(tree.file_name().unwrap(), "app");
    assert_eq!(made.workspace.kind, WorkspaceKind::Clone);
    assert_eq!(made.workspace.branch, Some(format!("agentd/{session}")));
    assert_eq!(made.workspace.base, Some(git(&app, &["rev-parse", "HEAD"])));
    // An agent's git finds a clean tree on a branch of its own, with all branches and tags of the original.
    assert_eq!(git(tree, &["status", "--porcelain"]), "");
    assert_eq!(
        git(tree, &["rev-parse", "--abbrev-ref", "HEAD"]),
        format!("agentd/{session}")
    );
    assert_eq!(git(tree, &["log", "--format=%s"]), "two\none");
    assert_eq!(
        git(tree, &["rev-parse", "origin/main"]),
        git(&app, &["rev-parse", "main"])
    );
    assert_eq!(git(tree, &["rev-parse", "v1"]), git(&app, &["rev-parse", "v1"]));
    assert_eq!(git(tree, &["fsck", "--no-dangling"]), "");
    for (file, text) in [
        ("README.md", "two\n"),
        ("src/main.rs", "fn main() {}\n"),
        ("link", "two\n"),
    ] {
        assert_eq!(fs::read_to_string(tree.join(file)).unwrap(), text, "{file}");
    }
    assert!(!tree.join(".env").exists(), "ignored files stay behind");
    // It works there, and the original knows nothing of it.
    fs::write(tree.join("README.md"), "three\n").unwrap();
    git(tree, &["commit", "-qam", "three"]);
    git(tree, &["gc", "-q"]);
    assert_eq!(snapshot(&app), before);
}

#[tokio::test]
async fn a_worktree_is_on_a_branch_of_its_own_in_the_repository() {
    let mut kit = Kit::new();
    let app = kit.app();
    let (session, made) = kit.make(WorkspaceChoice::Worktree).await;
    let (tree, branch) = (Path::new(&made.workspace.path), format!("agentd/{session}"));
    assert_eq!(git(tree, &["status", "--porcelain"]), "");
    assert_eq!(git(tree, &["rev-parse", "--abbrev-ref", "HEAD"]), branch);
    let known = git(&app, &["worktree", "list"]);
    assert!(known.contains(&branch), "{known}");
    fs::write(tree.join("README.md"), "three\n").unwrap();
    git(tree, &["commit", "-qam", "three"]);
    assert_eq!(git(&app, &["log", "-1", "--format=%s", &branch]), "three");
    // What is checked out there is as it was.
    assert_eq!(git(&app, &["status", "--porcelain"]), "");
    assert_eq!(git(&app, &["log", "-1", "--format=%s"]), "two");
}

#[tokio::test]
async fn a_reference_names_the_commit_to_begin_at() {
    let mut kit = Kit::new();
    let app = kit.app();
    for kind in [WorkspaceChoice::Clone, WorkspaceChoice::Worktree] {
        let request = WorkspaceRequest {
            reference: Some("v1".to_owned()),
            ..of(kind)
        };
        let (_, made) = kit.ask(&app, &request, limits()).await.unwrap();
        let tree = Path::new(&made.workspace.path);
        assert_eq!(fs::read_to_string(tree.join("README.md")).unwrap(), "one\n");
    }
    for bad in ["gone", "--all", "v1 v1"] {
        let request = WorkspaceRequest {
            reference: Some(bad.to_owned()),
            ..of(WorkspaceChoice::Clone)
        };
        let refused = kit.ask(&app, &request, limits()).await;
        assert!(
            matches!(
                refused,
                Err(WorkspaceError::Refused {
                    code: "unknown_ref",
                    ..
                })
            ),
            "{bad}: {refused:?}"
        );
    }
}

/// Changes of every kind in the person's tree.
fn change(app: &Path) {
    fs::write(app.join("README.md"), "changed\n").unwrap();
    fs::write(app.join("new.txt"), "new\n").unwrap();
    fs::remove_file(app.join("src/main.rs")).unwrap();
    fs::write(app.join("staged.txt"), "staged\n").unwrap();
    git(app, &["add", "staged.txt"]);
}

#[tokio::test]
async fn uncommitted_changes_stay_behind_with_a_notice_or_come_along() {
    let mut kit = Kit::new();
    let app = kit.app();
    change(&app);
    let before = snapshot(&app);
    for kind in [WorkspaceChoice::Clone, WorkspaceChoice::Worktree] {
        let (_, made) = kit.ask(&app, &of(kind), limits()).await.unwrap();
        let tree = Path::new(&made.workspace.path);
        assert_eq!(git(tree, &["status", "--porcelain"]), "");
        assert!(
            made.notices[0].starts_with("4 files with uncommitted changes"),
            "{:?}",
            made.notices
        );
        let request = WorkspaceRequest {
            with_changes: true,
            ..of(kind)
        };
        let (session, made) = kit.ask(&app, &request, limits()).await.unwrap();
        let tree = Path::new(&made.workspace.path);
        let status = git(tree, &["status", "--porcelain"]);
        assert_eq!(status, " M README.md\n D src/main.rs\n?? new.txt\n?? staged.txt");
        assert!(!tree.join(".env").exists());
        assert_eq!(made.notices, [""; 0]);
        // What came along is the person's, not work of the session.
        assert_eq!(kit.unfetched(session).await, None);
    }
    let git_dir = app.join(".git");
    let outside = |all: std::collections::BTreeMap<std::path::PathBuf, _>| -> Vec<_> {
        all.into_iter()
            .filter(|(path, _)| !path.starts_with(&git_dir))
            .collect()
    };
    assert_eq!(outside(snapshot(&app)), outside(before));
}

#[tokio::test]
async fn included_files_come_along_within_the_limits() {
    let mut kit = Kit::new();
    let app = kit.app();
    fs::create_dir_all(app.join("built/deep")).unwrap();
    fs::write(app.join("built/deep/a"), "12345").unwrap();
    let with = |max_bytes| Limits {
        include: [".env", "built", "gone"].map(Into::into).into(),
        max_bytes,
        ..limits()
    };
    let (session, made) = kit
        .ask(&app, &of(WorkspaceChoice::Clone), with(11))
        .await
        .unwrap();
    let tree = Path::new(&made.workspace.path);
    assert_eq!(fs::read_to_string(tree.join(".env")).unwrap(), "KEY=1\n");
    assert_eq!(fs::read_to_string(tree.join("built/deep/a")).unwrap(), "12345");
    assert_eq!(git(tree, &["status", "--porcelain"]), "");
    assert_eq!(kit.unfetched(session).await, None);
    let refused = kit.ask(&app, &of(WorkspaceChoice::Clone), with(10)).await;
    assert!(
        matches!(refused, Err(WorkspaceError::Limit { .. })),
        "{refused:?}"
    );
    assert_eq!(
        kit.left(),
        [session.to_string()],
        "nothing of the refused one is left"
    );
}

#[tokio::test]
async fn a_url_is_cloned_through_one_mirror() {
    let mut kit = Kit::new();
    let app = kit.app();
    let request = WorkspaceRequest {
        repo: Some(format!("file://{}", app.display())),
        ..WorkspaceRequest::default()
    };
    let (first, made) = kit.ask(Path::new(""), &request, limits()).await.unwrap();
    let tree = Path::new(&made.workspace.path);
    assert_eq!(git(tree, &["log", "--format=%s"]), "two\none");
    assert_eq!(tree.file_name().unwrap(), "app");
    // The next one gets what is new, from the same mirror.
    fs::write(app.join("README.md"), "three\n").unwrap();
    git(&app, &["commit", "-qam", "three"]);
    git(&app, &["branch", "other", "v1"]);
    let (_, again) = kit.ask(Path::new(""), &request, limits()).await.unwrap();
    assert_eq!(again.workspace.repository, made.workspace.repository);
    assert_eq!(
        fs::read_to_string(Path::new(&again.workspace.path).join("README.md")).unwrap(),
        "three\n"
    );
    let branch = WorkspaceRequest {
        reference: Some("other".to_owned()),
        ..request
    };
    let (_, other) = kit.ask(Path::new(""), &branch, limits()).await.unwrap();
    assert_eq!(
        fs::read_to_string(Path::new(&other.workspace.path).join("README.md")).unwrap(),
        "one\n"
    );
    assert_eq!(
        fs::read_dir(kit.dir.path().join("data/mirrors")).unwrap().count(),
        1
    );
    assert_eq!(kit.unfetched(first).await, None);
    let gone = WorkspaceRequest {
        repo: Some("file:///no/such/repository".to_owned()),
        ..WorkspaceRequest::default()
    };
    let refused = kit.ask(Path::new(""), &gone, limits()).await;
    assert!(
        matches!(
            refused,
            Err(WorkspaceError::Refused {
                code: "fetch_failed",
                ..
            })
        ),
        "{refused:?}"
    );
}

#[tokio::test]
async fn a_directory_without_git_is_copied() {
    let mut kit = Kit::new();
    let plain = kit.dir.path().join("plain");
    fs::create_dir_all(plain.join("a")).unwrap();
    fs::write(plain.join("a/b"), "1").unwrap();
    let (session, made) = kit
        .ask(&plain, &of(WorkspaceChoice::Copy), limits())
        .await
        .unwrap();
    let tree = Path::new(&made.workspace.path);
    assert_eq!(fs::read_to_string(tree.join("a/b")).unwrap(), "1");
    assert_eq!(
        (made.workspace.kind, &made.workspace.base),
        (WorkspaceKind::Copy, &None)
    );
    assert_eq!(kit.unfetched(session).await, None);
    fs::write(tree.join("a/b"), "2").unwrap();
    assert_eq!(kit.unfetched(session).await.as_deref(), Some("changed files"));
    assert_eq!(fs::read_to_string(plain.join("a/b")).unwrap(), "1");
}

#[tokio::test]
async fn many_are_made_at_once_without_a_conflict() {
    let kit = Kit::new();
    let (app, mut kit) = (kit.app(), kit);
    let sessions: Vec<_> = (0..12).map(|_| kit.session()).collect();
    let repository = kit.all.inspect(&app, limits().within).await.unwrap();
    let mut making = tokio::task::JoinSet::new();
    for (n, session) in sessions.into_iter().enumerate() {
        let kind = if n % 2 == 0 {
            WorkspaceChoice::Worktree
        } else {
            WorkspaceChoice::Clone
        };
        let planned = agentd_workspace::plan(agentd_workspace::Asked {
            request: Some(&of(kind)),
            default: WorkspaceChoice::Shared,
            workdir: &app,
            repository: repository.as_ref(),
        });
        let (all, plan) = (kit.all.clone(), planned.unwrap().unwrap());
        making.spawn(async move {
            all.make(session, agentd_protocol::Timestamp(5), plan, limits())
                .await
        });
    }
    while let Some(made) = making.join_next().await {
        let made = made.unwrap().unwrap();
        assert_eq!(
            git(Path::new(&made.workspace.path), &["status", "--porcelain"]),
            ""
        );
    }
    assert_eq!(git(&app, &["worktree", "list"]).lines().count(), 7);
    git(&app, &["fsck", "--no-dangling"]);
}

#[tokio::test]
async fn a_submodule_stays_in_the_commits_of_a_session_without_its_contents() {
    let mut kit = Kit::new();
    let (app, inner) = (kit.app(), kit.dir.path().join("inner"));
    fs::create_dir(&inner).unwrap();
    git(&inner, &["init", "-q"]);
    git(&inner, &["commit", "-q", "--allow-empty", "-m", "inner"]);
    let add = ["-c", "protocol.file.allow=always", "submodule", "--quiet", "add"];
    git(
        &app,
        &[&add[..], &[inner.to_str().unwrap(), "libs/inner"]].concat(),
    );
    git(&app, &["commit", "-qm", "submodule"]);
    let listed = git(&app, &["ls-tree", "HEAD", "libs/inner"]);
    assert!(listed.starts_with("160000 commit"), "{listed}");
    for kind in [WorkspaceChoice::Clone, WorkspaceChoice::Worktree] {
        for with_changes in [false, true] {
            fs::write(app.join("README.md"), format!("{kind:?}{with_changes}\n")).unwrap();
            let request = WorkspaceRequest {
                with_changes,
                ..of(kind)
            };
            let (session, made) = kit.ask(&app, &request, limits()).await.unwrap();
            let tree = Path::new(&made.workspace.path);
            let [left_out] = made.workspace.left_out.as_slice() else {
                panic!("{:?}", made.workspace.left_out);
            };
            assert!(left_out.ends_with(": libs/inner"), "{left_out}");
            assert_eq!(fs::read_dir(tree.join("libs/inner")).unwrap().count(), 0);
            let changed = if with_changes { "M README.md" } else { "" };
            assert_eq!(git(tree, &["status", "--porcelain"]).trim_start(), changed);
            assert_eq!(kit.unfetched(session).await, None);
            // The agent commits everything, also after it removed the empty directory.
            fs::remove_dir_all(tree.join("libs")).unwrap();
            fs::write(tree.join("new.txt"), "new\n").unwrap();
            git(tree, &["add", "--all"]);
            git(tree, &["commit", "-qam", "all"]);
            assert_eq!(git(tree, &["ls-tree", "HEAD", "libs/inner"]), listed, "{kind:?}");
            assert_eq!(git(tree, &["status", "--porcelain"]), "");
        }
    }
}
