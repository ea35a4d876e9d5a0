//! Sessions whose workspace is lost: the store has their files (`workspace.keep = "store"`).

use crate::cluster::fleet::{Fleet, accepted};
use crate::{YOLO, daemon};
use agentd_bench::model_server::ModelServer;
use agentd_client::Client;
use agentd_protocol::{Block, CreateParams, Event, EventBody, NoteKind, SendParams, WorkspaceRestored};
use agentd_tests::{Daemon, Follower, check_log, git};
use std::fs;
use std::path::{Path, PathBuf};

const KEEP: &str = "[workspace]\nkeep = \"store\"\n";

/// A repository with one commit.
fn repository(dir: &Path) {
    git(dir, &["init", "-q"]);
    fs::write(dir.join("a.txt"), "one\n").unwrap();
    git(dir, &["add", "."]);
    git(dir, &["commit", "-qm", "one"]);
}

/// A session that works in a clone of this directory and has done this.
async fn worked(client: &Client, dir: &Path, plan: &str) -> String {
    let params = CreateParams {
        prompt: Some(vec![Block::text(plan)]),
        workdir: dir.display().to_string(),
        ..CreateParams::default()
    };
    let id = client.create(&params).await.unwrap().session.to_string();
    Follower::attach(client, &id).await.turn_finished(1).await;
    id
}

/// A daemon with this setting, a repository, and a session that has worked in a clone of it.
async fn begun(keep: &str, plan: &str) -> (ModelServer, Daemon, PathBuf, String) {
    let server = ModelServer::start(false).await.unwrap();
    let daemon = daemon(&server, &format!("{YOLO}{keep}")).await;
    let app = PathBuf::from(daemon.workdir("app"));
    repository(&app);
    let id = worked(&daemon.client().await, &app, plan).await;
    (server, daemon, app, id)
}

async fn goes_on(client: &Client, id: &str, plan: &str) {
    let params = SendParams {
        session: id.to_owned(),
        content: vec![Block::text(plan)],
        key: Some("second".to_owned()),
        ..SendParams::default()
    };
    accepted(client, &params).await;
    Follower::attach(client, id).await.turn_finished(2).await;
}

fn restored(log: &[Event]) -> Vec<&WorkspaceRestored> {
    let restored = log.iter().filter_map(|event| match &event.body {
        EventBody::WorkspaceRestored(restored) => Some(restored),
        _ => None,
    });
    restored.collect()
}

/// The notices about the directory that the model got.
fn told(log: &[Event]) -> String {
    let notes = log.iter().filter_map(|event| match &event.body {
        EventBody::NoteInjected(note) if note.kind == NoteKind::ContextNotice => Some(note.text.as_str()),
        _ => None,
    });
    notes.collect::<Vec<_>>().join("\n")
}

