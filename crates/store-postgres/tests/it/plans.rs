//! How the server carries out an append and reads pages. Plans are made once per connection, here while the tables are empty.

use crate::server::Database;
use agentd_store::Range;

/// Makes the server log the plans of this database.
const LOG_PLANS: &str = "DO $$
DECLARE setting text[];
BEGIN
  FOREACH setting SLICE 1 IN ARRAY ARRAY[
    ['session_preload_libraries', 'auto_explain'], ['auto_explain.log_min_duration', '0'],
    ['auto_explain.log_nested_statements', 'on']] LOOP
    EXECUTE format('ALTER DATABASE %I SET %s = %L', current_database(), setting[1], setting[2]);
  END LOOP;
END $$";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_append_looks_each_row_up_whatever_the_tables_had_when_it_was_planned() {
    let Some(database) = Database::create("plans") else {
        return;
    };
    database.run(LOG_PLANS);
    let kit = database.kit().await;
    // Without statistics the server expects some rows.
    database.run("VACUUM ANALYZE agentd.session");
    let session = kit.created(2).await;
    assert!(kit.commits(kit.more(session, 1, 2, 1)).await);
    let log = database.server_log();
    let plans = log.split("LOG:  duration:");
    let updates: Vec<&str> = plans
        .filter(|plan| plan.contains("->  Update on session s"))
        .collect();
    assert!(updates.len() >= 2, "{log}");
    for plan in updates {
        assert!(plan.contains("Bitmap Index Scan on session_uid_key"), "{plan}");
        assert!(
            !plan.contains("Seq Scan") && !plan.contains("Index Scan using"),
            "{plan}"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pages_of_events_are_planned_once_and_read_in_the_order_of_an_index() {
    let Some(database) = Database::create("page_plans") else {
        return;
    };
    database.run(LOG_PLANS);
    let kit = database.kit().await;
    kit.log.watch(Some(0), 9).await.unwrap();
    let session = kit.created(2).await;
    // By its statistics, the table of one row is best read from its begin to its end.
    database.run("ANALYZE");
    for _ in 0..9 {
        kit.log.watch(Some(0), 9).await.unwrap();
        kit.log.load(session, Range::default()).await.unwrap();
    }
    let log = database.server_log();
    // The conditions that a plan for the values of one call would have without parameters.
    for (page, conditions) in [
        (
            "AS next) AS page",
            ["(cursor > $1)", "Index Scan using event_pkey on event"],
        ),
        ("AS page ON before", ["(uid = $1)", "(seq > $2)"]),
    ] {
        let plans = log.split("LOG:  duration:").filter(|plan| plan.contains(page));
        let plans: Vec<&str> = plans.collect();
        assert!(plans.len() >= 9, "{log}");
        for plan in plans {
            let as_wanted = conditions.iter().all(|condition| plan.contains(condition));
            assert!(as_wanted && !plan.contains("Seq Scan"), "{plan}");
        }
    }
}
