use crate::tests::kit::{Kit, event};
use agentd_protocol::{Labels, Principal, SessionId, TokenRights};
use agentd_store::{
    Append, Backend, Charge, Filter, IdempotencyKey, Options, Outcome, StoreError, StoredToken,
};
use bytes::Bytes;
use rusqlite::Connection;
use rusqlite::types::Value;
use std::sync::Arc;

/// Columns that decide nothing, with the reason.
const DECIDE_NOTHING: [(&str, &str); 1] = [
    // The fencing number does.
    ("session", "owner"),
];

/// Tables without checksums, with the reason.
const WITHOUT: [&str; 5] = [
    // Its name is the checksum of its content, and tells whether that is in a file.
    "blob",
    // Registrations end with their process.
    "node",
    // Nothing reads it.
    "snapshot",
    "sqlite_sequence",
    "sqlite_stat1",
];

fn raw(kit: &Kit) -> Connection {
    let connection = Connection::open(kit.dir().join("agentd.db")).unwrap();
    crate::row_sum::define(&connection).unwrap();
    connection
}

fn token(name: &str) -> StoredToken {
    StoredToken {
        name: name.to_owned(),
        hash: [7; 32],
        scopes: vec!["read".to_owned()],
        labels: Labels::from([("team".to_owned(), "a".to_owned())]),
        rights: Some(TokenRights::default()),
        created: agentd_protocol::Timestamp(5),
        by: Principal::user("ana"),
        expires: None,
        used: None,
        revoked: None,
    }
}

/// A store with a row of each kind.
async fn filled() -> (Kit, SessionId) {
    let kit = Kit::sqlite();
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
    assert!(kit.log.add_token(token("a"), kit.now()).await.unwrap());
    let mut spending = kit.more(gone, 1, 2, 0);
    let mut summary = crate::tests::kit::summary(gone, "gone");
    summary.steps = 4;
    spending.summary = Some(summary);
    assert!(kit.commits(spending).await);
    assert!(kit.log.delete(gone).await.unwrap());
    (kit, session)
}

fn tables(connection: &Connection) -> Vec<(String, Vec<String>)> {
    let list = |sql: &str| -> Vec<String> {
        let mut select = connection.prepare(sql).unwrap();
        let rows = select.query_map([], |row| row.get(0)).unwrap();
        rows.map(Result::unwrap).collect()
    };
    let tables = list("SELECT name FROM sqlite_schema WHERE type = 'table'");
    let tables = tables
        .into_iter()
        .filter(|table| !WITHOUT.contains(&table.as_str()));
    tables
        .map(|table| {
            let columns = list(&format!("SELECT name FROM pragma_table_info('{table}')"));
            (table, columns)
        })
        .collect()
}

/// Another value of the same type.
fn changed(value: &Value) -> Value {
    match value {
        Value::Null => Value::Integer(4),
        Value::Integer(number) => Value::Integer(number ^ (1 << 20)),
        Value::Real(number) => Value::Real(number + 0.5),
        Value::Text(text) => {
            let (first, rest) = text.split_at_checked(1).unwrap_or(("", ""));
            Value::Text(format!("{}{rest}", if first == "1" { "3" } else { "1" }))
        }
        Value::Blob(bytes) => {
            let mut bytes = bytes.clone();
            match bytes.first_mut() {
                Some(first) => *first ^= 1,
                None => bytes.push(1),
            }
            Value::Blob(bytes)
        }
    }
}

/// Changes a column of each row, one after the other, and calls `look` while it is changed.
async fn each_change(kit: &Kit, mut look: impl AsyncFnMut(&str)) -> usize {
    let connection = raw(kit);
    let mut changes = 0;
    for (table, columns) in tables(&connection) {
        let key = if table == "blob_use" { "name" } else { "rowid" };
        let keys: Vec<Value> = {
            let mut select = connection.prepare(&format!("SELECT {key} FROM {table}")).unwrap();
            let rows = select.query_map([], |row| row.get(0)).unwrap();
            rows.map(Result::unwrap).collect()
        };
        assert!(!keys.is_empty(), "the test has no row of {table}");
        for column in columns {
            if DECIDE_NOTHING.contains(&(&table, &column)) {
                continue;
            }
            for place in &keys {
                let read = format!("SELECT {column} FROM {table} WHERE {key} = ?1");
                let before: Value = connection.query_row(&read, [place], |row| row.get(0)).unwrap();
                let after = changed(&before);
                let write = format!("UPDATE {table} SET {column} = ?2 WHERE {key} = ?1");
                // Only the types of the table refuse a change.
                let tries = [after, Value::Text("1".to_owned()), Value::Blob(vec![1])];
                let mut tries = tries.into_iter();
                let after = tries.find(|after| {
                    connection
                        .execute(&write, rusqlite::params![place, after])
                        .is_ok()
                });
                let after = after.unwrap_or_else(|| panic!("cannot change {table}.{column}"));
                let (place, there) = if key == column
                    || (column == "id" && table == "session")
                    || (column == "cursor" && table == "event")
                {
                    (after.clone(), true)
                } else {
                    (place.clone(), false)
                };
                look(&format!(
                    "{table}.{column} of {place:?} from {before:?} to {after:?}"
                ))
                .await;
                let back = if there {
                    format!("UPDATE {table} SET {column} = ?2 WHERE {column} = ?1")
                } else {
                    write
                };
                assert_eq!(
                    connection
                        .execute(&back, rusqlite::params![place, before])
                        .unwrap(),
                    1
                );
                changes += 1;
            }
        }
    }
    changes
}

