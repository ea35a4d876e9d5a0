//! Tests of guarantees that only the SQLite backend gives.

use crate::open;
use crate::schema::migrate;
use crate::tests::kit::{Kit, summary};
use agentd_protocol::{AppendId, SessionId, Timestamp};
use agentd_store::{Append, Backend, Blob, Options, Outcome, Purpose, Range, StoreError};
use rusqlite::Connection;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;

fn reopen(dir: &Path) -> Arc<dyn Backend> {
    open("sqlite:agentd.db", dir, Options::default()).unwrap()
}

async fn seqs(log: &dyn Backend, session: SessionId) -> Vec<u64> {
    let page = log.load(session, Range::default()).await.unwrap();
    page.events.into_iter().map(|(seq, _)| seq).collect()
}

/// Copies the current database and its log.
fn copy(from: &Path, to: &Path) -> Vec<u8> {
    std::fs::copy(from.join("agentd.db"), to.join("agentd.db")).unwrap();
    std::fs::read(from.join("agentd.db-wal")).unwrap()
}

#[tokio::test]
async fn i1_a_reopened_store_has_all_that_was_acknowledged() {
    let kit = Kit::sqlite();
    let session = kit.created(2).await;
    for step in 1..=20 {
        assert!(kit.commits(kit.more(session, 1, step * 2, 2)).await);
    }
    let crashed = tempfile::tempdir().unwrap();
    let wal = copy(kit.dir(), crashed.path());
    std::fs::write(crashed.path().join("agentd.db-wal"), wal).unwrap();
    assert_eq!(
        seqs(&*reopen(crashed.path()), session).await,
        (1..=42).collect::<Vec<_>>()
    );
}

#[tokio::test]
async fn i1_a_torn_end_of_the_write_ahead_log_opens_as_a_committed_prefix() {
    let kit = Kit::sqlite();
    let session = kit.created(1).await;
    let fresh = tempfile::tempdir().unwrap();
    let least = copy(kit.dir(), fresh.path()).len();
    for step in 0..10 {
        assert!(kit.commits(kit.more(session, 1, 1 + step * 3, 3)).await);
    }
    let whole = copy(kit.dir(), fresh.path());
    let mut lengths = std::collections::BTreeSet::new();
    for cut in (least..whole.len()).step_by((whole.len() - least) / 23) {
        for flip in [false, true] {
            let torn = tempfile::tempdir().unwrap();
            std::fs::copy(fresh.path().join("agentd.db"), torn.path().join("agentd.db")).unwrap();
            let mut wal = whole.clone();
            if flip {
                wal[cut] ^= 0x40;
            } else {
                wal.truncate(cut);
            }
            std::fs::write(torn.path().join("agentd.db-wal"), wal).unwrap();
            let log = reopen(torn.path());
            let found = seqs(&*log, session).await;
            assert_eq!(found, (1..=found.len() as u64).collect::<Vec<_>>());
            assert_eq!(found.len() % 3, 1, "an append is there whole or not at all");
            assert_eq!(log.check().await.unwrap().problems, Vec::<String>::new());
            lengths.insert(found.len());
        }
    }
    assert!(
        lengths.len() > 3,
        "the cuts must hit different appends: {lengths:?}"
    );
}

#[tokio::test]
async fn a_closed_store_can_be_opened_by_another_at_once() {
    let kit = Kit::sqlite();
    let session = kit.created(3).await;
    kit.log.close().await.unwrap();
    assert_eq!(seqs(&*reopen(kit.dir()), session).await, [1, 2, 3]);
}

#[tokio::test]
async fn i9_a_second_open_is_refused_and_names_the_process() {
    let kit = Kit::sqlite();
    let Err(error) = open("sqlite:agentd.db", kit.dir(), Options::default()) else {
        panic!("opened twice")
    };
    let lock = kit.dir().join("agentd.lock");
    let (path, pid) = (lock.display(), std::process::id());
    assert_eq!(
        error.to_string(),
        format!(
            "the store at {path} is in use by process {pid}; stop it, or start this one with another --data-dir"
        )
    );
    let elsewhere = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", elsewhere.path().join("x.db").display());
    let _held = open(&url, kit.dir().join("a").as_path(), Options::default()).unwrap();
    let second = open(&url, kit.dir().join("b").as_path(), Options::default());
    assert!(matches!(second, Err(StoreError::InUse { .. })));
}

