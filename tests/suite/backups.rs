//! A backup of a busy daemon, and the data directory restored from it.

use crate::commands::ctl;
use crate::{YOLO, daemon, session};
use agentd_bench::model_server::ModelServer;
use agentd_client::Client;
use agentd_protocol::{EventBody, ExportParams, ListParams, RunState, Seq};
use agentd_tests::{Daemon, DaemonOptions, Follower, check_log, eventually, within};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const SESSIONS: usize = 8;

fn options(server: &ModelServer) -> DaemonOptions {
    DaemonOptions {
        model_url: Some(server.url()),
        config: format!("{YOLO}[log]\naudit = true\nmax_bytes = 65536\n"),
        ..DaemonOptions::default()
    }
}

fn fresh() -> Arc<tempfile::TempDir> {
    Arc::new(tempfile::tempdir().unwrap())
}

/// Runs `agentd restore` on the data directory `data` below `dir`; returns its exit code and its output.
async fn restore(dir: &Arc<tempfile::TempDir>, file: &Path, more: &[&str]) -> (Option<i32>, String) {
    let file = file.to_string_lossy().into_owned();
    let args = ["restore", &file].into_iter().chain(more.iter().copied());
    let options = DaemonOptions {
        args: args.map(str::to_owned).collect(),
        ..DaemonOptions::default()
    };
    let mut run = Daemon::launch(Arc::clone(dir), options);
    let ended = within("the restoration ends", run.ended()).await;
    (ended.code(), run.said())
}

async fn heads(client: &Client) -> BTreeMap<String, Seq> {
    let all = ListParams {
        all: true,
        ..ListParams::default()
    };
    let rows = client.list(&all).await.unwrap();
    rows.iter()
        .map(|row| (row.session.to_string(), row.seq))
        .collect()
}

async fn lines(client: &Client, session: &str) -> Vec<String> {
    let params = ExportParams {
        session: session.to_owned(),
        ..ExportParams::default()
    };
    client.export(&params).await.unwrap().lines
}

/// The backup finds it at work.
fn busy(n: usize) -> String {
    format!("plan:w{n} steps=30 first=300 command=echo_hi;")
}