#[tokio::test]
async fn i7_doctor_finds_a_change_of_any_column_of_any_row() {
    let (kit, _) = filled().await;
    assert_eq!(kit.log.check().await.unwrap().problems, Vec::<String>::new());
    let changes = each_change(&kit, async |change| {
        let problems = kit.log.check().await.unwrap().problems;
        assert!(!problems.is_empty(), "{change}");
    });
    assert!(changes.await > 80);
    assert_eq!(kit.log.check().await.unwrap().problems, Vec::<String>::new());
}

#[tokio::test]
async fn i7_a_token_opens_nothing_while_any_of_its_columns_is_changed() {
    let (kit, _) = filled().await;
    each_change(&kit, async |change| {
        let tokens = kit.log.tokens().await.unwrap();
        assert_eq!(tokens.is_empty(), change.starts_with("token."), "{change}");
    })
    .await;
    // Using it does not make it whole, and who revokes it removes it.
    let connection = raw(&kit);
    let labels = "UPDATE token SET labels = '{\"team\":\"b\"}'";
    assert_eq!(connection.execute(labels, []).unwrap(), 1);
    kit.log.token_used("a", kit.now()).await.unwrap();
    assert_eq!(kit.log.settle_token_rights().await.unwrap(), Vec::<String>::new());
    assert_eq!(kit.log.tokens().await.unwrap(), Vec::new());
    let problems = kit.log.check().await.unwrap().problems;
    assert!(
        problems[0].starts_with("token a: its row is damaged"),
        "{problems:?}"
    );
    assert!(kit.log.revoke_token("a", kit.now()).await.unwrap());
    assert_eq!(kit.log.check().await.unwrap().problems, Vec::<String>::new());
}

#[tokio::test]
async fn i1_i7_a_changed_answer_account_or_sum_is_not_used() {
    let (kit, session) = filled().await;
    let ana = Principal::user("ana");
    each_change(&kit, async |change| {
        let key = kit.log.key(&ana, "k").await;
        let others = change.contains("idempotency.principal") || change.contains("idempotency.key");
        match change.starts_with("idempotency.") && !others {
            true => assert!(matches!(key, Err(StoreError::DamagedEntry(_))), "{change}"),
            // The row of another key is no answer to this one.
            false => assert_eq!(key.unwrap().is_none(), others, "{change}"),
        }
        let charged = kit.log.charged("team=a").await;
        match change.starts_with("charge.") && !change.contains("charge.account") {
            true => assert!(matches!(charged, Err(StoreError::DamagedEntry(_))), "{change}"),
            false => assert!(charged.is_ok(), "{change}"),
        }
        let spent = kit.log.spent().await.unwrap();
        assert_eq!(spent.is_empty(), change.starts_with("spent."), "{change}");
    })
    .await;
    // A command with the damaged key does not run a second time.
    assert_eq!(
        raw(&kit).execute("UPDATE idempotency SET at_ms = 7", []).unwrap(),
        1
    );
    let mut append = kit.more(session, 1, 3, 1);
    append.keys.push(IdempotencyKey {
        principal: ana,
        key: "k".to_owned(),
        method: "session.create".to_owned(),
        body_hash: [3; 32],
        answer: "{}".to_owned(),
    });
    let outcome = kit.log.append(append).await;
    assert!(
        matches!(outcome, Outcome::KeyTaken { same_body: false, .. }),
        "{outcome:?}"
    );
    // An addition to a damaged account does not make it whole.
    assert_eq!(raw(&kit).execute("UPDATE charge SET tokens = 1", []).unwrap(), 1);
    let mut append = kit.more(session, 1, 3, 1);
    append.charges.push(Charge {
        account: "team=a".to_owned(),
        tokens: 5,
        micro_usd: 6,
    });
    assert!(kit.commits(append).await);
    assert!(matches!(
        kit.log.charged("team=a").await,
        Err(StoreError::DamagedEntry(_))
    ));
}

#[tokio::test]
async fn rows_of_an_earlier_version_get_their_sums_once_and_for_all() {
    let (kit, session) = filled().await;
    kit.log.close().await.unwrap();
    raw(&kit)
        .execute_batch(&format!(
            "UPDATE session SET row_sum = NULL; {}",
            crate::tests::sqlite::WITHOUT_SUMS
        ))
        .unwrap();
    let store = reopened(&kit).unwrap();
    assert_eq!(store.check().await.unwrap().problems, Vec::<String>::new());
    assert!(is_as_before(store.as_ref(), session, 3).await);
    assert_eq!(store.tokens().await.unwrap(), [token("a")]);
    assert_eq!(store.spent().await.unwrap().len(), 1);
    let ana = Principal::user("ana");
    assert!(store.key(&ana, "k").await.is_ok());
    assert_eq!(store.charged("team=a").await.unwrap().tokens, 5);
}