#[test]
fn a_store_in_use_names_the_socket_of_its_daemon() {
    let dir = tempfile::tempdir().unwrap();
    let options = Options {
        address: "/run/x.sock".to_owned(),
        ..Options::default()
    };
    let _held = open("sqlite:agentd.db", dir.path(), options).unwrap();
    let error = open("sqlite:agentd.db", dir.path(), Options::default()).unwrap_err();
    let pid = std::process::id();
    for part in [
        format!("in use by process {pid}, an agentd that listens on /run/x.sock"),
        "agentctl --socket /run/x.sock ps".to_owned(),
        "another --data-dir".to_owned(),
    ] {
        assert!(error.to_string().contains(&part), "{error}");
    }
}

#[tokio::test]
async fn only_we_can_look_into_the_files() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let log = reopen(&data);
    let session = SessionId::from_parts(1, [1; 10]);
    let mut append = Append::new(session, 1, 0, AppendId::from_parts(1, [2; 10]));
    append.blobs = vec![Blob::new(vec![3; 300 * 1024].into())];
    log.append(append).await;
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let modes = [
        "",
        "agentd.db",
        "agentd.db-wal",
        "agentd.db-shm",
        "agentd.lock",
        "blobs",
    ]
    .map(|name| mode(&data.join(name)));
    assert_eq!(modes, [0o700, 0o600, 0o600, 0o600, 0o600, 0o700]);
}

/// Brings a database back to version 7, in which most rows had no checksums.
pub(crate) const WITHOUT_SUMS: &str =
    "ALTER TABLE session DROP COLUMN own_sum; ALTER TABLE session DROP COLUMN head_sum;
     ALTER TABLE blob_use DROP COLUMN sum; ALTER TABLE idempotency DROP COLUMN sum; ALTER TABLE charge DROP COLUMN sum;
     ALTER TABLE spent DROP COLUMN sum; ALTER TABLE token DROP COLUMN sum; PRAGMA user_version=7;";

#[test]
fn a_store_of_a_newer_version_is_refused_untouched() {
    let dir = tempfile::tempdir().unwrap();
    drop(reopen(dir.path()));
    let file = dir.path().join("agentd.db");
    Connection::open(&file)
        .unwrap()
        .execute_batch("PRAGMA user_version=99")
        .unwrap();
    let refused = open("sqlite:agentd.db", dir.path(), Options::default());
    assert!(
        matches!(refused, Err(StoreError::NewerVersion { found: 99, known: 8 })),
        "{refused:?}"
    );
}

#[test]
fn a_database_or_file_of_something_else_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let foreign = |url| {
        matches!(
            open(url, dir.path(), Options::default()),
            Err(StoreError::Foreign { .. })
        )
    };
    Connection::open(dir.path().join("a.db"))
        .unwrap()
        .execute_batch("CREATE TABLE t(x)")
        .unwrap();
    assert!(foreign("sqlite:a.db"));
    std::fs::write(
        dir.path().join("b.db"),
        "this is a text file, and a rather long one".repeat(50),
    )
    .unwrap();
    assert!(foreign("sqlite:b.db"));
}

#[test]
fn migrations_run_once_and_in_order() {
    let mut connection = Connection::open_in_memory().unwrap();
    let steps = [
        "CREATE TABLE t(x)",
        "INSERT INTO t VALUES (1)",
        "UPDATE t SET x = x + 1",
    ];
    migrate(&mut connection, &steps[..2]).unwrap();
    migrate(&mut connection, &steps).unwrap();
    migrate(&mut connection, &steps).unwrap();
    let x: i64 = connection
        .query_row("SELECT x FROM t", [], |row| row.get(0))
        .unwrap();
    assert_eq!(x, 2);
    let broken = migrate(
        &mut connection,
        &[steps[0], steps[1], steps[2], "UPDATE t SET x = 9; nonsense"],
    );
    assert!(broken.is_err());
    let now: (i64, i64) = (
        connection
            .query_row("PRAGMA user_version", [], |row| row.get(0))
            .unwrap(),
        connection
            .query_row("SELECT x FROM t", [], |row| row.get(0))
            .unwrap(),
    );
    assert_eq!(now, (3, 2));
}