fn read(dir: &str, name: &str) -> String {
    fs::read_to_string(Path::new(dir).join(name)).unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread")]
async fn i4_a_session_goes_on_with_its_files_after_its_workspace_is_deleted() {
    let (_server, mut daemon, app, id) =
        begun(KEEP, "plan:kept steps=2 command=echo_{n}_>>_mine; text=one;").await;
    let client = daemon.client().await;
    let before = check_log(&client, &id).await;
    let was = client.get(&id).await.unwrap().workdir;
    daemon.kill().await;
    for gone in ["workspaces", "checkpoints"] {
        fs::remove_dir_all(daemon.data_dir().join(gone)).unwrap();
    }
    let daemon = daemon.restart(None).await;
    let client = daemon.client().await;
    goes_on(
        &client,
        &id,
        "plan:more steps=1 command=echo_3_>>_mine; text=two;",
    )
    .await;
    let log = check_log(&client, &id).await;
    assert_eq!(log[..before.len()], before[..], "I1");
    let restored = restored(&log);
    assert_eq!(restored.len(), 1, "{log:?}");
    let now = client.get(&id).await.unwrap().workdir;
    assert_eq!(
        (&restored[0].workspace.path, &now),
        (&was, &now),
        "the same place"
    );
    assert_eq!(
        (read(&now, "mine").as_str(), read(&now, "a.txt").as_str()),
        ("0.0\n1.0\n3\n", "one\n")
    );
    assert!(told(&log).contains("was lost and made again"), "{}", told(&log));
    // It is a clone again, and what came before can be shown, undone and fetched.
    assert_eq!(git(Path::new(&now), &["rev-list", "--count", "HEAD"]), "1");
    let undone = daemon.agentctl(&["undo", &id]).await;
    assert_eq!(undone.code, Some(0), "{}", undone.stderr);
    assert_eq!(read(&now, "mine"), "0.0\n1.0\n");
    let listed = daemon.agentctl(&["show", &id, "--files"]).await;
    let names: Vec<&str> = listed
        .stdout
        .lines()
        .filter_map(|line| line.split_whitespace().last())
        .collect();
    assert_eq!(names, ["a.txt", "mine"], "{}{}", listed.stdout, listed.stderr);
    let branch = daemon.agentctl(&["branch", &id, "result"]).await;
    assert_eq!(branch.code, Some(0), "{}", branch.stderr);
    assert_eq!(git(&app, &["show", "result:mine"]), "0.0\n1.0");
}

#[tokio::test(flavor = "multi_thread")]
async fn i4_a_kill_before_the_files_are_in_place_makes_the_workspace_again() {
    let (_server, mut daemon, _, id) =
        begun(KEEP, "plan:kept steps=1 command=echo_1_>>_mine; text=one;").await;
    daemon.kill().await;
    fs::remove_dir_all(daemon.data_dir().join("workspaces")).unwrap();
    // The directory is made by then, and has the files of its source.
    let mut daemon = daemon.restart(Some("workspace.made=kill@1")).await;
    let params = SendParams {
        session: id.clone(),
        content: vec![Block::text("plan:lost steps=1 text=lost;")],
        ..SendParams::default()
    };
    let refused = daemon.client().await.send(&params).await;
    assert!(refused.is_err(), "{refused:?}");
    daemon.ended().await;
    let daemon = daemon.restart(None).await;
    let client = daemon.client().await;
    goes_on(
        &client,
        &id,
        "plan:more steps=1 command=echo_2_>>_mine; text=two;",
    )
    .await;
    let now = client.get(&id).await.unwrap().workdir;
    assert_eq!(read(&now, "mine"), "1\n2\n");
    assert_eq!(restored(&check_log(&client, &id).await).len(), 1);
    let left = fs::read_dir(daemon.data_dir().join("workspaces")).unwrap();
    let left: Vec<_> = left.map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, [id.as_str()], "nothing is left over");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_copies_in_the_store_a_lost_workspace_is_said_and_no_model_is_called() {
    let (server, mut daemon, _, id) = begun(
        "[workspace]\nkeep = \"local\"\n",
        "plan:local steps=1 command=echo_1_>_mine; text=one;",
    )
    .await;
    daemon.kill().await;
    fs::remove_dir_all(daemon.data_dir().join("workspaces")).unwrap();
    let daemon = daemon.restart(None).await;
    let client = daemon.client().await;
    let calls = server.seen().requests;
    goes_on(&client, &id, "plan:more steps=1 text=two;").await;
    let log = check_log(&client, &id).await;
    let ended = log.iter().rev().find_map(|event| match &event.body {
        EventBody::TurnFinished(finished) => finished.error.clone(),
        _ => None,
    });
    let error = ended.unwrap();
    assert_eq!(error.class, "workspace_lost", "{error:?}");
    assert!(error.message.contains("workspace.keep"), "{error:?}");
    assert_eq!(server.seen().requests, calls);
}

#[tokio::test(flavor = "multi_thread")]
async fn i1_i4_i9_the_files_of_a_killed_node_are_on_the_next_one() {
    let Some(mut fleet) = Fleet::with_config("files of a killed node", 2, KEEP).await else {
        return;
    };
    let app = fleet.workdir("app");
    repository(&app);
    let first = fleet.client(0).await;
    let id = worked(
        &first,
        &app,
        "plan:kept steps=2 command=echo_{n}_>>_mine; text=one;",
    )
    .await;
    let before = check_log(&first, &id).await;
    let was = first.get(&id).await.unwrap().workdir;
    fleet.nodes[0].kill().await;
    let second = fleet.client(1).await;
    goes_on(
        &second,
        &id,
        "plan:more steps=1 command=echo_3_>>_mine; text=two;",
    )
    .await;
    let log = check_log(&second, &id).await;
    assert_eq!(log[..before.len()], before[..], "I1");
    let now = second.get(&id).await.unwrap().workdir;
    assert_ne!(was, now);
    assert!(Path::new(&now).starts_with(fleet.nodes[1].data_dir()), "{now}");
    assert_eq!(
        (read(&now, "mine").as_str(), read(&was, "mine").as_str()),
        ("0.0\n1.0\n3\n", "0.0\n1.0\n")
    );
    assert_eq!(restored(&log).len(), 1, "{log:?}");
}
