//! Repositories that would make git run a program, or lead it elsewhere. Each trap has a positive control: a person's git
//! falls into it.

use crate::kit::{Kit, environment, git, limits, of};
use agentd_protocol::{WorkspaceChoice, WorkspaceRequest};
use agentd_workspace::WorkspaceError;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

/// Sets every trap that a repository's configuration, attributes and hooks can be. Whatever runs leaves the mark.
fn set_traps(git_dir: &Path, tree: &Path, mark: &Path) {
    let touch = format!("touch '{}'", mark.display());
    let included = git_dir.join("included");
    fs::write(
        &included,
        format!("[filter \"x\"]\n\tclean = {touch}; cat\n\tsmudge = {touch}; cat\n"),
    )
    .unwrap();
    let config = format!(
        "[core]\n\tfsmonitor = {touch}\n\tsshCommand = {touch}\n\tpager = {touch}\n\teditor = {touch}\n\
         [include]\n\tpath = {}\n[filter \"y\"]\n\tprocess = {touch}\n\trequired = true\n\
         [diff]\n\texternal = {touch}\n[merge \"z\"]\n\tdriver = {touch}\n[gc]\n\trecentObjectsHook = {touch}\n\
         [alias]\n\tstatus = !{touch}\n\tread-tree = !{touch}\n",
        included.display()
    );
    let path = git_dir.join("config");
    let old = fs::read_to_string(&path).unwrap_or_default();
    fs::write(&path, format!("{old}{config}")).unwrap();
    fs::create_dir_all(git_dir.join("info")).unwrap();
    fs::write(git_dir.join("info/attributes"), "* filter=x diff=x merge=z\n").unwrap();
    fs::write(tree.join(".gitattributes"), "*.md filter=x\n*.rs filter=y\n").unwrap();
    fs::create_dir_all(git_dir.join("hooks")).unwrap();
    for hook in [
        "post-checkout",
        "reference-transaction",
        "post-index-change",
        "pre-commit",
        "fsmonitor-watchman",
    ] {
        let path = git_dir.join("hooks").join(hook);
        fs::write(&path, format!("#!/bin/sh\n{touch}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }
}

#[tokio::test]
async fn redteam_no_trap_of_a_repository_runs_while_workspaces_are_made_and_removed() {
    let mut kit = Kit::new();
    let (app, mark) = (kit.app(), kit.dir.path().join("M"));
    fs::write(app.join(".gitattributes"), "*.md filter=x\n*.rs filter=y\n").unwrap();
    git(&app, &["add", "."]);
    git(&app, &["commit", "-qm", "attributes"]);
    set_traps(&app.join(".git"), &app, &mark);
    fs::write(app.join("README.md"), "changed\n").unwrap();
    for kind in [WorkspaceChoice::Clone, WorkspaceChoice::Worktree] {
        for with_changes in [false, true] {
            let request = WorkspaceRequest {
                with_changes,
                ..of(kind)
            };
            let (session, made) = kit.ask(&app, &request, limits()).await.unwrap();
            assert!(!mark.exists(), "{kind:?} made");
            let readme = fs::read_to_string(Path::new(&made.workspace.path).join("README.md")).unwrap();
            assert_eq!(readme, if with_changes { "changed\n" } else { "two\n" });
            assert_eq!(kit.unfetched(session).await, None);
            kit.all.remove(session, true).await.unwrap();
            assert!(!mark.exists(), "{kind:?} removed");
        }
    }
    let url = WorkspaceRequest {
        repo: Some(format!("file://{}", app.display())),
        ..WorkspaceRequest::default()
    };
    kit.ask(Path::new(""), &url, limits()).await.unwrap();
    assert!(!mark.exists(), "cloned from a URL");
    // Positive control.
    git(&app, &["add", "README.md"]);
    assert!(mark.exists());
}

#[tokio::test]
async fn redteam_no_trap_that_an_agent_sets_runs_when_its_work_is_examined() {
    let mut kit = Kit::new();
    let mark = kit.dir.path().join("M");
    let (session, made) = kit.make(WorkspaceChoice::Clone).await;
    let tree = PathBuf::from(&made.workspace.path);
    set_traps(&tree.join(".git"), &tree, &mark);
    // A repository within the tree, whose settings `git status` would obey.
    let sub = tree.join("sub");
    fs::create_dir(&sub).unwrap();
    git(&sub, &["init", "-q"]);
    git(&sub, &["commit", "-q", "--allow-empty", "-m", "sub"]);
    set_traps(&sub.join(".git"), &sub, &mark);
    fs::remove_file(sub.join(".git/hooks/reference-transaction")).unwrap();
    assert_eq!(kit.unfetched(session).await.as_deref(), Some("changed files"));
    kit.all.usage(session, limits().within).await.unwrap();
    assert!(!mark.exists());
    git(&tree, &["add", "README.md"]);
    assert!(mark.exists(), "the positive control");
    fs::remove_file(&mark).unwrap();
    kit.all.remove(session, true).await.unwrap();
    assert!(!mark.exists());
}

#[tokio::test]
async fn redteam_submodules_are_neither_fetched_nor_looked_into() {
    let mut kit = Kit::new();
    let (app, mark) = (kit.app(), kit.dir.path().join("M"));
    let inner = kit.dir.path().join("inner");
    fs::create_dir(&inner).unwrap();
    git(&inner, &["init", "-q"]);
    git(&inner, &["commit", "-q", "--allow-empty", "-m", "inner"]);
    let add = ["-c", "protocol.file.allow=always", "submodule", "--quiet", "add"];
    git(&app, &[&add[..], &[inner.to_str().unwrap(), "inner"]].concat());
    let evil = format!(
        "[submodule \"inner\"]\n\tpath = inner\n\turl = ext::sh -c touch% {}\n\tupdate = !touch {}\n",
        mark.display(),
        mark.display()
    );
    fs::write(app.join(".gitmodules"), evil).unwrap();
    git(&app, &["add", ".gitmodules"]);
    git(&app, &["commit", "-qm", "submodule"]);
    set_traps(&app.join(".git/modules/inner"), &app.join("inner"), &mark);
    for kind in [WorkspaceChoice::Clone, WorkspaceChoice::Worktree] {
        let request = WorkspaceRequest {
            with_changes: true,
            ..of(kind)
        };
        let (session, made) = kit.ask(&app, &request, limits()).await.unwrap();
        assert!(
            made.notices
                .iter()
                .any(|notice| notice.contains("the contents of submodules")),
            "{:?}",
            made.notices
        );
        assert_eq!(kit.unfetched(session).await, None);
        // An agent that puts a repository there is not followed either.
        let own = Path::new(&made.workspace.path).join("inner");
        fs::create_dir_all(&own).unwrap();
        git(&own, &["init", "-q"]);
        git(&own, &["commit", "-q", "--allow-empty", "-m", "own"]);
        set_traps(&own.join(".git"), &own, &mark);
        let _ = kit.unfetched(session).await;
        assert!(!mark.exists(), "{kind:?}");
    }
}

fn refused(result: Result<impl std::fmt::Debug, WorkspaceError>) -> &'static str {
    match result {
        Err(WorkspaceError::Refused { code, .. }) => code,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn redteam_a_git_file_or_link_that_leads_to_another_repository_is_refused() {
    let mut kit = Kit::new();
    let (app, bait) = (kit.app(), kit.dir.path().join("bait"));
    fs::create_dir(&bait).unwrap();
    fs::write(
        bait.join(".git"),
        format!("gitdir: {}\n", app.join(".git").display()),
    )
    .unwrap();
    for kind in [WorkspaceChoice::Clone, WorkspaceChoice::Worktree] {
        assert_eq!(
            refused(kit.ask(&bait, &of(kind), limits()).await),
            "bad_repository"
        );
    }
    fs::remove_file(bait.join(".git")).unwrap();
    symlink(app.join(".git"), bait.join(".git")).unwrap();
    assert_eq!(
        refused(kit.ask(&bait, &of(WorkspaceChoice::Clone), limits()).await),
        "bad_repository"
    );
    // Likewise a directory that claims to be a worktree of it.
    fs::remove_file(bait.join(".git")).unwrap();
    let entry = kit.dir.path().join("entry");
    fs::create_dir(&entry).unwrap();
    fs::write(entry.join("commondir"), app.join(".git").to_str().unwrap()).unwrap();
    fs::write(entry.join("HEAD"), "ref: refs/heads/main\n").unwrap();
    fs::write(entry.join("gitdir"), bait.join(".git").to_str().unwrap()).unwrap();
    fs::write(bait.join(".git"), format!("gitdir: {}\n", entry.display())).unwrap();
    assert_eq!(
        refused(kit.ask(&bait, &of(WorkspaceChoice::Clone), limits()).await),
        "bad_repository"
    );
    // The control: a worktree that the person made.
    let real = kit.dir.path().join("real");
    git(
        &app,
        &["worktree", "add", "-q", "-b", "side", real.to_str().unwrap()],
    );
    for kind in [WorkspaceChoice::Clone, WorkspaceChoice::Worktree] {
        kit.ask(&real, &of(kind), limits()).await.unwrap();
    }
}

#[tokio::test]
async fn redteam_borrowed_objects_of_a_third_repository_are_refused() {
    let mut kit = Kit::new();
    let (app, other) = (kit.app(), kit.dir.path().join("other"));
    fs::create_dir(&other).unwrap();
    git(&other, &["init", "-q"]);
    let alternates = app.join(".git/objects/info/alternates");
    fs::write(&alternates, other.join(".git/objects").to_str().unwrap()).unwrap();
    for kind in [WorkspaceChoice::Clone, WorkspaceChoice::Worktree] {
        assert_eq!(
            refused(kit.ask(&app, &of(kind), limits()).await),
            "borrowed_objects"
        );
    }
    assert_eq!(kit.left(), [""; 0]);
}

#[tokio::test]
async fn redteam_a_tree_with_names_of_gits_own_is_not_checked_out() {
    let mut kit = Kit::new();
    let app = kit.app();
    let blob = git(&app, &["hash-object", "-w", "README.md"]);
    let entry = format!("100644 blob {blob}\tconfig\n");
    fs::write(app.join("entries"), &entry).unwrap();
    // A commit whose tree has a directory `.git`: a person's git refuses to make it without being forced.
    let script = "t=$(git mktree < entries) && printf '040000 tree %s\\t.git\\n' $t | git mktree > tree && \
                  git -c user.name=a -c user.email=a@b commit-tree -m evil $(cat tree) > commit";
    #[expect(clippy::disallowed_methods, reason = "an attacker's repository")]
    let made = std::process::Command::new("sh")
        .args(["-c", script])
        .env_clear()
        .env("PATH", environment().path)
        .current_dir(&app)
        .status();
    assert!(made.unwrap().success());
    let commit = fs::read_to_string(app.join("commit")).unwrap();
    let request = WorkspaceRequest {
        reference: Some(commit.trim().to_owned()),
        ..of(WorkspaceChoice::Clone)
    };
    let failed = kit.ask(&app, &request, limits()).await;
    assert!(matches!(failed, Err(WorkspaceError::Git { .. })), "{failed:?}");
    assert_eq!(kit.left(), [""; 0]);
}
