//! Another process deletes, replaces or cuts the database or its log. A running daemon acknowledges nothing into files
//! that are lost; at its start, it must not take a shorter history for the whole one (I1). docs/faults.md has
//! these rows.

use crate::{YOLO, daemon, session};
use agentd_bench::model_server::ModelServer;
use agentd_protocol::{Block, SendParams};
use agentd_tests::{Daemon, Follower, check_log, eventually, within};
use std::fs;
use std::path::Path;

/// Damages a file.
type Harm = fn(&Path);

const HARMS: [(&str, Harm); 3] = [
    ("was deleted", |path| fs::remove_file(path).unwrap()),
    ("was replaced", |path| {
        let copy = path.with_extension("copy");
        fs::copy(path, &copy).unwrap();
        fs::rename(&copy, path).unwrap();
    }),
    ("was truncated", |path| {
        fs::File::options()
            .write(true)
            .open(path)
            .unwrap()
            .set_len(512)
            .unwrap();
    }),
];

#[tokio::test(flavor = "multi_thread")]
async fn i1_nothing_is_acknowledged_when_the_database_or_its_log_is_lost() {
    let server = ModelServer::start(false).await.unwrap();
    for file in ["agentd.db", "agentd.db-wal"] {
        for (words, harm) in HARMS {
            let mut daemon = daemon(&server, YOLO).await;
            one(&mut daemon, file, words, harm).await;
        }
    }
}

async fn one(daemon: &mut Daemon, file: &str, words: &str, harm: Harm) {
    let client = daemon.client().await;
    let session = session(daemon, &client, "plan:lost steps=1;").await;
    Follower::attach(&client, &session).await.turn_finished(1).await;
    let again = SendParams {
        session: session.clone(),
        content: vec![Block::text("again")],
        ..SendParams::default()
    };
    // The control: it works before.
    client.send(&again).await.unwrap();
    Follower::attach(&client, &session).await.turn_finished(2).await;
    harm(&daemon.data_dir().join(file));
    let answer = within("the input is answered", client.send(&again)).await;
    assert!(answer.is_err(), "{file} {words}: {answer:?}");
    let end = within("the daemon ends", daemon.ended()).await;
    let said = daemon.said();
    assert!(!end.success(), "{file} {words}: {said}");
    assert!(
        said.contains(file) && said.contains(words),
        "{file} {words}: {said}"
    );
}

/// Ends the daemon by kill -9, so that the log is not merged into the database, and removes files of its data directory.
async fn killed_without(daemon: &mut Daemon, files: &[&str]) {
    daemon.kill().await;
    for file in files {
        fs::remove_file(daemon.data_dir().join(file)).unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn i1_a_start_with_a_lost_log_is_refused_until_an_operator_accepts_it() {
    let server = ModelServer::start(false).await.unwrap();
    // With the witness gone, too, only the audit file records the events.
    for (files, says) in [
        (&["agentd.db-wal"][..], " is missing ("),
        (
            &["agentd.db", "agentd.db-wal", "agentd.db.witness"][..],
            "audit.jsonl contains event ",
        ),
    ] {
        let mut first = daemon(&server, YOLO).await;
        let client = first.client().await;
        let lost = session(&first, &client, "plan:lost steps=1 command=true;").await;
        Follower::attach(&client, &lost).await.turn_finished(1).await;
        let audit = first.data_dir().join("logs/audit.jsonl");
        let audited = || fs::read_to_string(&audit).unwrap_or_default();
        eventually("the audit has the end of the turn", || {
            audited().contains("turn.finished")
        })
        .await;
        drop(client);
        killed_without(&mut first, files).await;
        let mut refused = first.again();
        assert!(!within("it does not start", refused.ended()).await.success());
        let said = refused.said();
        assert!(
            said.contains(says) && said.contains("--accept-loss"),
            "{files:?}: {said}"
        );
        let mut second = first.again_with(&["--accept-loss"]);
        assert!(second.ready_or_over().await, "{}", second.said());
        let client = second.client().await;
        assert!(client.get(&lost).await.is_err(), "it cannot have come back");
        let next = session(&second, &client, "plan:next steps=1 command=true;").await;
        Follower::attach(&client, &next).await.turn_finished(1).await;
        check_log(&client, &next).await;
        let turns = || audited().matches("turn.finished").count();
        eventually("the audit has what follows", || turns() == 2).await;
        let line = audited();
        let accepted = line
            .lines()
            .find(|line| line.contains("store.loss_accepted"))
            .unwrap();
        assert!(accepted.contains("--accept-loss"), "{accepted}");
        let verified = second.agentctl(&["audit", "verify"]).await;
        assert_eq!(verified.code, Some(0), "{}{}", verified.stdout, verified.stderr);
        drop(client);
        second.kill().await;
        let third = second.restart(None).await;
        assert!(
            third.client().await.get(&next).await.is_ok(),
            "it is accepted once, not for good"
        );
    }
}
