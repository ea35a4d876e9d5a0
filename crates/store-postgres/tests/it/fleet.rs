//! Several nodes on one database: leases, owners, fences.

use crate::kit::Kit;
use crate::server::Database;
use agentd_protocol::{Labels, Placing, SessionId, SessionPlace, Summary, Timestamp, listed};
use agentd_store::{Append, Demand, Fleet, Joining, Options, Outcome, StoreError, Want};
use std::collections::BTreeSet;
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
        shared_paths: vec!["/".to_owned()],
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

/// A commit of any node holds the lock of the stream until it is on disk.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn i9_a_node_claims_its_own_session_during_a_commit_and_another_one_after_it() {
    let Some(database) = Database::create("claims during commits") else {
        return;
    };
    let (a, b) = (node(&database, "a").await, node(&database, "b").await);
    let session = a.kit.created(1).await;
    let (commit, connection) = tokio_postgres::connect(&database.url, tokio_postgres::NoTls)
        .await
        .unwrap();
    tokio::spawn(connection);
    let lock = "BEGIN; SELECT FROM agentd.stream FOR UPDATE";
    commit.batch_execute(lock).await.unwrap();
    assert_eq!(a.kit.log.claim(session).await.unwrap().epoch, 2);
    let others = async {
        let refused = b.kit.log.claim(session).await;
        assert!(
            matches!(refused, Err(StoreError::Elsewhere { .. })),
            "{refused:?}"
        );
    };
    let commits = async {
        let waiting =
            "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%claim_2%'
            AND datname = current_database()";
        // A transaction sees the activity of its first look, unless it asks for another one.
        while commit.query_one(waiting, &[]).await.unwrap().get::<_, i64>(0) == 0 {
            let forget = "SELECT pg_stat_clear_snapshot()";
            commit.batch_execute(forget).await.unwrap();
        }
        commit.batch_execute("COMMIT").await.unwrap();
    };
    let both = async { tokio::join!(others, commits) };
    tokio::time::timeout(Duration::from_secs(300), both)
        .await
        .unwrap();
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
    let long = Duration::from_secs(3_600);
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
    // The lease of `a` is the oldest one.
    let next_end = b.fleet.beat(long).await.unwrap().next_end.unwrap();
    assert!(!next_end.is_zero() && next_end < long, "{next_end:?}");
    a.kit.log.close().await.unwrap();
    assert!(c.fleet.place("c", Placing::Cordoned).await.unwrap());
    assert_eq!(c.fleet.beat(long).await.unwrap().placing, Placing::Cordoned);
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
async fn i9_what_a_node_takes_over_is_claimed_once_with_it() {
    let Some(database) = Database::create("adopted") else {
        return;
    };
    let (a, b) = (node(&database, "a").await, node(&database, "b").await);
    let (now, later) = (a.kit.created(1).await, a.kit.created(2).await);
    database
        .run("UPDATE agentd.session SET resumable = head = 1, wake_at_ms = CASE WHEN head = 2 THEN 5 END");
    b.is_alone(&database).await;
    let mut adopted = b.fleet.adopt().await.unwrap();
    adopted.sort();
    assert_eq!(adopted, [(now, Timestamp(0)), (later, Timestamp(5))]);
    let epochs = "SELECT string_agg(epoch::text, ' ' ORDER BY head) FROM agentd.session";
    assert_eq!(database.run(epochs), "2 2");
    assert!(
        !a.kit.commits(a.kit.more(now, 1, 1, 1)).await,
        "it is another node's"
    );
    let claim = b.kit.log.claim(now).await.unwrap();
    assert_eq!(
        (claim.epoch, claim.head, claim.moved_to.as_deref()),
        (2, 1, Some("b"))
    );
    assert_eq!(
        database.run(epochs),
        "2 2",
        "it was claimed when it was taken over"
    );
    assert!(b.kit.commits(a.kit.more(now, 2, 1, 1)).await);
    // The next loop is another owner.
    let claim = b.kit.log.claim(now).await.unwrap();
    assert_eq!((claim.epoch, claim.head, claim.moved_to), (3, 2, None));
    assert!(!b.kit.commits(a.kit.more(now, 2, 2, 1)).await);
    // What continues later is claimed then.
    let claim = b.kit.log.claim(later).await.unwrap();
    assert_eq!(
        (claim.epoch, claim.head, claim.moved_to.as_deref()),
        (3, 2, Some("b"))
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn i9_a_claim_ends_when_sessions_are_given_up() {
    let Some(database) = Database::create("given_up") else {
        return;
    };
    let (a, b) = (node(&database, "a").await, node(&database, "b").await);
    let session = a.kit.created(1).await;
    database.run("UPDATE agentd.session SET resumable = true");
    b.is_alone(&database).await;
    assert_eq!(b.fleet.adopt().await.unwrap().len(), 1);
    assert_eq!(b.fleet.hand_over(&[]).await.unwrap(), 1);
    assert_eq!(b.kit.log.claim(session).await.unwrap().epoch, 3);
    assert_eq!(b.fleet.hand_over(&[]).await.unwrap(), 1);
    assert_eq!(b.fleet.adopt().await.unwrap().len(), 1);
    b.fleet.join(&joining("b")).await.unwrap();
    assert_eq!(b.kit.log.claim(session).await.unwrap().epoch, 5);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_name_is_taken_while_its_node_lives_unless_it_is_the_same_directory() {
    let Some(database) = Database::create("names") else {
        return;
    };
    let a = node(&database, "a").await;
    let long = Joining {
        ttl: Duration::from_secs(3_600),
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
        let demand = |provider: &str, limit, running, wanted| Demand {
            provider: provider.to_owned(),
            limit,
            running,
            permits: running,
            wants: vec![Want {
                background: false,
                group: "team\0".to_owned(),
                weight: 1_000,
                calls: wanted,
            }],
        };
        let demands = [demand("p", 10, running, wanted), demand("q", 100, 0, 0)];
        let shares = node.fleet.share(&demands).await.unwrap();
        shares.iter().map(|share| share.permits).collect::<Vec<_>>()
    };
    assert_eq!(share(&a, 0, 4).await, [10, 100], "no other node wants any");
    assert_eq!(share(&b, 0, 8).await, [0, 0], "a has all");
    assert_eq!(
        share(&a, 9, 9).await,
        [5, 50],
        "nine calls end before others start"
    );
    assert_eq!(share(&b, 0, 8).await, [1, 50]);
    assert_eq!(share(&a, 4, 4).await, [4, 50]);
    assert_eq!(share(&b, 0, 8).await, [6, 50]);
    b.is_alone(&database).await;
    assert_eq!(share(&b, 6, 8).await, [10, 100], "a is gone");
}

/// A waiting session of node `a`, which is gone, in this directory.
async fn left_by(a: &Node, workdir: &str, place: SessionPlace) -> SessionId {
    left_with(a, workdir, place, &[]).await
}

/// The same; the session requires these labels.
async fn left_with(a: &Node, workdir: &str, place: SessionPlace, requires: &[(&str, &str)]) -> SessionId {
    let session = a.kit.session();
    let summary = Summary {
        workdir: workdir.to_owned(),
        place,
        requires: labels(requires),
        // Labels that look like what the store reads of a row.
        labels: [
            ("workdir".to_owned(), "/shared/x".to_owned()),
            ("place".to_owned(), "{".to_owned()),
            ("requires".to_owned(), "{\"gpu\":\"yes\"}".to_owned()),
        ]
        .into(),
        resumable: true,
        ..crate::kit::summary(
            session,
            "\"workdir\":\"/shared\" \"place\":{\"home\":\"b\",\"kept\":true} \"requires\":{\"gpu\":\"yes\"}",
        )
    };
    let append = Append {
        summary: Some(summary),
        ..a.kit.append(session, 1, 0, 1)
    };
    assert!(a.kit.commits(append).await);
    session
}

fn labels(pairs: &[(&str, &str)]) -> Labels {
    pairs
        .iter()
        .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
        .collect()
}

fn at(home: &str, kept: bool) -> SessionPlace {
    SessionPlace {
        home: home.to_owned(),
        kept,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_runs_sessions_of_others_only_if_their_files_are_there() {
    let Some(database) = Database::create("places") else {
        return;
    };
    let shares = |name, paths: &[&str]| Joining {
        ttl: Duration::from_secs(3_600),
        shared_paths: paths.iter().map(|path| (*path).to_owned()).collect(),
        ..joining(name)
    };
    let a = joined(&database, shares("a", &[])).await;
    let b = joined(&database, shares("b", &["/shared", "/q\"uo\\te"])).await;
    let cases = [
        ("/shared", at("", false), true),
        ("/shared/x", at("", false), true),
        ("/q\"uo\\te/x", at("", false), true),
        ("/sharedx", at("", false), false),
        ("/shared/../etc", at("", false), false),
        ("/shared/..", at("", false), false),
        ("/other/shared", at("", false), false),
        ("", at("", false), false),
        ("/other", at("", true), true),
        ("/other", at("c", true), true),
        ("/other", at("c", false), false),
        ("/other", at("b", false), true),
        ("/other", at("a", false), false),
        ("/nul\u{0}", at("", false), false),
    ];
    let mut sessions = Vec::new();
    for (workdir, place, runs) in cases {
        sessions.push((left_by(&a, workdir, place.clone()).await, runs, (workdir, place)));
    }
    a.kit.log.close().await.unwrap();
    for (session, runs, what) in &sessions {
        if !runs {
            let refused = b.kit.log.claim(*session).await;
            assert!(
                matches!(refused, Err(StoreError::Away { .. })),
                "{what:?}: {refused:?}"
            );
        }
    }
    let adopted = b.fleet.adopt().await.unwrap();
    let adopted: BTreeSet<SessionId> = adopted.into_iter().map(|(session, _)| session).collect();
    for (session, runs, what) in &sessions {
        assert_eq!(adopted.contains(session), *runs, "{what:?}");
    }
    let stranded = b.fleet.stranded().await.unwrap();
    let left = sessions.iter().filter(|(_, runs, _)| !runs).count();
    assert_eq!(stranded.len(), left);
    assert_eq!(b.fleet.orphans().await.unwrap().sessions, left as u64);
    // The node of the name takes its own over, all at once.
    let again = joined(&database, shares("a", &[])).await;
    assert_eq!(again.fleet.adopt().await.unwrap().len(), left - 1);
    assert_eq!(again.fleet.stranded().await.unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn i9_a_session_without_its_files_is_claimed_for_what_needs_none_and_given_back() {
    let Some(database) = Database::create("without files") else {
        return;
    };
    let a = node(&database, "a").await;
    let none = Joining {
        shared_paths: Vec::new(),
        ..joining("b")
    };
    let b = joined(&database, none).await;
    let session = left_by(&a, "/w", at("", false)).await;
    b.is_alone(&database).await;
    let away = b.kit.log.claim_without_files(session).await.unwrap();
    let of = away.away.unwrap();
    assert_eq!(
        (of.here.as_str(), of.home.as_str(), of.workdir.as_str()),
        ("b", "a", "/w")
    );
    assert_eq!((away.epoch, away.moved_to), (2, None));
    assert!(b.fleet.give_back(session).await.unwrap());
    assert!(matches!(
        b.kit.log.claim(session).await,
        Err(StoreError::Away { .. })
    ));
    // The log says that it moved: then it is at home there, and only there.
    let there = b.kit.log.claim_without_files(session).await.unwrap();
    let moved = Append {
        summary: Some(Summary {
            place: at("b", false),
            ..crate::kit::summary(session, "moved")
        }),
        ..b.kit.append(session, there.epoch, 1, 1)
    };
    assert!(b.kit.commits(moved).await);
    assert!(!b.fleet.give_back(session).await.unwrap());
    let home = b.kit.log.claim(session).await.unwrap();
    assert_eq!((home.away, home.moved_to), (None, None));
    b.kit.log.close().await.unwrap();
    a.fleet
        .join(&Joining {
            shared_paths: Vec::new(),
            ..joining("a")
        })
        .await
        .unwrap();
    assert!(matches!(
        a.kit.log.claim(session).await,
        Err(StoreError::Away { .. })
    ));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_runs_only_sessions_whose_required_labels_it_has() {
    let Some(database) = Database::create("required labels") else {
        return;
    };
    let labelled = |name, pairs: &[(&str, &str)]| Joining {
        ttl: Duration::from_secs(3_600),
        shared_paths: vec!["/".to_owned()],
        labels: labels(pairs),
        ..joining(name)
    };
    let a = joined(&database, labelled("a", &[])).await;
    let b = joined(&database, labelled("b", &[("gpu", "yes"), ("zone", "a")])).await;
    let cases: [(&[(&str, &str)], bool); 6] = [
        (&[], true),
        (&[("gpu", "yes")], true),
        (&[("gpu", "yes"), ("zone", "a")], true),
        (&[("gpu", "no")], false),
        (&[("disk", "ssd")], false),
        (&[("disk", "ssd"), ("gpu", "yes")], false),
    ];
    let mut sessions = Vec::new();
    for (requires, runs) in cases {
        sessions.push((left_with(&a, "/w", at("", false), requires).await, requires, runs));
    }
    a.kit.log.close().await.unwrap();
    let adopted = b.fleet.adopt().await.unwrap();
    let adopted: BTreeSet<SessionId> = adopted.into_iter().map(|(session, _)| session).collect();
    let stranded = b.fleet.stranded().await.unwrap();
    for (session, requires, runs) in sessions {
        assert_eq!(adopted.contains(&session), runs, "{requires:?}");
        let lacking = stranded.iter().find(|row| row.session == session);
        let lacking = lacking.map(|row| row.away.lacking.clone());
        assert_eq!(lacking, (!runs).then(|| labels(requires)));
        if !runs {
            let refused = b.kit.log.claim(session).await.unwrap_err();
            let why = format!(
                "requires {}, which node b does not have",
                listed(&labels(requires))
            );
            assert!(refused.to_string().ends_with(&why), "{refused}");
        }
    }
    let c = joined(&database, labelled("c", &[("disk", "ssd"), ("gpu", "yes")])).await;
    assert_eq!(c.fleet.adopt().await.unwrap().len(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_open_node_has_the_required_labels() {
    let Some(database) = Database::create("labels of open nodes") else {
        return;
    };
    let labelled = |name, pairs: &[(&str, &str)]| Joining {
        ttl: Duration::from_secs(3_600),
        labels: labels(pairs),
        address: "http://127.0.0.1:1".to_owned(),
        ..joining(name)
    };
    let b = joined(&database, labelled("b", &[("gpu", "yes"), ("zone", "a")])).await;
    let wanted = labels(&[("disk", "ssd"), ("gpu", "yes")]);
    let open = async |wanted| {
        b.fleet
            .open_node(wanted, None)
            .await
            .unwrap()
            .map(|node| node.name)
    };
    assert_eq!(open(&wanted).await, None);
    let _c = joined(
        &database,
        labelled("c", &[("disk", "ssd"), ("gpu", "yes"), ("x", "y")]),
    )
    .await;
    assert_eq!(open(&wanted).await.as_deref(), Some("c"));
    assert_eq!(open(&labels(&[("gpu", "no")])).await, None);
    let nodes = b.fleet.nodes().await.unwrap();
    let shown = nodes.iter().map(|node| node.labels.len()).collect::<Vec<_>>();
    assert_eq!(shown, [2, 3]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_open_node_with_the_least_load_that_shares_the_directory_is_found() {
    let Some(database) = Database::create("loads") else {
        return;
    };
    let sharing = |name: &str, path: &str| Joining {
        ttl: Duration::from_secs(3_600),
        shared_paths: vec![path.to_owned()],
        address: "http://127.0.0.1:1".to_owned(),
        ..joining(name)
    };
    let a = joined(&database, sharing("a", "/")).await;
    assert_eq!(a.fleet.report_load(7).await.unwrap(), None, "it is alone");
    let b = joined(&database, sharing("b", "/srv/b")).await;
    let c = joined(&database, sharing("c", "/srv")).await;
    assert_eq!(
        a.fleet.report_load(7).await.unwrap(),
        None,
        "the others have reported nothing"
    );
    assert_eq!(b.fleet.report_load(30).await.unwrap(), Some(7));
    assert_eq!(c.fleet.report_load(50).await.unwrap(), Some(7));
    assert_eq!(a.fleet.report_load(8).await.unwrap(), Some(30));
    for (better, found) in [
        (None, Some("b")),
        (Some(("/srv/b/x", 500)), Some("b")),
        (Some(("/srv/b", 131)), Some("b")),
        (Some(("/srv/b", 130)), None),
        (Some(("/srv/bx", 500)), Some("c")),
        (Some(("/srv/bx", 150)), None),
        (Some(("/srv/b/../c", 500)), None),
        (Some(("/home", 500)), None),
    ] {
        let node = a.fleet.open_node(&Labels::new(), better).await.unwrap();
        assert_eq!(node.map(|node| node.name).as_deref(), found, "{better:?}");
    }
    assert!(b.fleet.place("b", Placing::Cordoned).await.unwrap());
    assert_eq!(a.fleet.report_load(8).await.unwrap(), Some(50));
    let loads = a.fleet.nodes().await.unwrap();
    let loads: Vec<_> = loads.iter().map(|node| (node.name.as_str(), node.load)).collect();
    assert_eq!(loads, [("a", 8), ("b", 30), ("c", 50)]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn i9_an_owner_without_the_files_does_not_keep_a_session_from_its_node() {
    let Some(database) = Database::create("stray owners") else {
        return;
    };
    let none = |name| Joining {
        ttl: Duration::from_secs(3_600),
        shared_paths: Vec::new(),
        ..joining(name)
    };
    let (a, b) = (
        joined(&database, none("a")).await,
        joined(&database, none("b")).await,
    );
    let session = left_by(&a, "/w", at("", false)).await;
    assert_eq!(a.fleet.away(session).await.unwrap(), None);
    assert_eq!(
        b.fleet
            .away(session)
            .await
            .unwrap()
            .map(|away| away.home)
            .as_deref(),
        Some("a")
    );
    a.kit.log.close().await.unwrap();
    // For a command that needs no files. Its request ended before it gave the session back.
    let stray = b.kit.log.claim_without_files(session).await.unwrap();
    assert!(stray.away.is_some());
    let again = joined(&database, none("a")).await;
    assert_eq!(
        again.owner_of(session).await,
        None,
        "the stray owner does not count"
    );
    assert_eq!(again.kit.log.claim(session).await.unwrap().away, None);
    let late = b.kit.append(session, stray.epoch, 1, 1);
    assert!(matches!(b.kit.log.append(late).await, Outcome::Fenced { .. }));
    // A cordoned node that starts again gets its own session back, and no other.
    let taken = again.kit.session();
    assert_eq!(taken, session, "each node of this test makes the same ids");
    let travels = left_by(&again, "/other", at("", true)).await;
    assert!(again.fleet.place("a", Placing::Cordoned).await.unwrap());
    again.kit.log.close().await.unwrap();
    let third = joined(&database, none("a")).await;
    assert_eq!(
        third.fleet.beat(TTL * 1_000).await.unwrap().placing,
        Placing::Cordoned
    );
    let adopted = third.fleet.adopt().await.unwrap();
    assert_eq!(
        adopted.iter().map(|(session, _)| *session).collect::<Vec<_>>(),
        [session]
    );
    let adopted = b.fleet.adopt().await.unwrap();
    assert_eq!(
        adopted.iter().map(|(session, _)| *session).collect::<Vec<_>>(),
        [travels]
    );
}
