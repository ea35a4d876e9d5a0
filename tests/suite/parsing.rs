//! Source files are parsed by the helper, in a process of its own: RepoMap, and the map in a prompt.

use crate::YOLO;
use crate::played::{daemon, model, results, session};
use agentd_protocol::{Block, EndReason, SendParams, ToolStatus};
use agentd_tests::fault_server::Say;
use agentd_tests::{Daemon, Follower, check_log, found, signal, working_in};
use serde_json::json;
use std::collections::BTreeSet;
use std::path::PathBuf;

/// Files of the tree: parsing them takes long enough to find the helper.
const FILES: usize = 20;

fn tree(daemon: &Daemon) {
    let dir = PathBuf::from(daemon.workdir("project"));
    for n in 0..FILES {
        let body = (0..700).map(|m| format!("pub fn part_{m}(a: usize) -> usize {{ a + {m} }}\n"));
        let text = format!("pub fn file_{n}() {{}}\n{}", body.collect::<String>());
        std::fs::write(dir.join(format!("f{n}.rs")), text).unwrap();
    }
}

/// The helpers of a daemon that run now.
fn helpers(daemon: &Daemon) -> BTreeSet<u32> {
    let is_helper = |pid: &u32| {
        let name = std::fs::read_to_string(format!("/proc/{pid}/comm"));
        name.is_ok_and(|name| name.trim_end() == "agentd-tags")
    };
    let dir = daemon.data_dir().join("parsing");
    working_in(&dir).into_iter().filter(is_helper).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn i6_a_map_is_made_by_a_helper_whose_death_costs_only_the_map() {
    let server = model(|_, step| match step {
        0 | 2 => Say::call("RepoMap", json!({ "tokens": 30_000, "names": ["file_7"] })),
        _ => Say::text("done"),
    })
    .await;
    let daemon = daemon(&server, YOLO).await;
    let client = daemon.client().await;
    tree(&daemon);
    let session = session(&daemon, &client, "map it").await;
    let mut follower = Follower::attach(&client, &session).await;
    // Each helper that is seen is killed, until agentd gives up or the map is made.
    let mut killed = BTreeSet::new();
    let kill = found("the helper runs", async || {
        for pid in helpers(&daemon) {
            signal(pid, rustix::process::Signal::KILL);
            killed.insert(pid);
        }
        (!killed.is_empty()).then_some(())
    });
    kill.await;
    assert_eq!(follower.turn_finished(1).await.reason, EndReason::Completed);
    let first = results(&check_log(&client, &session).await).remove(0);
    assert_eq!(first.0, ToolStatus::Ok, "{}", first.1);
    // The daemon works on, and the next map has what this one lacks.
    let again = SendParams {
        session: session.clone(),
        content: vec![Block::text("again")],
        ..SendParams::default()
    };
    client.send(&again).await.unwrap();
    assert_eq!(follower.turn_finished(2).await.reason, EndReason::Completed);
    let (status, text) = results(&check_log(&client, &session).await).remove(1);
    assert_eq!(status, ToolStatus::Ok, "{text}");
    let shown = text.matches("pub fn file_").count();
    assert!(shown > 0 && text.contains("pub fn part_"), "{text}");
    found("no helper outlives its map", async || {
        helpers(&daemon).is_empty().then_some(())
    })
    .await;
}
