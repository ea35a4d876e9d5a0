//! Somebody deletes, replaces or cuts the database or its log while the daemon runs. Nothing may be acknowledged into files
//! that nobody will find again (I1). docs/faults.md has this row.

use crate::{YOLO, daemon, session};
use agentd_bench::model_server::ModelServer;
use agentd_protocol::{Block, SendParams};
use agentd_tests::{Daemon, Follower, within};
use std::fs;
use std::path::Path;

/// Does something bad to a file.
type Harm = fn(&Path);

const HARMS: [(&str, Harm); 3] = [
    ("was deleted", |path| fs::remove_file(path).unwrap()),
    ("was replaced", |path| {
        let copy = path.with_extension("copy");
        fs::copy(path, &copy).unwrap();
        fs::rename(&copy, path).unwrap();
    }),
    ("was cut", |path| {
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
