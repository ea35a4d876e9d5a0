//! Runs `kill -9` exactly at each step of making and removing a workspace, in a separate process, and cleans up as the next
//! start of the daemon does.

use crate::kit::{Kit, environment, git, limits, of};
use agentd_fault_points as fault;
use agentd_protocol::{SessionId, Stamp, Timestamp, WorkspaceChoice};
use agentd_workspace::{Asked, Workspaces, plan};
use std::path::Path;
use std::process::Stdio;

const DIR: &str = "AGENTD_TEST_WORKSPACES";
const POINT: &str = "AGENTD_TEST_POINT";

fn choice(word: &str) -> WorkspaceChoice {
    if word == "clone" {
        WorkspaceChoice::Clone
    } else {
        WorkspaceChoice::Worktree
    }
}

/// Makes a workspace and removes it, until it is killed.
#[tokio::test]
#[expect(
    clippy::disallowed_methods,
    reason = "the other half of the test below says where to work"
)]
async fn child() {
    let (Ok(dir), Ok(point)) = (std::env::var(DIR), std::env::var(POINT)) else {
        return;
    };
    let (kind, point) = point.split_once(' ').unwrap();
    fault::arm(point).unwrap();
    let (dir, request) = (Path::new(&dir), of(choice(kind)));
    let all = Workspaces::open(&dir.join("data"), environment()).unwrap();
    let app = dir.join("app");
    let repository = all.inspect(&app, limits().within).await.unwrap();
    let planned = plan(Asked {
        request: Some(&request),
        default: WorkspaceChoice::Shared,
        workdir: &app,
        repository: repository.as_ref(),
    });
    let session: SessionId = Stamp::new(Timestamp(7), 11).session();
    all.make(session, Timestamp(7), planned.unwrap().unwrap(), limits())
        .await
        .unwrap();
    all.remove(session, true).await.unwrap();
}

#[tokio::test]
#[expect(
    clippy::disallowed_methods,
    reason = "the test runs itself once more to be killed"
)]
async fn i5_a_kill_between_any_two_steps_of_making_or_removing_leaves_nothing_behind() {
    let points = [
        "workspace.begun",
        "workspace.branched",
        "workspace.filled",
        "workspace.made",
        "workspace.removing",
        "workspace.unlinked",
        "workspace.emptied",
    ];
    for kind in ["worktree", "clone"] {
        for point in points
            .iter()
            .filter(|point| kind == "worktree" || **point != "workspace.branched")
        {
            let kit = Kit::new();
            let before = git(&kit.app(), &["for-each-ref"]);
            let mut child = std::process::Command::new(std::env::current_exe().unwrap());
            child
                .args(["--exact", "kill::child", "--nocapture"])
                .stderr(Stdio::null())
                .stdout(Stdio::null());
            child
                .env(DIR, kit.dir.path())
                .env(POINT, format!("{kind} {point}=kill"));
            assert!(!child.status().unwrap().success(), "{kind} {point} did not kill");
            assert_eq!(
                kit.left().len(),
                1,
                "{kind} {point}: something is left to clean up"
            );
            let removed = kit.all.clean_up(|_| async { false }).await.unwrap();
            assert_eq!((removed, kit.left()), (1, Vec::new()), "{kind} {point}");
            assert_eq!(git(&kit.app(), &["for-each-ref"]), before, "{kind} {point}");
            assert_eq!(
                git(&kit.app(), &["worktree", "list"]).lines().count(),
                1,
                "{kind} {point}"
            );
        }
    }
}
