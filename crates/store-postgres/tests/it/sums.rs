//! Rows that were changed in the database: found, not used, and mended where that is certain.

use crate::kit::Kit;
use crate::server::Database;
use agentd_protocol::{Labels, Principal, SessionId, Timestamp, TokenRights};
use agentd_store::cell_sum::SUMS;
use agentd_store::{Charge, Filter, IdempotencyKey, Range, StoreError, StoredToken};
use bytes::Bytes;

/// Tables without a checksum of their rows.
const WITHOUT: [&str; 7] = [
    // Its name is the checksum of its content.
    "blob_chunk",
    // Registrations and their keys: what differs is no node of the fleet.
    "node",
    "node_key",
    "node_barred",
    // Demands of the last seconds.
    "provider_share",
    // A lower end of the stream is refused by the next append.
    "stream",
    "version",
];

/// Columns of sessions that are not summed.
const NOT_SUMMED: [&str; 5] = [
    // The database gives it, and never changes it.
    "id",
    // Which node may run it; the fencing number decides who writes.
    "owner",
    "node",
    "root",
    "claimed_away",
];

/// What orders and searches read: the next append computes it again.
const OF_LISTS: [&str; 2] = ["sort_", "searched"];

fn hex(session: SessionId) -> String {
    session.to_string().replace('-', "")
}

/// A change that the triggers of the database do not see.
fn change(database: &Database, sql: &str) {
    database.run(&format!(
        "SET search_path = agentd; SET session_replication_role = replica; {sql}"
    ));
}

async fn filled(database: &Database) -> (Kit, SessionId) {
    let kit = database.kit().await;
    let (gone, session) = (kit.created(2).await, kit.session());
    let mut append = kit.create(session, "kept", 3);
    append.keys.push(IdempotencyKey {
        principal: Principal::user("ana"),
        key: "k".to_owned(),
        method: "session.create".to_owned(),
        body_hash: [3; 32],
        answer: "{}".to_owned(),
    });
    append.charges.push(Charge {
        account: "team=a".to_owned(),
        tokens: 5,
        micro_usd: 6,
    });
    assert!(kit.commits(append).await);
    kit.log
        .put_blob(session, Bytes::from_static(b"content"))
        .await
        .unwrap();
    let token = StoredToken {
        name: "a".to_owned(),
        hash: [7; 32],
        scopes: vec!["read".to_owned()],
        labels: Labels::from([("team".to_owned(), "a\"\u{1}ü".to_owned())]),
        rights: Some(TokenRights::default()),
        created: Timestamp(5),
        by: Principal::user("ana"),
        expires: None,
        used: None,
        revoked: None,
    };
    assert!(kit.log.add_token(token, kit.now()).await.unwrap());
    let mut spending = kit.more(gone, 1, 2, 0);
    let mut summary = crate::kit::summary(gone, "gone");
    (summary.steps, summary.cost_usd) = (4, 0.1);
    spending.summary = Some(summary);
    assert!(kit.commits(spending).await);
    assert!(kit.log.delete(gone).await.unwrap());
    (kit, session)
}

/// Another value of the type of a column, as SQL.
fn other(column: &str, kind: &str) -> String {
    match kind {
        "bigint" => format!("coalesce({column} # (1 << 20), 4)"),
        "boolean" => format!("NOT {column}"),
        "double precision" => format!("{column} + 0.5"),
        "bytea" => format!("coalesce({column}, '') || '\\x01'::bytea"),
        "jsonb" => "'{\"team\":\"b\"}'".to_owned(),
        _ => format!("coalesce('1' || {column}, '{{}}')"),
    }
}

