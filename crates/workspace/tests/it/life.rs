//! Work that was not fetched, removal, and what a crash leaves.

use crate::kit::{Kit, git};
use agentd_protocol::WorkspaceChoice;
use agentd_workspace::WorkspaceError;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::Duration;

#[tokio::test]
async fn work_that_was_not_fetched_keeps_a_workspace() {
    let mut kit = Kit::new();
    let (session, made) = kit.make(WorkspaceChoice::Clone).await;
    let tree = Path::new(&made.workspace.path);
    assert_eq!(kit.unfetched(session).await, None);
    fs::write(tree.join("new"), "1").unwrap();
    assert_eq!(kit.unfetched(session).await.as_deref(), Some("changed files"));
    git(tree, &["add", "."]);
    git(tree, &["commit", "-qm", "new"]);
    assert_eq!(
        kit.unfetched(session).await.as_deref(),
        Some("commits and changed files")
    );
    let refused = kit.all.remove(session, false).await;
    assert!(
        matches!(refused, Err(WorkspaceError::NotFetched { .. })),
        "{refused:?}"
    );
    assert!(tree.join("new").exists());
    // Fetched is what was fetched, and no more.
    let record = kit.all.record(session).await.unwrap().unwrap();
    let present = kit.all.present(&record, Duration::from_secs(60)).await.unwrap();
    assert_eq!(present.changed, Some(vec![b"new".to_vec()]));
    git(tree, &["branch", "other"]);
    kit.all.mark_fetched(session, present).await.unwrap();
    assert_eq!(kit.unfetched(session).await, None);
    // Commits of another branch are not in the files.
    git(tree, &["checkout", "-q", "other"]);
    git(tree, &["commit", "-q", "--allow-empty", "-m", "other"]);
    git(tree, &["checkout", "-q", "-"]);
    let present = kit.all.present(&record, Duration::from_secs(60)).await.unwrap();
    kit.all.mark_fetched(session, present).await.unwrap();
    assert_eq!(kit.unfetched(session).await.as_deref(), Some("commits"));
    git(tree, &["branch", "-q", "-D", "other"]);
    fs::write(tree.join("new"), "2").unwrap();
    assert_eq!(kit.unfetched(session).await.as_deref(), Some("changed files"));
    kit.all.remove(session, true).await.unwrap().unwrap();
    assert_eq!(kit.left(), [""; 0]);
    assert_eq!(kit.all.remove(session, false).await.unwrap(), None);
}

#[tokio::test]
async fn a_stash_and_a_commit_on_no_branch_are_work_too() {
    let mut kit = Kit::new();
    let (session, made) = kit.make(WorkspaceChoice::Clone).await;
    let tree = Path::new(&made.workspace.path);
    fs::write(tree.join("README.md"), "stashed\n").unwrap();
    git(tree, &["stash", "-q"]);
    assert_eq!(kit.unfetched(session).await.as_deref(), Some("commits"));
    let (session, made) = kit.make(WorkspaceChoice::Worktree).await;
    let tree = Path::new(&made.workspace.path);
    git(tree, &["checkout", "-q", "--detach"]);
    git(tree, &["commit", "-q", "--allow-empty", "-m", "lost"]);
    assert_eq!(kit.unfetched(session).await.as_deref(), Some("commits"));
}

#[tokio::test]
async fn a_removed_worktree_leaves_its_branch_only_if_that_has_commits() {
    let mut kit = Kit::new();
    let app = kit.app();
    let (idle, _) = kit.make(WorkspaceChoice::Worktree).await;
    let (busy, made) = kit.make(WorkspaceChoice::Worktree).await;
    git(
        Path::new(&made.workspace.path),
        &["commit", "-q", "--allow-empty", "-m", "work"],
    );
    assert_eq!(kit.all.remove(idle, false).await.unwrap().unwrap().branch, None);
    let removed = kit.all.remove(busy, false).await.unwrap().unwrap();
    assert_eq!(removed.branch, Some(format!("agentd/{busy}")));
    assert_eq!(git(&app, &["worktree", "list"]).lines().count(), 1);
    let branches = git(&app, &["branch", "--format=%(refname:short)"]);
    assert_eq!(branches, format!("agentd/{busy}\nmain"));
    assert_eq!(kit.left(), [""; 0]);
}

#[tokio::test]
async fn a_workspace_without_permissions_is_removed() {
    let mut kit = Kit::new();
    let (session, made) = kit.make(WorkspaceChoice::Clone).await;
    let closed = Path::new(&made.workspace.path).join("closed");
    fs::create_dir_all(closed.join("in")).unwrap();
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o0)).unwrap();
    kit.all.remove(session, true).await.unwrap();
    assert_eq!(kit.left(), [""; 0]);
}

#[tokio::test]
async fn a_start_removes_what_belongs_to_nobody_and_keeps_the_rest() {
    let mut kit = Kit::new();
    let (owned, _) = kit.make(WorkspaceChoice::Clone).await;
    let (orphan, _) = kit.make(WorkspaceChoice::Worktree).await;
    let (worked, made) = kit.make(WorkspaceChoice::Clone).await;
    fs::write(Path::new(&made.workspace.path).join("new"), "1").unwrap();
    let begun = kit.session();
    fs::create_dir(kit.all.dir(begun)).unwrap();
    let damaged = kit.session();
    fs::create_dir(kit.all.dir(damaged)).unwrap();
    fs::write(kit.all.dir(damaged).join("record.json"), "{").unwrap();
    let removed = kit
        .all
        .clean_up(|session| async move { session == owned })
        .await
        .unwrap();
    assert_eq!(removed, 2, "the orphan and the one that had just begun");
    let mut left = kit.left();
    left.sort();
    let mut expected = [owned, worked, damaged].map(|session| session.to_string());
    expected.sort();
    assert_eq!(left, expected);
    assert_eq!(
        git(&kit.app(), &["worktree", "list"]).lines().count(),
        1,
        "{orphan}"
    );
}

#[tokio::test]
async fn a_workspace_is_measured() {
    let mut kit = Kit::new();
    let (session, made) = kit.make(WorkspaceChoice::Clone).await;
    let before = kit.all.usage(session, Duration::from_secs(60)).await.unwrap();
    fs::write(Path::new(&made.workspace.path).join("big"), vec![1; 1_000_000]).unwrap();
    let after = kit.all.usage(session, Duration::from_secs(60)).await.unwrap();
    assert!(after.bytes >= before.bytes + 1_000_000, "{before:?} {after:?}");
    assert_eq!(after.entries, before.entries + 1);
}
