//! Tests of complete nodes with a store on disk.

use super::world::{LONG, ask, assert_gap_free, attempts, creation, events, kinds, until};
use crate::node::{Ended, Node, NodeArgs};
use crate::paths::{Paths, Surroundings};
use agentd_actor_kit::Clock;
use agentd_protocol::SessionId;
use agentd_settings::{Sources, load};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

/// A node in `dir` whose only model gives one answer, after this many milliseconds.
pub(super) async fn node(dir: &Path, delay_ms: u32) -> Node {
    let script = dir.join("script.toml");
    std::fs::write(
        &script,
        format!("[[turn]]\ntext = \"done\"\ndelay_ms = {delay_ms}\n"),
    )
    .unwrap();
    let config = format!(
        "[model]\ndefault = \"slow\"\n[models.slow]\nprovider = \"scripted\"\nmodel = {script:?}\n\
         [node]\ndrain_timeout = \"100ms\"\n"
    );
    let file = dir.join("config.toml");
    std::fs::write(&file, config).unwrap();
    let sources = Sources {
        file: Some(file),
        ..Sources::default()
    };
    let paths = Paths::choose(&Surroundings::default(), Some(&dir.join("data")), None).unwrap();
    paths.create().unwrap();
    let args = NodeArgs {
        accept_loss: false,
        sources: agentd_settings::Sources::default(),
        loaded: load(&sources).unwrap(),
        environment: BTreeMap::new(),
        paths,
        demo: None,
    };
    Node::start(args).await.unwrap()
}

async fn begin(node: &Node, dir: &Path) -> SessionId {
    let session = Clock::System.stamp().session();
    let created = ask(&node.handles.supervisor, session, creation(dir, "slow", "go")).await;
    created.unwrap().unwrap();
    until(&*node.backend, session, "model.started").await;
    session
}

#[tokio::test]
async fn i1_a_drain_ends_at_its_deadline_and_the_next_node_continues_the_turn() {
    let dir = tempfile::tempdir().unwrap();
    let first = node(dir.path(), 3_600_000).await;
    let session = begin(&first, dir.path()).await;
    let began = Instant::now();
    first.drain().await;
    // The model takes an hour: that the drain ended at all shows its deadline.
    assert!(began.elapsed() >= Duration::from_millis(100), "it did not wait");
    first.stop().await;
    let second = node(dir.path(), 0).await;
    until(&*second.backend, session, "turn.finished").await;
    let events = events(&*second.backend, session).await;
    assert_gap_free(&events);
    assert_eq!(attempts(&events), [1, 2]);
    assert!(kinds(&events).contains(&"session.recovered"));
    second.stop().await;
}

#[tokio::test]
async fn i1_a_turn_continues_after_a_stop_without_a_drain() {
    let dir = tempfile::tempdir().unwrap();
    let first = node(dir.path(), 3_600_000).await;
    let session = begin(&first, dir.path()).await;
    first.stop().await;
    let second = node(dir.path(), 0).await;
    until(&*second.backend, session, "turn.finished").await;
    assert_eq!(attempts(&events(&*second.backend, session).await), [1, 2]);
    second.stop().await;
}

#[tokio::test]
async fn a_node_whose_root_is_gone_has_failed() {
    let dir = tempfile::tempdir().unwrap();
    let node = node(dir.path(), 0).await;
    node.root.kill();
    let ended = tokio::time::timeout(LONG, node.until_ended(|| ())).await.unwrap();
    assert_eq!(
        ended,
        Ended::Failed("the root of the actor tree has stopped".to_owned())
    );
}

#[test]
fn i7_a_rule_that_contradicts_its_example_is_reported_with_file_and_line() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("config.toml");
    let text = "[permission]\nrules = [\n  { deny = \"Bash(curl:*)\" },\n  { allow = \"Bash(ls)\", examples = { match = [\"ls -l\"] } },\n]\n";
    std::fs::write(&file, text).unwrap();
    let sources = Sources {
        file: Some(file.clone()),
        ..Sources::default()
    };
    let error = crate::check_rules(&load(&sources).unwrap(), &BTreeMap::new()).unwrap_err();
    let expected = format!(
        "{}:4: permission.rules[1]: allow Bash(ls): the rule does not match its example \"ls -l\"",
        file.display()
    );
    assert_eq!((error.to_string(), error.exit_code()), (expected, 2));
}
