//! Refused servers, lost connections, changed rows.

use crate::kit::Kit;
use crate::server::Database;
use agentd_process_tests::Postgres;
use agentd_store::{Options, Outcome, Row, StoreError};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_of_a_newer_version_is_refused_unchanged() {
    let Some(database) = Database::create("a newer version") else {
        return;
    };
    database
        .open(Options::default())
        .await
        .unwrap()
        .close()
        .await
        .unwrap();
    let newer = "UPDATE agentd.version SET version = 99";
    database.run(newer);
    let refused = database.open(Options::default()).await.map(drop);
    let newer = StoreError::NewerVersion { found: 99, known: 9 };
    assert_eq!(refused.unwrap_err().to_string(), newer.to_string());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_of_an_older_version_is_upgraded_with_what_it_holds() {
    let Some(database) = Database::create("an older version") else {
        return;
    };
    database.run(&format!(
        "CREATE SCHEMA agentd; SET search_path = agentd; CREATE TABLE version(version int NOT NULL);
         INSERT INTO version VALUES (1); {} INSERT INTO node(name, identity, address, secret, version, standing, lease_until)
         VALUES ('old', '', '', '', '', 'cordoned', now())",
        include_str!("../../src/schema/1.sql")
    ));
    let backend = database.open(Options::default()).await.unwrap();
    let nodes = backend.fleet().unwrap().nodes().await.unwrap();
    assert_eq!(
        nodes.iter().map(|node| node.name.as_str()).collect::<Vec<_>>(),
        ["old"]
    );
    assert_eq!(database.run("SELECT version FROM agentd.version"), "9");
    assert_eq!(database.run("SELECT count(*) FROM agentd.provider_share"), "0");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn i1_a_server_without_fsync_is_refused() {
    if Database::create("fsync").is_none() {
        return;
    }
    for (setting, named) in [
        ("fsync=off", "fsync"),
        ("full_page_writes=off", "full_page_writes"),
    ] {
        let server = Postgres::start(&[setting]).unwrap();
        server.run("postgres", "SELECT 1");
        let refused = agentd_store_postgres::open(&server.url("postgres"), None, Options::default()).await;
        let error = refused.map(drop).unwrap_err();
        assert!(matches!(error, StoreError::Unsuitable { .. }), "{error}");
        assert!(error.to_string().contains(named), "{error}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn i8_no_error_contains_the_password() {
    for url in [
        "postgres://ana:hunter2@[bad/db",
        "postgres://ana:hunter2@127.0.0.1:1/db",
        "postgres://ana:hunter2@127.0.0.1/db?nonsense=1",
        "postgres://ana:hunter2@/run/nowhere/db",
    ] {
        let refused = agentd_store_postgres::open(url, Some("hunter2"), Options::default()).await;
        let error = refused.map(drop).unwrap_err();
        assert!(!format!("{error} {error:?}").contains("hunter2"), "{error}");
    }
}

async fn appended(kit: &Kit, session: agentd_protocol::SessionId, head: u64) -> Outcome {
    let append = kit.more(session, 1, head, 1);
    // As the session store does: a lost answer is resolved by the same append.
    loop {
        match kit.log.append(append.clone()).await {
            Outcome::Unknown => {}
            outcome => return outcome,
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn i1_i2_appends_go_on_after_all_connections_were_cut_and_nothing_is_written_twice() {
    let Some(database) = Database::create("cut connections") else {
        return;
    };
    let kit = database.kit().await;
    let session = kit.created(1).await;
    let cut = format!(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
         WHERE datname = '{}' AND pid <> pg_backend_pid()",
        database.name
    );
    for head in 1..=20 {
        if head % 5 == 0 {
            database.run(&cut);
        }
        let outcome = appended(&kit, session, head).await;
        let head = head + 1;
        let written = match outcome {
            Outcome::Committed { head: new, .. } | Outcome::Duplicate { head: new } => new == head,
            _ => false,
        };
        assert!(written, "{outcome:?}");
    }
    database.run("SELECT 1");
    assert_eq!(kit.seqs(session).await, (1..=21).collect::<Vec<_>>());
    assert_eq!(kit.log.check().await.unwrap().problems, [""; 0]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn i6_a_row_that_was_changed_in_the_database_is_damaged_and_costs_no_other() {
    let Some(database) = Database::create("a changed row") else {
        return;
    };
    let kit = database.kit().await;
    let (broken, good) = (kit.created(1).await, kit.created(1).await);
    let uid = broken.to_string().replace('-', "");
    let change = format!("UPDATE agentd.session SET name = name || '!' WHERE uid = '{uid}'");
    database.run(&change);
    let rows = kit.log.list(agentd_store::Filter::default()).await.unwrap();
    let damaged = |rows: &[Row], session| {
        let row = rows.iter().find(|row| row.summary.session == session);
        row.unwrap().damaged
    };
    assert!(damaged(&rows, broken) && !damaged(&rows, good));
    assert!(kit.log.claim(broken).await.unwrap().row_damaged);
    assert_eq!(kit.log.check().await.unwrap().problems.len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_text_with_a_nul_is_stored_and_fails_no_append() {
    let Some(database) = Database::create("a NUL") else {
        return;
    };
    let kit = database.kit().await;
    let session = kit.session();
    assert!(kit.commits(kit.create(session, "a\0b", 2)).await);
    let row = kit.log.row(session).await.unwrap().unwrap();
    assert_eq!(row.summary.name, "a\0b");
}
