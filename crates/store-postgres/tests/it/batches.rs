//! Batches of which the server commits a part, and those of nodes of the last version.

use crate::kit::{event, key};
use crate::server::Database;
use agentd_store::backend::hex;
use agentd_store::{Blob, Charge, Outcome, Range, StoreError};
use futures_util::future::join_all;

fn charge(tokens: u64) -> Charge {
    Charge {
        account: "a team".to_owned(),
        tokens,
        micro_usd: 0,
    }
}

// One thread: the writer takes over only when all appends are queued, so that they are one batch.
#[tokio::test]
async fn i2_the_refused_appends_of_a_batch_leave_nothing_and_no_gap_in_the_cursors() {
    let Some(database) = Database::create("parts of a batch") else {
        return;
    };
    let kit = database.kit().await;
    let (first, second, third) = (kit.created(1).await, kit.created(1).await, kit.created(1).await);
    let repeated = kit.more(second, 1, 1, 1);
    let mut keyed = kit.more(third, 1, 1, 1);
    keyed.keys.push(key(1));
    for append in [repeated.clone(), keyed] {
        assert!(kit.commits(append).await);
    }
    let before = kit.log.metrics();
    let mut fenced = kit.more(first, 1, 7, 2);
    fenced.charges.push(charge(1));
    fenced.blobs.push(Blob::new("refused".into()));
    let mut taken = kit.create(kit.session(), "refused", 1);
    taken.keys.push(key(1));
    let mut new = kit.create(kit.session(), "new", 3);
    new.charges.push(charge(2));
    new.blobs.push(Blob::new("committed".into()));
    let (refused, created) = (taken.session, new.session);
    let last = kit.more(third, 1, 2, 2);
    let batch = [fenced, repeated, new, taken, last];
    let outcomes = join_all(batch.into_iter().map(|append| kit.log.append(append))).await;
    let after = kit.log.metrics();
    assert_eq!((after.batches - before.batches, after.largest_batch), (1, 5));
    assert_eq!(
        outcomes,
        [
            Outcome::Fenced { epoch: 1, head: 1 },
            Outcome::Duplicate { head: 2 },
            Outcome::Committed { head: 3, cursor: 8 },
            Outcome::KeyTaken {
                answer: key(1).answer,
                same_body: true
            },
            Outcome::Committed { head: 4, cursor: 10 },
        ]
    );
    let watched = kit.log.watch(Some(5), 0).await.unwrap();
    let found: Vec<_> = watched
        .events
        .iter()
        .map(|found| (found.cursor, found.session, found.seq))
        .collect();
    let expected = [
        (6, created, 1),
        (7, created, 2),
        (8, created, 3),
        (9, third, 3),
        (10, third, 4),
    ];
    assert_eq!(found, expected);
    assert_eq!(watched.events.first().unwrap().body, event(created, 1).body);
    assert_eq!(kit.log.watch(None, 0).await.unwrap().cursor, 10);
    let left = kit.log.load(refused, Range::default()).await;
    assert!(matches!(left, Err(StoreError::NotFound(_))), "{left:?}");
    assert_eq!(kit.log.charged("a team").await.unwrap().tokens, 2);
    assert_eq!(database.run("SELECT count(*) FROM agentd.blob_use"), "1");
}

/// An append of one event by a node of the last version.
const OLD: &str = "SET search_path = agentd; SELECT outcome, cursor_after FROM append_1(1, 0, NULL,
  ARRAY['{uid}'], ARRAY[1], ARRAY[1], ARRAY[2], ARRAY['\\x01'::bytea],
  ARRAY[NULL], ARRAY[''], ARRAY[''], ARRAY[false], ARRAY['{}'], ARRAY[false], ARRAY[NULL]::bigint[], ARRAY[NULL]::bigint[],
  ARRAY[0], ARRAY[''], ARRAY[''], ARRAY[0], ARRAY[0], ARRAY[0], ARRAY[0], ARRAY[''],
  ARRAY[1], ARRAY[2], ARRAY[1], ARRAY['session.paused'], ARRAY[true], ARRAY['{}'], ARRAY[1],
  '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}')";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn i9_nodes_of_the_last_version_append_to_the_same_stream() {
    let Some(database) = Database::create("two versions") else {
        return;
    };
    let kit = database.kit().await;
    let session = kit.created(1).await;
    let old = OLD.replace("{uid}", &hex(session));
    assert_eq!(database.run(&old), "0|2");
    // Each sees what the other has written.
    let stale = kit.more(session, 1, 1, 1);
    assert_eq!(kit.log.append(stale).await, Outcome::Fenced { epoch: 1, head: 2 });
    let next = kit.more(session, 1, 2, 1);
    assert_eq!(
        kit.log.append(next).await,
        Outcome::Committed { head: 3, cursor: 3 }
    );
    let stale = old.replace("x01", "x02");
    assert_eq!(database.run(&stale), "2|3");
}