#[tokio::test]
async fn what_deleted_sessions_spent_outlives_restarts_and_a_store_of_the_first_version_is_taken_over() {
    let dir = tempfile::tempdir().unwrap();
    let spent_one = |log: &Arc<dyn Backend>, n: u8| {
        let log = Arc::clone(log);
        let session = SessionId::from_parts(n.into(), [n; 10]);
        let mut append = Append::new(session, 1, 0, AppendId::from_parts(n.into(), [n; 10]));
        let mut summary = summary(session, "one");
        (summary.steps, summary.usage.output, summary.cost_usd) = (2, 50, 0.25);
        append.summary = Some(summary);
        async move {
            assert!(matches!(log.append(append).await, Outcome::Committed { .. }));
            assert!(log.delete(session).await.unwrap());
        }
    };
    let log = reopen(dir.path());
    spent_one(&log, 1).await;
    drop(log);
    // As the first version left it: a tombstone, and no sums.
    Connection::open(dir.path().join("agentd.db"))
        .unwrap()
        .execute_batch(&format!(
            "{WITHOUT_SUMS} DROP TABLE token; DROP TABLE spent; ALTER TABLE event DROP COLUMN sum;
             ALTER TABLE session DROP COLUMN row_sum; PRAGMA user_version=1"
        ))
        .unwrap();
    for n in 2..4 {
        let log = reopen(dir.path());
        spent_one(&log, n).await;
        log.purge(Timestamp(u64::MAX)).await.unwrap();
        drop(log);
        let sums = reopen(dir.path()).spent().await.unwrap();
        let seen: Vec<_> = sums
            .iter()
            .map(|sum| (sum.sessions, sum.steps, sum.usage.output, sum.cost_usd))
            .collect();
        let count = u64::from(n);
        assert_eq!(seen, [(count, 2 * count, 50 * count, 0.25 * f64::from(n))]);
    }
}

#[tokio::test]
async fn i7_a_line_that_changed_on_the_disk_is_named_and_the_others_are_as_they_were() {
    let kit = Kit::sqlite();
    let (changed, sound) = (kit.created(4).await, kit.created(2).await);
    kit.log.close().await.unwrap();
    let file = rusqlite::Connection::open(kit.dir().join("agentd.db")).unwrap();
    let sql = "UPDATE event SET body = replace(body, '1', '2') WHERE seq = 3";
    assert_eq!(file.execute(sql, []).unwrap(), 1);
    drop(file);
    let log = reopen(kit.dir());
    let damaged = async |session| log.load(session, Range::default()).await.unwrap().damaged;
    assert_eq!((damaged(changed).await, damaged(sound).await), (Some(3), None));
    let problems = log.check().await.unwrap().problems;
    assert!(
        matches!(problems.as_slice(), [one] if one.ends_with("event 3 do not match what was written")),
        "{problems:?}"
    );
}

#[tokio::test]
async fn lines_that_are_older_than_their_sums_are_read_as_before() {
    let kit = Kit::sqlite();
    let session = kit.created(2).await;
    kit.log.close().await.unwrap();
    let file = rusqlite::Connection::open(kit.dir().join("agentd.db")).unwrap();
    // As the second version left it.
    file.execute_batch(&format!(
        "{WITHOUT_SUMS} DROP TABLE token; ALTER TABLE spent DROP COLUMN cache_write_1h;
         ALTER TABLE event DROP COLUMN sum; ALTER TABLE session DROP COLUMN row_sum; PRAGMA user_version=2;"
    ))
    .unwrap();
    drop(file);
    let log = reopen(kit.dir());
    let page = log.load(session, Range::default()).await.unwrap();
    assert_eq!((page.events.len(), page.damaged), (2, None));
    assert_eq!(log.check().await.unwrap().problems, Vec::<String>::new());
}

#[test]
fn urls_say_what_is_wrong_with_them() {
    let dir = tempfile::tempdir().unwrap();
    let refusal = |url| {
        open(url, dir.path(), Options::default())
            .map(|_| ())
            .unwrap_err()
            .to_string()
    };
    assert_eq!(
        refusal("postgres://db/agentd"),
        "store.url: postgres is a database server, which cannot be used here; use sqlite:PATH or memory:"
    );
    assert_eq!(
        refusal("agentd.db"),
        "store.url \"agentd.db\" is invalid; use sqlite:PATH or memory:"
    );
    assert_eq!(
        refusal("sqlite:"),
        "store.url \"sqlite:\" is invalid; use sqlite:PATH or memory:"
    );
    assert!(open("memory:", dir.path(), Options::default()).is_ok());
}

