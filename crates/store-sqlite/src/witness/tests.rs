use super::*;
use crate::tests::kit::Kit;
use agentd_store::{Backend, Options};
use std::sync::Arc;

fn open(dir: &Path, accept_loss: bool) -> Result<Arc<dyn Backend>, StoreError> {
    let options = Options {
        accept_loss,
        ..Options::default()
    };
    crate::open("sqlite:agentd.db", dir, options)
}

/// Copies these files into a directory of their own, as a crash would leave them.
fn copied(from: &Path, names: &[&str]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for name in names {
        fs::copy(from.join(name), dir.path().join(name)).unwrap();
    }
    dir
}

fn lost(result: Result<Arc<dyn Backend>, StoreError>) -> Vec<Loss> {
    match result {
        Err(StoreError::Lost { lost, .. }) => lost,
        other => panic!("it was opened, or failed otherwise: {other:?}"),
    }
}

#[tokio::test]
async fn i1_a_log_that_is_gone_and_an_older_copy_are_refused_until_somebody_accepts_the_loss() {
    let kit = Kit::sqlite();
    let kept = kit.created(2).await;
    let older = copied(kit.dir(), &["agentd.db", "agentd.db-wal"]);
    let shorter = kit.created(3).await;
    assert!(kit.commits(kit.more(kept, 1, 2, 4)).await);
    let here = kit.dir();
    let all = ["agentd.db", "agentd.db-wal", "agentd.db.witness"];
    let gone = |session, had| Loss { session, had, has: 0 };
    // The control: the three files together are intact.
    assert_eq!(open(copied(here, &all).path(), false).unwrap().losses(), []);
    let without_log = copied(here, &["agentd.db", "agentd.db.witness"]);
    assert_eq!(
        lost(open(without_log.path(), false)),
        [gone(kept, 6), gone(shorter, 3)]
    );
    let without_database = copied(here, &["agentd.db.witness"]);
    assert_eq!(lost(open(without_database.path(), false)).len(), 2);
    fs::copy(
        here.join("agentd.db.witness"),
        older.path().join("agentd.db.witness"),
    )
    .unwrap();
    let backwards = Loss {
        session: kept,
        had: 6,
        has: 2,
    };
    let losses = [backwards, gone(shorter, 3)];
    let error = open(older.path(), false).unwrap_err().to_string();
    let says = format!("2 sessions lost events: {kept} has 2 of 6 events, {shorter} is missing (3 events)");
    assert!(
        error.contains(&says) && error.contains("--accept-loss"),
        "{error}"
    );
    assert_eq!(
        lost(open(older.path(), false)),
        losses,
        "a refusal changes nothing"
    );
    let accepted = open(older.path(), true).unwrap();
    assert_eq!(accepted.losses(), losses);
    accepted.close().await.unwrap();
    drop(accepted);
    assert_eq!(open(older.path(), false).unwrap().losses(), [], "once is enough");
}

#[tokio::test]
async fn i1_a_log_that_was_cut_is_refused() {
    let kit = Kit::sqlite();
    for _ in 0..3 {
        kit.created(2).await;
    }
    let cut = copied(kit.dir(), &["agentd.db", "agentd.db-wal", "agentd.db.witness"]);
    let log = OpenOptions::new()
        .write(true)
        .open(cut.path().join("agentd.db-wal"))
        .unwrap();
    log.set_len(log.metadata().unwrap().len() / 2).unwrap();
    assert!(!lost(open(cut.path(), false)).is_empty());
}

#[tokio::test]
async fn a_session_that_was_removed_on_purpose_is_no_loss() {
    let kit = Kit::sqlite();
    let removed = kit.created(3).await;
    let kept = kit.created(1).await;
    assert!(kit.log.delete(removed).await.unwrap());
    kit.pass(1_000);
    assert_eq!(kit.log.purge(kit.now()).await.unwrap(), 1);
    let files = ["agentd.db", "agentd.db-wal", "agentd.db.witness"];
    let dir = copied(kit.dir(), &files);
    let log = open(dir.path(), false).unwrap();
    assert!(log.row(removed).await.unwrap().is_none());
    assert_eq!(log.row(kept).await.unwrap().unwrap().head, 1);
}

#[tokio::test]
async fn a_witness_that_is_missing_is_made_and_a_damaged_record_is_skipped() {
    let kit = Kit::sqlite();
    let session = kit.created(5).await;
    let dir = copied(kit.dir(), &["agentd.db", "agentd.db-wal"]);
    let store = open(dir.path(), false).unwrap();
    let warnings = store.check().await.unwrap().warnings;
    assert!(
        warnings[0].contains("agentd.db.witness was missing"),
        "{warnings:?}"
    );
    drop(store);
    // The control: now it is there.
    let store = open(dir.path(), false).unwrap();
    assert_eq!(store.check().await.unwrap().warnings, Vec::<String>::new());
    drop(store);
    let path = dir.path().join("agentd.db.witness");
    let whole = fs::read(&path).unwrap();
    assert_eq!(whole.len(), RECORD);
    fs::remove_file(dir.path().join("agentd.db")).unwrap();
    assert_eq!(lost(open(dir.path(), false))[0].session, session);
    // The effect of a power loss on a record that was not synced.
    for damage in [vec![0; RECORD], whole[..RECORD - 1].to_vec(), Vec::new()] {
        fs::write(&path, damage).unwrap();
        drop(open(dir.path(), false).unwrap());
    }
}

#[test]
fn it_is_written_anew_with_one_record_for_each_session() {
    let dir = tempfile::tempdir().unwrap();
    let database = dir.path().join("a.db");
    let connection = Connection::open(&database).unwrap();
    connection
        .execute_batch(
            "CREATE TABLE session(uid TEXT, head INTEGER); CREATE TABLE event(cursor INTEGER PRIMARY KEY)",
        )
        .unwrap();
    let (mut witness, _) = Witness::open(&database, &connection, false, &BTreeSet::new()).unwrap();
    witness.compact_at = 100 * RECORD as u64;
    let session = |n| SessionId::from_parts(n, [7; 10]);
    let at = |cursor: u64| Head {
        cursor,
        session: session(cursor % 3),
        seq: cursor,
    };
    for cursor in 1..=98 {
        witness.committed(&[at(cursor)]);
    }
    witness.committed(&[Head::forgotten(session(0))]);
    assert_eq!(witness.end, 99 * RECORD as u64);
    witness.committed(&[at(100)]);
    assert_eq!(witness.end, 2 * RECORD as u64);
    assert_eq!(fs::metadata(&witness.path).unwrap().len(), witness.end);
    let heads: Vec<Head> = witness.heads().unwrap().into_values().collect();
    assert_eq!(heads, [at(100), at(98)]);
    witness.committed(&[at(103)]);
    assert_eq!(witness.heads().unwrap()[&session(1)], at(103));
}
