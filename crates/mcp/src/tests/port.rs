//! The pool as sessions see it.

use super::*;
use crate::Bounds;
use agentd_tools::Remote as _;

fn bounded(fake: &Arc<Fake>, names: &[&str], patience: Duration) -> Pool {
    let launch = Arc::new(Stage(Arc::clone(fake)));
    let specs = names.iter().map(|name| spec(name)).collect();
    let bounds = Bounds { servers: 4, patience };
    Pool::bounded(specs, launch, crate::http_client().unwrap(), bounds).unwrap()
}

#[tokio::test(start_paused = true)]
async fn i6_a_server_that_is_slow_is_waited_for_only_so_long_and_its_start_goes_on() {
    let silent =
        |number: usize, message: &Value| (number == 0 && message["method"] == "initialize").then(Vec::new);
    let fake = Fake::new(silent);
    let pool = bounded(&fake, &["fake"], Duration::from_secs(2));
    let servers = ["fake".to_owned()];
    let found = pool.offered(Path::new(DIR), &servers).await;
    let why = found[0].tools.as_ref().unwrap_err();
    assert!(why.contains("the request for its tools within 2 s"), "{why}");
    assert_eq!(
        (fake.starts(), *fake.ended.borrow()),
        (1, 0),
        "it is still being started"
    );
    fake.ended
        .subscribe()
        .wait_for(|ended| *ended == 1)
        .await
        .unwrap();
    let found = pool.offered(Path::new(DIR), &servers).await;
    assert_eq!(found[0].tools.as_ref().unwrap().len(), 1);
    let row = &pool.status()[0];
    assert_eq!((row.state, row.restarts), (ServerState::Running, 1));
}

#[tokio::test(start_paused = true)]
async fn only_servers_that_are_wanted_are_started() {
    let fake = Fake::good();
    let pool = bounded(&fake, &["one", "two"], Duration::from_secs(2));
    assert_eq!(pool.servers(), ["one", "two"]);
    assert_eq!(pool.offered(Path::new(DIR), &[]).await, []);
    assert_eq!(fake.starts(), 0);
    let found = pool.offered(Path::new(DIR), &["two".to_owned()]).await;
    assert_eq!(
        (found.len(), found[0].server.as_str(), fake.starts()),
        (1, "two", 1)
    );
    let spec = found[0].tools.as_ref().unwrap()[0].spec();
    assert_eq!(
        (spec.name.as_ref(), spec.server.as_deref()),
        ("mcp__two__echo", Some("two"))
    );
    assert_eq!(pool.known().len(), 1);
    let states: Vec<_> = pool.status().into_iter().map(|row| row.state).collect();
    assert_eq!(states, [ServerState::Stopped, ServerState::Running]);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_lacks_a_setting_is_not_started_and_says_why() {
    let fake = Fake::good();
    let mut lacking = spec("fake");
    lacking.lacks = Some("the variable X is not set".to_owned());
    lacking.without = ["never_*".to_owned()].into();
    assert!(!lacking.wants("never_mind") && lacking.wants("echo"));
    let pool = pool(&fake, vec![lacking]);
    let found = pool.offered(Path::new(DIR), &["fake".to_owned()]).await;
    let why = found[0].tools.as_ref().unwrap_err();
    assert!(why.contains("the variable X is not set"), "{why}");
    let answer = echo(&pool).await.outcome;
    assert_eq!(answer.status, ToolStatus::Error);
    assert_eq!((fake.starts(), pool.status()[0].state), (0, ServerState::Failed));
}
