//! Files and costs of a tree of agents: changes by sub-agents are shown, undone and rewound at the root, and
//! their spending counts there, also after they are deleted.

use crate::YOLO;
use crate::played::{daemon, model, results};
use crate::subagents::{all, node, root, when_over};
use agentd_protocol::{Block, CreateParams, Diffed, EndReason, RunState, SendParams, Status, ToolStatus};
use agentd_tests::fault_server::{FaultServer, Say};
use agentd_tests::{Daemon, Follower, check_log, found};
use serde_json::{Value, json};
use std::path::PathBuf;

fn task(name: &str) -> Say {
    Say::call(
        "Task",
        json!({ "description": name, "prompt": format!("node:{name};") }),
    )
}

fn write(path: &str, content: &str) -> Say {
    Say::call("Write", json!({ "file_path": path, "content": content }))
}

fn file(daemon: &Daemon, name: &str) -> Option<String> {
    std::fs::read_to_string(PathBuf::from(daemon.workdir("project")).join(name)).ok()
}

async fn agentctl(daemon: &Daemon, args: &[&str], code: i32) -> String {
    let done = daemon.agentctl(args).await;
    assert_eq!(done.code, Some(code), "{args:?}: {}{}", done.stdout, done.stderr);
    done.stdout
}

/// A root that writes a file, its agent that changes it, and one below that writes another.
async fn three_that_write() -> FaultServer {
    model(|body, step| match (node(body), step) {
        ("r", 0) => write("shared.txt", "root\n"),
        ("r", 1) => task("middle"),
        ("middle", 0) => {
            let change = json!({ "file_path": "shared.txt", "old_string": "root", "new_string": "middle" });
            Say {
                calls: vec![
                    ("Read".to_owned(), json!({ "file_path": "shared.txt" })),
                    ("Edit".to_owned(), change),
                ],
                ..Say::text("")
            }
        }
        ("middle", 1) => task("low"),
        ("low", 0) => write("low.txt", "low\n"),
        ("low", 1) => Say::call("Bash", json!({ "command": "echo done by a command" })),
        _ => Say::text("done"),
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn what_sub_agents_changed_is_shown_and_undone_with_the_turn_of_their_root() {
    let server = three_that_write().await;
    let daemon = daemon(&server, YOLO).await;
    let client = daemon.client().await;
    let session = root(&daemon, &client, CreateParams::default()).await;
    let mut follower = Follower::attach(&client, &session).await;
    assert_eq!(follower.turn_finished(1).await.reason, EndReason::Completed);
    let rows = when_over(&client, 2).await;
    let id = |name: &str| rows.iter().find(|row| row.name == name).unwrap().session;
    assert_eq!(file(&daemon, "shared.txt").as_deref(), Some("middle\n"));
    let shown = agentctl(&daemon, &["diff", &session, "-o", "json"], 0).await;
    let diffed: Diffed = serde_json::from_str(&shown).unwrap();
    let files: Vec<_> = diffed
        .files
        .iter()
        .map(|file| (file.path.as_str(), file.by.clone()))
        .collect();
    assert_eq!(
        files,
        [("low.txt", vec![id("low")]), ("shared.txt", vec![id("middle")])]
    );
    assert!(
        diffed.files[1].diff.contains("+middle"),
        "{}",
        diffed.files[1].diff
    );
    assert!(diffed.stays[0].contains(&id("low").short()), "{:?}", diffed.stays);
    let stat = agentctl(&daemon, &["diff", &session, "--stat"], 0).await;
    assert!(
        stat.contains(&format!("low.txt  (by sub-agent {})", id("low").short())),
        "{stat}"
    );
    // The turn of the root is shown and then undone, too.
    let undone = agentctl(&daemon, &["undo", &session, "--turn", "last", "-o", "json"], 0).await;
    let undone: Value = serde_json::from_str(&undone).unwrap();
    assert_eq!(
        (file(&daemon, "shared.txt"), file(&daemon, "low.txt")),
        (None, None)
    );
    agentctl(&daemon, &["undo", &session, "--turn", "last"], 5).await;
    let again = undone["undo_id"].as_str().unwrap();
    agentctl(&daemon, &["undo", &session, "--change", again], 0).await;
    assert_eq!(file(&daemon, "shared.txt").as_deref(), Some("middle\n"));
    // One change of a sub-agent is undone, and changes by others are not lost.
    let low = PathBuf::from(daemon.workdir("project")).join("low.txt");
    std::fs::write(&low, "a person's\n").unwrap();
    agentctl(&daemon, &["undo", &session, "--turn", "last"], 5).await;
    assert_eq!(file(&daemon, "low.txt").as_deref(), Some("a person's\n"));
    let page = agentctl(&daemon, &["show", &session], 0).await;
    let line = page.lines().find(|line| line.starts_with("sub-agent")).unwrap();
    assert!(
        line.contains(&id("middle").short()) && line.contains("closed") && line.ends_with("middle"),
        "{line}"
    );
    assert!(
        line.chars().count() <= 80 && !page.contains(&id("middle").to_string()),
        "{page}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn i1_i4_a_root_goes_back_with_the_files_of_its_sub_agents_and_may_start_others() {
    let server = three_that_write().await;
    let mut daemon = daemon(&server, YOLO).await;
    let client = daemon.client().await;
    let session = root(&daemon, &client, CreateParams::default()).await;
    let mut follower = Follower::attach(&client, &session).await;
    assert_eq!(follower.turn_finished(1).await.reason, EndReason::Completed);
    when_over(&client, 2).await;
    let files = |daemon: &Daemon| (file(daemon, "shared.txt"), file(daemon, "low.txt"));
    let back = ["rewind", session.as_str(), "--at", "1", "--files"];
    // Later changes by others are not lost, and nothing else is restored then.
    let low = PathBuf::from(daemon.workdir("project")).join("low.txt");
    std::fs::write(&low, "a person's\n").unwrap();
    agentctl(&daemon, &back, 5).await;
    assert_eq!(
        files(&daemon),
        (Some("middle\n".to_owned()), Some("a person's\n".to_owned()))
    );
    std::fs::write(&low, "low\n").unwrap();
    agentctl(&daemon, &back, 0).await;
    assert_eq!(files(&daemon), (None, None));
    daemon.kill().await;
    let daemon = daemon.restart(None).await;
    let client = daemon.client().await;
    let again = SendParams {
        session: session.clone(),
        content: vec![Block::text("node:r;")],
        ..SendParams::default()
    };
    client.send(&again).await.unwrap();
    let mut follower = Follower::attach(&client, &session).await;
    assert_eq!(follower.turn_finished(2).await.reason, EndReason::Completed);
    when_over(&client, 4).await;
    assert_eq!(
        files(&daemon),
        (Some("middle\n".to_owned()), Some("low\n".to_owned()))
    );
    check_log(&client, &session).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn i1_what_a_deleted_sub_agent_spent_counts_in_its_tree() {
    let server = model(|body, step| match (node(body), step) {
        ("r", 0) => task("part"),
        ("part", 0) => Say::call("Bash", json!({ "command": "sleep 86399" })),
        _ => Say::text("done"),
    })
    .await;
    let daemon = daemon(&server, YOLO).await;
    let client = daemon.client().await;
    let session = root(&daemon, &client, CreateParams::default()).await;
    let child = found("the command of the sub-agent runs", async || {
        let rows = all(&client).await;
        // Before that, the call is judged in the same state.
        let runs =
            |status: &Status| status.state == RunState::RunningTool && status.reason.starts_with("Bash");
        let running = rows.iter().find(|row| row.parent.is_some() && runs(&row.status));
        running.map(|row| row.session)
    })
    .await;
    agentctl(&daemon, &["rm", &child.to_string()], 5).await;
    agentctl(&daemon, &["rm", "-f", &child.to_string()], 0).await;
    let mut follower = Follower::attach(&client, &session).await;
    assert_eq!(follower.turn_finished(1).await.reason, EndReason::Completed);
    let row = client.get(&session).await.unwrap();
    assert_eq!((row.below.steps, row.children.len()), (1, 0));
    assert_eq!(all(&client).await.len(), 1, "it is deleted");
    let said = results(&check_log(&client, &session).await);
    assert_ne!(said[0].0, ToolStatus::Ok, "{said:?}");
    let shown = agentctl(&daemon, &["diff", &session], 0).await;
    assert!(shown.is_empty(), "{shown}");
}