fn reopened(kit: &Kit) -> Result<Arc<dyn Backend>, StoreError> {
    let dir = kit.dir().join("copy");
    let _ = std::fs::remove_dir_all(&dir);
    std::fs::create_dir(&dir).unwrap();
    for name in ["agentd.db", "agentd.db-wal", "agentd.db.witness"] {
        if kit.dir().join(name).exists() {
            std::fs::copy(kit.dir().join(name), dir.join(name)).unwrap();
        }
    }
    crate::open("sqlite:agentd.db", &dir, Options::default())
}

/// Whether a session of a store can be claimed and has all its events.
async fn is_as_before(store: &dyn Backend, session: SessionId, head: u64) -> bool {
    let claim = store.claim(session).await;
    let page = store.load(session, agentd_store::Range::default()).await;
    claim.is_ok_and(|claim| claim.head == head)
        && page.is_ok_and(|page| page.events.len() as u64 == head && page.damaged.is_none())
}

#[tokio::test]
async fn i1_i6_a_change_of_any_column_of_a_session_stops_no_start_and_hides_no_session() {
    let (kit, session) = filled().await;
    let other = kit.created(2).await;
    let (mut mended, mut aside) = (0, 0);
    each_change(&kit, async |change| {
        if !change.starts_with("session.") {
            return;
        }
        let store = reopened(&kit).unwrap_or_else(|error| panic!("{change}: {error}"));
        let rows = store.list(Filter::default()).await.unwrap();
        let damaged = rows.iter().filter(|row| row.damaged).count();
        assert!(rows.len() >= 2, "{change}: {rows:?}");
        let whole = [
            is_as_before(store.as_ref(), session, 3).await,
            is_as_before(store.as_ref(), other, 2).await,
        ];
        assert!(whole.contains(&true), "{change}");
        if whole == [true, true] {
            mended += 1;
        } else {
            aside += 1;
            // Without its events, a session ends as faulted when it is loaded.
            let empty = change.starts_with("session.id ");
            assert!(damaged > 0 || empty, "{change}: {rows:?}");
        }
    })
    .await;
    assert!(mended > aside, "{mended} {aside}");
}

#[tokio::test]
async fn i1_i6_a_head_that_is_too_small_is_mended_from_whole_events_and_else_costs_its_session() {
    let (kit, session) = filled().await;
    let other = kit.created(2).await;
    let connection = raw(&kit);
    let short = "UPDATE session SET head = 1 WHERE name = 'kept'";
    assert_eq!(connection.execute(short, []).unwrap(), 1);
    // While the daemon runs, and after a start.
    let mut append = kit.more(session, 1, 1, 1);
    append.events = vec![event(session, 2)];
    assert!(matches!(kit.log.append(append).await, Outcome::Fenced { .. }));
    let store = reopened(&kit).unwrap();
    assert!(is_as_before(store.as_ref(), session, 3).await);
    assert!(is_as_before(kit.log.as_ref(), session, 3).await);
    // One of its events is damaged as well.
    assert_eq!(connection.execute(short, []).unwrap(), 1);
    let line = "UPDATE event SET at_ms = at_ms + 1 WHERE seq = 3";
    assert_eq!(connection.execute(line, []).unwrap(), 1);
    let store = reopened(&kit).unwrap();
    assert!(is_as_before(store.as_ref(), other, 2).await);
    assert!(matches!(store.claim(session).await, Err(StoreError::Aside(aside)) if aside == session));
    assert!(matches!(store.row(session).await, Err(StoreError::Aside(_))));
    let rows = store.list(Filter::default()).await.unwrap();
    let row = rows.iter().find(|row| row.summary.session == session).unwrap();
    assert!(
        row.damaged && row.summary.status.reason.contains("set aside"),
        "{row:?}"
    );
    let all = store.load(session, agentd_store::Range::default()).await.unwrap();
    assert_eq!(
        (all.events.len(), all.damaged),
        (3, Some(3)),
        "its log can be read"
    );
    assert!(store.delete(session).await.unwrap());
    assert!(store.row(session).await.unwrap().is_none());
    let append: Append = kit.more(other, 2, 2, 1);
    assert!(matches!(store.append(append).await, Outcome::Committed { .. }));
}

#[tokio::test]
async fn i7_a_session_that_a_bit_deleted_is_shown_and_not_removed() {
    let (kit, session) = filled().await;
    let deleted = "UPDATE session SET deleted_ms = 7 WHERE name = 'kept'";
    assert_eq!(raw(&kit).execute(deleted, []).unwrap(), 1);
    assert!(kit.listed(Filter::default()).await.contains(&session));
    kit.pass(1_000);
    kit.log.purge(kit.now()).await.unwrap();
    assert!(is_as_before(kit.log.as_ref(), session, 3).await);
    assert!(kit.log.row(session).await.unwrap().is_some());
}
