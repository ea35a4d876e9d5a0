//! Several nodes on one database: leases, owners, fences.

use crate::kit::Kit;
use crate::server::Database;
use agentd_protocol::{Placing, SessionId};
use agentd_store::{Demand, Fleet, Joining, Options, Outcome, StoreError};
use std::sync::Arc;
use std::time::Duration;

/// Short, so that a test need not wait for it.
const TTL: Duration = Duration::from_millis(50);

struct Node {
    kit: Kit,
    fleet: Arc<dyn Fleet>,
}

/// A node that has joined.
async fn node(database: &Database, name: &str) -> Node {
    joined(database, joining(name)).await
}

async fn joined(database: &Database, joining: Joining) -> Node {
    let backend = database.open(Options::default()).await.unwrap();
    let fleet = backend.fleet().unwrap();
    let (_, now) = crate::kit::moving_clock();
    let kit = Kit::new(tempfile::tempdir().unwrap(), backend, now);
    fleet.join(&joining).await.unwrap();
    Node { kit, fleet }
}

fn joining(name: &str) -> Joining {
    Joining {
        name: name.to_owned(),
        identity: format!("directory of {name}"),
        ttl: TTL,
        ..Joining::default()
    }
}

impl Node {
    /// Takes note that all others are gone: they give no signs of life.
    async fn is_alone(&self, database: &Database) {
        while database.run("SELECT count(*) FROM agentd.node WHERE NOT dead") != "1" {
            self.fleet.beat(TTL).await.unwrap();
        }
    }

    async fn owner_of(&self, session: SessionId) -> Option<String> {
        let owner = self.fleet.owner(session).await.unwrap();
        owner.map(|owner| owner.name)
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn i9_a_live_owner_keeps_its_session_and_a_dead_one_loses_it() {
    let Some(database) = Database::create("owners") else {
        return;
    };
    let (a, b) = (node(&database, "a").await, node(&database, "b").await);
    let session = a.kit.created(1).await;
    assert_eq!(b.owner_of(session).await.as_deref(), Some("a"));
    assert_eq!(a.owner_of(session).await, None);
    let refused = b.kit.log.claim(session).await;
    assert!(
        matches!(&refused, Err(StoreError::Elsewhere { session: of, node }) if *of == session && node == "a"),
        "{refused:?}"
    );
    let again = a.kit.log.claim(session).await.unwrap();
    assert_eq!((again.epoch, again.moved_to), (2, None));
    b.is_alone(&database).await;
    let taken = b.kit.log.claim(session).await.unwrap();
    assert_eq!((taken.epoch, taken.moved_to.as_deref()), (3, Some("b")));
    // The other way round now.
    assert!(matches!(a.fleet.beat(TTL).await, Err(StoreError::NodeLost)));
    assert!(matches!(
        a.kit.log.claim(session).await,
        Err(StoreError::NodeLost)
    ));
    a.fleet.join(&joining("a")).await.unwrap();
    assert!(matches!(
        a.kit.log.claim(session).await,
        Err(StoreError::Elsewhere { .. })
    ));
    b.kit.log.close().await.unwrap();
    let back = a.kit.log.claim(session).await.unwrap();
    assert_eq!((back.epoch, back.moved_to.as_deref()), (4, Some("a")));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn i9_all_of_300_appends_of_stale_owners_are_refused() {
    let Some(database) = Database::create("stale owners") else {
        return;
    };
    let (a, b) = (node(&database, "a").await, node(&database, "b").await);
    let mut sessions = Vec::new();
    for _ in 0..300 {
        sessions.push(a.kit.created(1).await);
    }
    b.is_alone(&database).await;
    let mut refused = 0;
    for session in &sessions {
        b.kit.log.claim(*session).await.unwrap();
        let stale = a.kit.more(*session, 1, 1, 1);
        refused += u32::from(matches!(a.kit.log.append(stale).await, Outcome::Fenced { .. }));
    }
    assert_eq!(refused, 300);
    for session in sessions {
        assert_eq!(b.kit.seqs(session).await, [1]);
        let good = b.kit.more(session, 2, 1, 1);
        assert!(matches!(b.kit.log.append(good).await, Outcome::Committed { .. }));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_without_an_owner_are_shared_between_the_open_nodes() {
    let Some(database) = Database::create("shares") else {
        return;
    };
    let long = Duration::from_secs(60);
    let of = |name| Joining {
        ttl: long,
        ..joining(name)
    };
    let a = joined(&database, of("a")).await;
    for _ in 0..30 {
        a.kit.created(1).await;
    }
    database.run("UPDATE agentd.session SET resumable = true");
    let (b, c) = (joined(&database, of("b")).await, joined(&database, of("c")).await);
    a.kit.log.close().await.unwrap();
    assert!(c.fleet.place("c", Placing::Cordoned).await.unwrap());
    assert_eq!(c.fleet.beat(long).await.unwrap(), Placing::Cordoned);
    assert_eq!(c.fleet.adopt().await.unwrap().len(), 0);
    assert!(c.fleet.place("c", Placing::Open).await.unwrap());
    assert_eq!(b.fleet.adopt().await.unwrap().len(), 15);
    assert_eq!(c.fleet.adopt().await.unwrap().len(), 15);
    assert_eq!(b.fleet.adopt().await.unwrap().len(), 0);
    // One gives all but one up.
    let kept = c.fleet.hand_over(&[]).await.unwrap();
    assert_eq!(kept, 15);
    assert_eq!(b.fleet.adopt().await.unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_name_is_taken_while_its_node_lives_unless_it_is_the_same_directory() {
    let Some(database) = Database::create("names") else {
        return;
    };
    let a = node(&database, "a").await;
    let long = Joining {
        ttl: Duration::from_secs(60),
        ..joining("a")
    };
    let first = a.fleet.join(&long).await.unwrap();
    let other = database.open(Options::default()).await.unwrap().fleet().unwrap();
    let elsewhere = Joining {
        identity: "another directory".to_owned(),
        ..long.clone()
    };
    let refused = other.join(&elsewhere).await;
    assert!(
        matches!(refused, Err(StoreError::NameTaken { .. })),
        "{refused:?}"
    );
    assert!(other.join(&long).await.unwrap() > first);
    assert!(matches!(a.fleet.beat(TTL).await, Err(StoreError::NodeLost)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn live_nodes_divide_a_limit_by_demand_and_never_exceed_it() {
    let Some(database) = Database::create("shares") else {
        return;
    };
    let (a, b) = (node(&database, "a").await, node(&database, "b").await);
    let share = async |node: &Node, running, wanted| {
        let demand = |provider: &str, limit| Demand {
            provider: provider.to_owned(),
            limit,
            running,
            wanted,
        };
        let demands = [demand("p", 10), demand("q", 100)];
        node.fleet.share(&demands).await.unwrap()
    };
    assert_eq!(share(&a, 0, 4).await, [10, 100], "nobody else wants anything");
    assert_eq!(share(&b, 0, 8).await, [0, 0], "a has all");
    assert_eq!(
        share(&a, 9, 9).await,
        [9, 51],
        "calls in flight keep their permits"
    );
    assert_eq!(share(&b, 0, 8).await, [1, 49]);
    assert_eq!(share(&a, 4, 4).await, [4, 48]);
    assert_eq!(share(&b, 0, 8).await, [6, 52]);
    b.is_alone(&database).await;
    assert_eq!(share(&b, 6, 8).await, [10, 100], "a is gone");
}
