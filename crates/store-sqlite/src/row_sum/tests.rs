use crate::tests::kit::{Kit, summary};
use agentd_protocol::{Labels, RunState, SessionId};
use agentd_store::{Append, Filter, Outcome, StoreError};
use bytes::Bytes;
use rusqlite::Connection;

/// Changes rows without the store's knowledge.
fn damage(kit: &Kit, sql: &str) {
    let connection = Connection::open(kit.dir().join("agentd.db")).unwrap();
    super::define(&connection).unwrap();
    assert!(connection.execute(sql, []).unwrap() > 0, "{sql}");
}

async fn two(kit: &Kit) -> (SessionId, SessionId) {
    (kit.created(1).await, kit.created(1).await)
}

/// The effects of a flipped bit in each column of the row, as SQL.
fn damages(session: SessionId) -> Vec<String> {
    let uid = session.to_string().replace('-', "");
    let changes = [
        "summary = 'x' || substr(summary, 2)",
        "summary = replace(summary, '\"steps\":0', '\"steps\":8')",
        "summary = ''",
        "summary = NULL",
        "summary = NULL, row_sum = NULL",
        "summary = '7'",
        "labels = '{' || labels",
        "state = 'running(modem)'",
        "name = name || '!'",
        "closed = 1",
        "resumable = 1 - resumable",
        "wake_at_ms = 7",
        "row_sum = row_sum + 1",
    ];
    changes
        .iter()
        .map(|change| format!("UPDATE session SET {change} WHERE uid = '{uid}'"))
        .collect()
}

#[tokio::test]
async fn i6_a_damaged_row_costs_its_own_session_and_no_list() {
    for index in 0..damages(SessionId::NIL).len() {
        let kit = Kit::sqlite();
        let (broken, good) = two(&kit).await;
        let sql = damages(broken).swap_remove(index);
        damage(&kit, &sql);
        let rows = kit.log.list(Filter::default()).await.unwrap();
        let row = |session| rows.iter().find(|row| row.summary.session == session).unwrap();
        assert_eq!(rows.len(), 2, "{sql}");
        assert!(row(broken).damaged && !row(good).damaged, "{sql}");
        assert_eq!(row(broken).summary.status.state, RunState::Faulted, "{sql}");
        let resumed = Filter {
            resumable_or_timed: true,
            ..Filter::default()
        };
        let found = kit.log.list(resumed).await.unwrap();
        assert!(found.iter().any(|row| row.summary.session == broken), "{sql}");
        let labelled = Filter {
            labels: Labels::from([("team".to_owned(), "x".to_owned())]),
            ..Filter::default()
        };
        assert_eq!(kit.log.list(labelled).await.unwrap(), Vec::new(), "{sql}");
        let error = kit.log.row(broken).await.unwrap_err();
        assert!(
            matches!(error, StoreError::DamagedRow(session) if session == broken),
            "{sql}"
        );
        assert!(kit.log.row(good).await.unwrap().is_some(), "{sql}");
        let problems = kit.log.check().await.unwrap().problems;
        assert!(
            problems
                .iter()
                .any(|problem| problem.contains("list row is damaged")),
            "{sql}: {problems:?}"
        );
        // It is no remainder of an interrupted import.
        kit.pass(1_000);
        assert_eq!(kit.log.purge(kit.now()).await.unwrap(), 0, "{sql}");
        assert_eq!(kit.log.count().await.unwrap(), 2, "{sql}");
        let id = broken.to_string();
        let found = kit.log.resolve(&id, &Labels::new()).await.unwrap();
        assert_eq!(found.first().map(|(found, _)| *found), Some(broken), "{sql}");
        assert!(kit.log.claim(broken).await.unwrap().row_damaged, "{sql}");
    }
}

#[tokio::test]
async fn an_append_of_no_events_mends_a_damaged_row() {
    let kit = Kit::sqlite();
    let (broken, _) = two(&kit).await;
    damage(&kit, &damages(broken).swap_remove(0));
    let claim = kit.log.claim(broken).await.unwrap();
    assert!(claim.row_damaged);
    let mut append = Append::new(broken, claim.epoch, claim.head, kit.stamp().append());
    append.summary = Some(summary(broken, "mended"));
    assert!(matches!(kit.log.append(append).await, Outcome::Committed { head, .. } if head == claim.head));
    assert!(!kit.log.row(broken).await.unwrap().unwrap().damaged);
    assert!(!kit.log.claim(broken).await.unwrap().row_damaged);
    assert_eq!(kit.log.check().await.unwrap().problems, Vec::<String>::new());
}

#[tokio::test]
async fn i7_a_blob_whose_content_changed_is_not_given_out() {
    let kit = Kit::sqlite();
    let session = kit.created(1).await;
    let small = kit
        .log
        .put_blob(session, Bytes::from_static(b"small"))
        .await
        .unwrap();
    let large = kit
        .log
        .put_blob(session, Bytes::from(vec![7; 300_000]))
        .await
        .unwrap();
    assert!(kit.log.blob(&large).await.unwrap().is_some());
    damage(&kit, "UPDATE blob SET bytes = x'00' WHERE bytes IS NOT NULL");
    let file = kit.dir().join("blobs").join(&large[..2]).join(&large);
    std::fs::write(file, "other").unwrap();
    for name in [small, large] {
        let error = kit.log.blob(&name).await.unwrap_err();
        assert!(matches!(error, StoreError::DamagedBlob(damaged) if damaged == name));
        let problems = kit.log.check().await.unwrap().problems;
        assert!(
            problems.contains(&format!(
                "blob {name}: its content does not match what was written"
            )),
            "{problems:?}"
        );
    }
}
