//! How the server carries out an append. Plans are made once per connection, here while the tables are empty.

use crate::server::Database;

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