/// Makes backups until the log of a session has grown during one: a backup may fit between two steps. Returns the heads
/// before that backup, and its file.
async fn backup_under_load(
    daemon: &Daemon,
    client: &Client,
    working: &[String],
) -> (BTreeMap<String, Seq>, PathBuf) {
    let mut made = 0;
    loop {
        let before = heads(client).await;
        let file = daemon.dir.path().join(format!("{made}.backup"));
        ctl(daemon, &["backup", &file.to_string_lossy()], 0).await;
        let after = heads(client).await;
        if working.iter().any(|id| before.get(id) < after.get(id)) {
            return (before, file);
        }
        let rows = client.list(&ListParams::default()).await.unwrap();
        assert!(
            rows.iter().any(|row| row.status.state != RunState::Idle),
            "all sessions had finished before a backup met one at work: {rows:?}"
        );
        made += 1;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn i1_i2_i3_a_backup_under_load_is_restored_and_its_sessions_go_on() {
    let server = ModelServer::start(false).await.unwrap();
    let mut first = Daemon::start(options(&server)).await;
    let client = first.client().await;
    // One with a result that is stored as a file next to the database.
    let large = session(&first, &client, "plan:large steps=1 command=seq_1_300000;").await;
    Follower::attach(&client, &large).await.turn_finished(1).await;
    let mut working = Vec::new();
    for n in 0..SESSIONS {
        working.push(session(&first, &client, &busy(n)).await);
    }
    for id in &working {
        let mut follower = Follower::attach(&client, id).await;
        follower
            .until("a result", |body| matches!(body, EventBody::ToolFinished(_)))
            .await;
    }
    let (before, file) = backup_under_load(&first, &client, &working).await;
    first.kill().await;
    assert!(
        !first
            .data_dir()
            .join("backup")
            .read_dir()
            .is_ok_and(|mut left| left.next().is_some())
    );

    let dir = fresh();
    let (code, said) = restore(&dir, &file, &[]).await;
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("restored 9 sessions"), "{said}");
    assert!(!said.contains("damaged"), "{said}");
    let second = Daemon::start_in(dir, options(&server)).await;
    let client = second.client().await;
    for (id, head) in &before {
        let mut follower = Follower::attach(&client, id).await;
        follower.turn_finished(1).await;
        // Complete, including everything acknowledged before the backup.
        check_log(&client, id).await;
        let head = usize::try_from(*head).unwrap();
        assert!(lines(&client, id).await.len() >= head, "{id}");
    }
    let (exported, name) = (ctl(&second, &["export", &large], 0).await, "{\"blob\":");
    assert!(exported.lines().any(|line| line.starts_with(name)));
    let found = client.check_store().await.unwrap();
    assert_eq!(found["problems"], serde_json::json!([]));
    let audit = second.data_dir().join("logs/audit.jsonl");
    eventually("the audit file has the restoration and the ends", || {
        let files = audited(audit.parent().unwrap());
        files.contains("store.restored") && files.matches("turn.finished").count() >= before.len()
    })
    .await;
    ctl(&second, &["audit", "verify"], 0).await;
}

/// The audit files of a directory, as text.
fn audited(dir: &Path) -> String {
    use std::io::Read as _;
    let mut text = String::new();
    for file in agentd_audit::files(dir).unwrap() {
        let _ = agentd_audit::open(&file).unwrap().read_to_string(&mut text);
    }
    text
}

#[tokio::test(flavor = "multi_thread")]
async fn i1_a_restoration_that_is_refused_changes_nothing() {
    let server = ModelServer::start(false).await.unwrap();
    let mut first = daemon(&server, YOLO).await;
    let client = first.client().await;
    let id = session(&first, &client, "plan:one steps=1;").await;
    Follower::attach(&client, &id).await.turn_finished(1).await;
    let file = first.dir.path().join("the.backup");
    let name = file.to_string_lossy().into_owned();
    ctl(&first, &["backup", &name], 0).await;
    let again = first.agentctl(&["backup", &name]).await;
    assert!(
        again.code == Some(2) && again.stderr.contains("--force"),
        "{}",
        again.stderr
    );
    ctl(&first, &["backup", &name, "--force"], 0).await;
    // A daemon uses the directory, even if its content is to be replaced.
    let (code, said) = restore(&first.dir, &file, &["--replace"]).await;
    assert_eq!(code, Some(69), "{said}");
    let good = fs::read(&file).unwrap();
    let bad = first.dir.path().join("bad");
    let place = good.windows(7).position(|part| part == b"session").unwrap();
    let mut changed = good.clone();
    changed[place] ^= 1;
    for (bytes, says) in [
        (&changed[..], "does not match the file list of the backup"),
        (&good[..good.len() / 1_024 * 512], "the.backup"),
        (&good[..512 * 3], ""),
        (b"words", ""),
    ] {
        fs::write(&bad, bytes).unwrap();
        let dir = fresh();
        let (code, said) = restore(&dir, &bad, &[]).await;
        assert_eq!(code, Some(1), "{said}");
        assert!(says == "the.backup" || said.contains(says), "{said}");
        let left: Vec<_> = fs::read_dir(dir.path())
            .unwrap()
            .map(|it| it.unwrap().file_name())
            .collect();
        assert!(
            !left
                .iter()
                .any(|name| name == "data" || name.to_string_lossy().starts_with('.')),
            "{left:?}"
        );
    }
    first.kill().await;
    let untouched = fs::read(first.data_dir().join("agentd.db")).unwrap();
    let (code, said) = restore(&first.dir, &file, &[]).await;
    assert!(code == Some(1) && said.contains("--replace"), "{said}");
    assert_eq!(fs::read(first.data_dir().join("agentd.db")).unwrap(), untouched);
    let (code, said) = restore(&first.dir, &file, &["--replace"]).await;
    assert_eq!(code, Some(0), "{said}");
    let aside = said.split("is in ").nth(1).unwrap().lines().next().unwrap();
    assert_eq!(fs::read(Path::new(aside).join("agentd.db")).unwrap(), untouched);
    for private in [first.data_dir(), first.data_dir().join("agentd.db"), file] {
        let mode = fs::metadata(&private).unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "{private:?} is for its owner alone: {mode:o}");
    }
    let second = first.restart(None).await;
    check_log(&second.client().await, &id).await;
}
