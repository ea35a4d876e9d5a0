//! The public keys of nodes: which are in force, and which never again.

use crate::server::Database;
use agentd_store::{Fleet, Incarnation, Joining, Options, StoreError};
use std::sync::Arc;
use std::time::Duration;

fn key(digit: char) -> String {
    String::from(digit).repeat(64)
}

fn joining(name: &str, digit: char) -> Joining {
    Joining {
        name: name.to_owned(),
        identity: format!("directory of {name}"),
        key: key(digit),
        ttl: Duration::from_secs(3_600),
        ..Joining::default()
    }
}

async fn fleet(database: &Database) -> Arc<dyn Fleet> {
    let backend = database.open(Options::default()).await.unwrap();
    backend.fleet().unwrap()
}

/// The keys in force of a node.
async fn known(fleet: &dyn Fleet, name: &str) -> Vec<(Incarnation, String)> {
    let keys = fleet.keys().await.unwrap();
    let mine = keys.into_iter().filter(|known| known.name == name);
    mine.map(|known| (known.incarnation, known.key)).collect()
}

fn is_removed(joined: &Result<Incarnation, StoreError>) -> bool {
    matches!(joined, Err(StoreError::KeyRemoved { .. }))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn i7_a_removed_key_is_never_in_force_again() {
    let Some(database) = Database::create("removed keys") else {
        return;
    };
    let (a, b) = (fleet(&database).await, fleet(&database).await);
    let first = a.join(&joining("a", '1')).await.unwrap();
    b.join(&joining("b", '2')).await.unwrap();
    assert_eq!(known(b.as_ref(), "a").await, [(first, key('1'))]);
    assert!(!b.remove_key("nobody").await.unwrap());
    assert!(b.remove_key("a").await.unwrap());
    assert_eq!(known(b.as_ref(), "a").await, []);
    // It is no member any more, and no way leads back with this key.
    let beaten = a.beat(Duration::from_secs(1)).await;
    assert!(matches!(beaten, Err(StoreError::NodeLost)), "{beaten:?}");
    assert!(is_removed(&a.join(&joining("a", '1')).await));
    assert!(
        is_removed(&a.join(&joining("c", '1')).await),
        "under another name"
    );
    assert!(
        is_removed(&a.join(&joining("a", '3')).await),
        "with a new key, before it is admitted"
    );
    assert!(!b.admit_key("b").await.unwrap());
    assert!(b.admit_key("a").await.unwrap());
    assert!(
        is_removed(&a.join(&joining("a", '1')).await),
        "admitted, with the removed key"
    );
    let again = a.join(&joining("a", '3')).await.unwrap();
    assert_eq!(known(b.as_ref(), "a").await, [(again, key('3'))]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn i7_a_replaced_key_is_in_force_for_a_while_and_then_never_again() {
    let Some(database) = Database::create("replaced keys") else {
        return;
    };
    let (a, b) = (fleet(&database).await, fleet(&database).await);
    a.join(&joining("a", '1')).await.unwrap();
    a.rotate_key(&key('3'), Duration::from_secs(3_600)).await.unwrap();
    let both = known(b.as_ref(), "a").await;
    assert_eq!(
        both.len(),
        2,
        "requests that are on their way were signed with the key before: {both:?}"
    );
    a.rotate_key(&key('4'), Duration::ZERO).await.unwrap();
    let keys = known(b.as_ref(), "a").await.into_iter().map(|(_, key)| key);
    let mut keys: Vec<String> = keys.collect();
    keys.sort();
    assert_eq!(keys, [key('1'), key('4')], "each has its own time");
    for old in ['1', '3'] {
        assert!(is_removed(&a.join(&joining("a", old)).await), "{old}");
    }
    a.join(&joining("a", '4')).await.unwrap();
    // Rotation needs a member, and a key that is new.
    let lost = b.rotate_key(&key('5'), Duration::ZERO).await;
    assert!(matches!(lost, Err(StoreError::NodeLost)), "{lost:?}");
    assert!(a.rotate_key(&key('1'), Duration::ZERO).await.is_err());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn i7_a_name_has_one_key_and_a_copied_key_goes_with_its_original() {
    let Some(database) = Database::create("copied keys") else {
        return;
    };
    let (a, b, c) = (
        fleet(&database).await,
        fleet(&database).await,
        fleet(&database).await,
    );
    a.join(&joining("a", '1')).await.unwrap();
    // Its data directory is a new one.
    let again = a.join(&joining("a", '2')).await.unwrap();
    assert_eq!(known(c.as_ref(), "a").await, [(again, key('2'))]);
    // The data directory of `b` is a copy.
    let copy = b.join(&joining("b", '2')).await.unwrap();
    assert_eq!(known(c.as_ref(), "b").await, [(copy, key('2'))]);
    assert!(c.remove_key("a").await.unwrap());
    assert_eq!(c.keys().await.unwrap(), []);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn i8_no_column_of_the_database_can_hold_the_secret_of_a_node() {
    let Some(database) = Database::create("no secrets") else {
        return;
    };
    let a = fleet(&database).await;
    a.join(&joining("a", '1')).await.unwrap();
    // What nodes of earlier versions read is a constant, and what they join with says why it fails.
    assert_eq!(database.run("SELECT secret FROM agentd.node"), "");
    let write = "DO $$ BEGIN UPDATE agentd.node SET secret = 'x'; RAISE 'written'; EXCEPTION WHEN generated_always THEN NULL; END $$";
    database.run(write);
    let join = "SET search_path = agentd; DO $$ BEGIN PERFORM join_2('old', '', '', 's', '', 1, '{}', '{}'); RAISE 'joined';
         EXCEPTION WHEN raise_exception THEN IF SQLERRM NOT LIKE '%upgrade this node%' THEN RAISE; END IF; END $$";
    database.run(join);
}