/// Changes a column of one row, looks, and changes it back.
async fn while_changed(database: &Database, kit: &Kit, (table, name, kind): (&str, &str, &str)) {
    let column = format!("{table}.{name}");
    let which = format!("ctid = (SELECT max(ctid) FROM {table})");
    let changed = other(name, kind);
    change(
        database,
        &format!(
            "CREATE SCHEMA IF NOT EXISTS saved; CREATE TABLE saved.t AS SELECT * FROM {table};
             UPDATE {table} SET {name} = {changed} WHERE {which}"
        ),
    );
    let problems = kit.log.check().await.unwrap().problems;
    assert!(!problems.is_empty(), "{column}");
    let unread = |of: &str| table == of;
    assert_eq!(
        kit.log.tokens().await.unwrap().is_empty(),
        unread("token"),
        "{column}"
    );
    assert_eq!(
        kit.log.spent().await.unwrap().is_empty(),
        unread("spent"),
        "{column}"
    );
    let key = kit.log.key(&Principal::user("ana"), "k").await;
    let refused = unread("idempotency") && !["principal", "key"].contains(&name);
    assert_eq!(
        matches!(key, Err(StoreError::DamagedEntry(_))),
        refused,
        "{column}"
    );
    let charged = kit.log.charged("team=a").await;
    assert_eq!(
        charged.is_err(),
        unread("charge") && name != "account",
        "{column}"
    );
    change(
        database,
        &format!(
            "TRUNCATE {table}; INSERT INTO {table} OVERRIDING SYSTEM VALUE SELECT * FROM saved.t; DROP TABLE saved.t"
        ),
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn i7_doctor_finds_a_change_of_any_column_in_the_database_and_none_is_used() {
    let Some(database) = Database::create("changed columns") else {
        return;
    };
    let (kit, _) = filled(&database).await;
    assert_eq!(kit.log.check().await.unwrap().problems, Vec::<String>::new());
    let columns = database.run(
        "SELECT table_name || ' ' || column_name || ' ' || data_type FROM information_schema.columns
         WHERE table_schema = 'agentd' ORDER BY 1",
    );
    let mut changes = 0;
    for column in columns.lines() {
        let mut words = column.splitn(3, ' ');
        let [table, name, kind] = std::array::from_fn(|_| words.next().unwrap());
        let known = SUMS.iter().any(|of| of.table == table) || ["session", "event"].contains(&table);
        assert_eq!(!known, WITHOUT.contains(&table), "{table} needs a checksum");
        let not_summed = NOT_SUMMED.contains(&name) || OF_LISTS.iter().any(|of| name.starts_with(of));
        if known && !(table == "session" && not_summed) {
            while_changed(&database, &kit, (table, name, kind)).await;
            changes += 1;
        }
    }
    assert!(changes > 50, "{changes}");
    assert_eq!(kit.log.check().await.unwrap().problems, Vec::<String>::new());
    // Using it does not make it whole, and who revokes it removes it.
    change(&database, "UPDATE token SET labels = '{}'");
    kit.log.token_used("a", kit.now()).await.unwrap();
    assert_eq!(kit.log.tokens().await.unwrap(), Vec::new());
    let problems = kit.log.check().await.unwrap().problems;
    assert!(
        problems[0].starts_with("token a: its row is damaged"),
        "{problems:?}"
    );
    change(&database, "UPDATE token SET name = 'a b'");
    let called = "#070707070707";
    assert_eq!(kit.log.damaged_tokens().await.unwrap(), [called]);
    assert!(!kit.log.revoke_token("a", kit.now()).await.unwrap());
    assert!(kit.log.revoke_token(called, kit.now()).await.unwrap());
    assert_eq!(kit.log.damaged_tokens().await.unwrap(), Vec::<String>::new());
    assert_eq!(kit.log.check().await.unwrap().problems, Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn i1_i6_the_damaged_row_of_a_session_is_mended_from_its_log_or_costs_no_other() {
    let Some(database) = Database::create("mended rows") else {
        return;
    };
    let (kit, session) = filled(&database).await;
    let uid = hex(session);
    let damages = [
        "head = 1",
        "deleted_ms = 7",
        "epoch = epoch # 64",
        "created_ms = created_ms # 8",
        "last_append = '\\x01'",
    ];
    for damage in damages {
        change(
            &database,
            &format!("UPDATE session SET {damage} WHERE uid = '{uid}'"),
        );
        let rows = kit.log.list(Filter::default()).await.unwrap();
        let row = rows.iter().find(|row| row.summary.session == session);
        let row = row.unwrap_or_else(|| panic!("{damage} hides the session"));
        assert!(row.damaged, "{damage}");
        assert!(
            matches!(kit.log.row(session).await, Err(StoreError::Aside(_))),
            "{damage}"
        );
        kit.pass(1_000);
        kit.log.purge(kit.now()).await.unwrap();
        let claim = kit.log.claim(session).await.unwrap();
        assert_eq!((claim.head, claim.row_damaged), (3, false), "{damage}");
        assert!(!kit.log.row(session).await.unwrap().unwrap().damaged, "{damage}");
        let page = kit.log.load(session, Range::default()).await.unwrap();
        assert_eq!((page.events.len(), page.damaged), (3, None), "{damage}");
    }
    // An id that changed is the one that the log names.
    change(
        &database,
        &format!(
            "UPDATE session SET uid = '{}' WHERE uid = '{uid}'",
            "7".repeat(32)
        ),
    );
    let changed: SessionId = "7".repeat(32).parse().unwrap();
    assert!(kit.listed(Filter::default()).await.contains(&changed));
    assert!(matches!(
        kit.log.claim(changed).await,
        Err(StoreError::NotFound(_))
    ));
    assert!(kit.log.claim(session).await.is_ok());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn i6_a_list_row_without_a_summary_is_damaged_and_its_session_stays() {
    let Some(database) = Database::create("no summary") else {
        return;
    };
    let kit = database.kit().await;
    let session = kit.created(2).await;
    for damage in [
        "summary = NULL",
        "summary = NULL, row_sum = NULL",
        "summary = '7'",
    ] {
        change(&database, &format!("UPDATE session SET {damage}"));
        let rows = kit.log.list(Filter::default()).await.unwrap();
        let listed: Vec<_> = rows
            .iter()
            .map(|row| (row.summary.session, row.damaged))
            .collect();
        assert_eq!(listed, [(session, true)], "{damage}");
        assert!(
            matches!(kit.log.row(session).await, Err(StoreError::DamagedRow(_))),
            "{damage}"
        );
        let problems = kit.log.check().await.unwrap().problems;
        assert!(
            problems[0].contains("list row is damaged"),
            "{damage}: {problems:?}"
        );
        kit.pass(1_000);
        assert_eq!(kit.log.purge(kit.now()).await.unwrap(), 0, "{damage}");
        assert!(kit.log.claim(session).await.unwrap().row_damaged, "{damage}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn i6_no_node_takes_over_a_session_that_is_set_aside() {
    let Some(database) = Database::create("set aside") else {
        return;
    };
    let (kit, session) = filled(&database).await;
    let (other, uid) = (kit.created(2).await, hex(session));
    // With a damaged event as well, nothing tells where the log ends.
    change(
        &database,
        &format!("UPDATE session SET head = 1, resumable = true, owner = NULL WHERE uid = '{uid}'"),
    );
    change(&database, "UPDATE event SET at_ms = at_ms + 1 WHERE seq = 3");
    assert!(matches!(kit.log.claim(session).await, Err(StoreError::Aside(_))));
    kit.log
        .register_node("a", std::time::Duration::from_secs(60))
        .await
        .unwrap();
    let adopted = kit.log.fleet().unwrap().adopt().await.unwrap();
    assert!(adopted.iter().all(|(taken, _)| *taken != session), "{adopted:?}");
    assert!(kit.log.claim(other).await.is_ok());
    assert!(kit.log.delete(session).await.unwrap());
    assert!(kit.log.row(session).await.unwrap().is_none());
}