#[tokio::test]
async fn a_full_store_refuses_appends_serves_reads_and_recovers() {
    let kit = Kit::sqlite_with(1024 * 1024);
    let (ballast, session) = (kit.created(1).await, kit.created(1).await);
    let mut head = 1;
    let full = loop {
        let append = kit.more(ballast, 1, head, 200);
        match kit.log.append(append.clone()).await {
            Outcome::Committed { head: now, .. } => head = now,
            outcome => break outcome,
        }
        assert!(head < 100_000);
    };
    assert_eq!(full, Outcome::Full);
    assert_eq!(seqs(&*kit.log, ballast).await.len() as u64, head);
    assert_eq!(*kit.log.fatal().borrow(), None);
    let late = kit.more(session, 1, 1, 200);
    assert_eq!(kit.log.append(late.clone()).await, Outcome::Full);
    assert!(kit.log.delete(ballast).await.unwrap());
    kit.pass(1);
    // The newest event keeps its session until there is a newer one.
    assert_eq!(kit.log.purge(kit.now()).await.unwrap(), 0);
    assert!(kit.commits(kit.more(session, 1, 1, 1)).await);
    assert_eq!(kit.log.purge(kit.now()).await.unwrap(), 1);
    assert!(kit.commits(kit.more(session, 1, 2, 200)).await);
}

#[tokio::test]
async fn i6_one_refused_change_does_not_cost_the_others_of_its_batch_theirs() {
    let kit = Kit::sqlite();
    let (bad, good) = (kit.session(), kit.session());
    let mut broken = kit.create(bad, "bad", 2);
    broken.charges.push(agentd_store::Charge {
        account: "a".to_owned(),
        tokens: u64::MAX,
        micro_usd: 1,
    });
    assert!(kit.commits(broken).await);
    let overflow = {
        let mut append = kit.more(bad, 1, 2, 1);
        append.charges.push(agentd_store::Charge {
            account: "a".to_owned(),
            tokens: u64::MAX,
            micro_usd: 1,
        });
        append
    };
    let (refused, fine) = tokio::join!(
        kit.log.append(overflow),
        kit.log.append(kit.create(good, "good", 2))
    );
    assert!(matches!(refused, Outcome::Failed(_)), "{refused:?}");
    assert!(matches!(fine, Outcome::Committed { head: 2, .. }), "{fine:?}");
    assert_eq!(*kit.log.fatal().borrow(), None);
}

#[tokio::test]
async fn a_large_blob_is_a_file_that_goes_with_its_last_session() {
    let kit = Kit::sqlite();
    let session = kit.session();
    let mut append = kit.create(session, "large", 1);
    append.blobs = vec![agentd_store::Blob::new(vec![9; 300 * 1024].into())];
    let name = append.blobs[0].name().to_owned();
    let file = kit.dir().join("blobs").join(&name[..2]).join(&name);
    assert!(kit.commits(append).await);
    assert_eq!(std::fs::read(&file).unwrap().len(), 300 * 1024);
    assert_eq!(
        std::fs::read_dir(kit.dir().join("blobs")).unwrap().count(),
        1,
        "no draft is left"
    );
    assert!(kit.log.delete(session).await.unwrap());
    kit.created(1).await;
    kit.pass(1);
    assert_eq!(kit.log.purge(kit.now()).await.unwrap(), 1);
    assert!(!file.exists());
}

#[test]
fn a_path_that_is_a_directory_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("agentd.db")).unwrap();
    let refused = open("sqlite:agentd.db", dir.path(), Options::default());
    assert!(matches!(refused, Err(StoreError::Io { .. })), "{refused:?}");
}

#[tokio::test]
async fn a_daemon_with_another_data_directory_keeps_a_migration_away_from_its_file() {
    let [own, other] = std::array::from_fn(|_| tempfile::tempdir().unwrap());
    let url = format!("sqlite:{}", other.path().join("agentd.db").display());
    let daemon = open(&url, own.path(), Options::default()).unwrap();
    let migration = || {
        let options = Options {
            purpose: Purpose::Source,
            ..Options::default()
        };
        open(&url, other.path(), options)
    };
    let refused = migration().map(drop).unwrap_err();
    assert!(matches!(refused, StoreError::InUse { .. }), "{refused}");
    daemon.close().await.unwrap();
    migration().unwrap().close().await.unwrap();
}
