//! How servers start, fail and end.

use super::*;

fn failing(method: &'static str, starts: usize, act: fn() -> Vec<Act>) -> Arc<Fake> {
    Fake::new(move |number, message| (number < starts && message["method"] == method).then(act))
}

#[tokio::test(start_paused = true)]
async fn i3_a_server_that_dies_in_a_call_gives_one_result_and_is_started_again() {
    let fake = failing("tools/call", 1, || vec![Act::Die("it ended with exit code 1")]);
    let pool = pool(&fake, vec![spec("fake")]);
    let died = echo(&pool).await.outcome;
    assert_eq!(
        (died.status, died.outcome_unknown, died.llm_text.as_str()),
        (
            ToolStatus::Error,
            true,
            "tool server fake has ended: it ended with exit code 1. Whether the call had an effect is unknown: \
             check before you call it again. The next call restarts the server."
        )
    );
    assert_eq!(echo(&pool).await.outcome.status, ToolStatus::Ok);
    assert_eq!(fake.starts(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_hangs_is_told_to_stop_and_replaced() {
    let fake = Fake::new(|number, message| {
        let hangs = message["method"] == "tools/call" || message["method"] == "ping";
        (number == 0 && hangs).then(Vec::new)
    });
    let pool = pool(&fake, vec![spec("fake")]);
    let late = echo(&pool).await.outcome;
    assert_eq!(
        (late.status, late.outcome_unknown, late.duration_ms),
        (ToolStatus::Timeout, true, 60_000)
    );
    fake.told("notifications/cancelled").await;
    fake.told("ping").await;
    fake.ended
        .subscribe()
        .wait_for(|ended| *ended == 1)
        .await
        .unwrap();
    assert_eq!(echo(&pool).await.outcome.status, ToolStatus::Ok);
    assert_eq!(fake.starts(), 2);
}

#[tokio::test(start_paused = true)]
async fn i6_a_server_that_does_not_start_is_left_alone_for_longer_each_time() {
    let fake = failing("initialize", 100, || vec![Act::Die("no such module")]);
    let pool = pool(&fake, vec![spec("fake")]);
    let mut statuses = Vec::new();
    for _ in 0..6 {
        statuses.push(echo(&pool).await.outcome.llm_text);
    }
    assert_eq!(
        statuses[0],
        "tool server fake did not become ready: no such module. The tool was not called. Continue without it and tell \
         the user."
    );
    assert_eq!(
        statuses[5],
        "tool server fake cannot restart for 4 s more because it failed 4 times: tool server fake did not become \
         ready: no such module. The tool was not called. Continue without it, or try later."
    );
    assert_eq!(fake.starts(), 4);
    assert_eq!(pool.status()[0].state, ServerState::Failed);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_says_nothing_at_the_start_is_given_up() {
    let fake = failing("initialize", 1, Vec::new);
    let pool = pool(&fake, vec![spec("fake")]);
    let listings = pool.offers(Path::new(DIR)).await;
    assert!(
        matches!(
            &listings[0].offers,
            Err(McpError::Slow {
                what: "the initialization",
                ..
            })
        ),
        "{listings:?}"
    );
    assert_eq!(*fake.ended.borrow(), 1);
    assert_eq!(echo(&pool).await.outcome.status, ToolStatus::Ok);
}

#[tokio::test(start_paused = true)]
async fn an_idle_server_is_ended_and_its_tools_stay_known() {
    let fake = Fake::good();
    let pool = pool(&fake, vec![spec("fake")]);
    let tended = pool.clone();
    tokio::spawn(async move { tended.tend().await });
    echo(&pool).await;
    assert_eq!(pool.status()[0].state, ServerState::Running);
    fake.ended
        .subscribe()
        .wait_for(|ended| *ended == 1)
        .await
        .unwrap();
    let listings = pool.offers(Path::new(DIR)).await;
    assert_eq!(listings[0].offers.as_ref().unwrap().tools.len(), 1);
    assert_eq!((fake.starts(), pool.status()[0].state), (1, ServerState::Stopped));
    assert_eq!(echo(&pool).await.outcome.status, ToolStatus::Ok);
    assert_eq!(fake.starts(), 2);
}

#[tokio::test(start_paused = true)]
async fn i5_a_server_ends_soon_after_its_session_was_closed_unless_another_uses_it() {
    let fake = Fake::good();
    let pool = pool(&fake, vec![spec("fake")]);
    let (begun, mut ended) = (tokio::time::Instant::now(), fake.ended.subscribe());
    echo(&pool).await;
    // Sessions of another directory do not affect it, and one of the same directory keeps using it.
    pool.release(Path::new("/elsewhere"));
    pool.release(Path::new(DIR));
    tokio::time::advance(Duration::from_secs(20)).await;
    echo(&pool).await;
    tokio::time::advance(Duration::from_secs(20)).await;
    assert_eq!(
        (pool.status()[0].state, *ended.borrow()),
        (ServerState::Running, 0)
    );
    pool.release(Path::new(DIR));
    ended.wait_for(|ended| *ended == 1).await.unwrap();
    assert!(
        begun.elapsed() < Duration::from_secs(80),
        "not only when it has been idle for its limit"
    );
    assert_eq!(echo(&pool).await.outcome.status, ToolStatus::Ok);
}

#[tokio::test(start_paused = true)]
async fn a_server_belongs_to_its_working_directory_unless_it_is_shared() {
    let fake = Fake::good();
    let mut shared = spec("shared");
    shared.scope = Scope::Shared;
    let pool = pool(&fake, vec![spec("fake"), shared]);
    for dir in ["/a", "/b", "/a"] {
        for listing in pool.offers(Path::new(dir)).await {
            listing.offers.unwrap();
        }
    }
    let places: Vec<_> = pool
        .status()
        .into_iter()
        .map(|status| (status.server, status.workdir))
        .collect();
    assert_eq!(
        places,
        [
            ("fake".to_owned(), Some("/a".into())),
            ("fake".to_owned(), Some("/b".into())),
            ("shared".to_owned(), None)
        ]
    );
    assert_eq!(fake.starts(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_crowd_is_bounded_and_the_longest_idle_server_makes_room() {
    let fake = Fake::good();
    let pool = pool(&fake, vec![spec("fake")]);
    for number in 0..70 {
        pool.offers(Path::new(&format!("/{number}"))).await;
    }
    assert_eq!(pool.status().len(), 64);
    fake.ended
        .subscribe()
        .wait_for(|ended| *ended == 6)
        .await
        .unwrap();
}

#[tokio::test(start_paused = true)]
async fn i5_a_closed_pool_has_no_servers_and_starts_none() {
    let fake = Fake::good();
    let pool = pool(&fake, vec![spec("fake")]);
    echo(&pool).await;
    assert!(pool.close(Duration::from_secs(10)).await);
    assert_eq!(*fake.ended.borrow(), 1);
    assert_eq!(
        echo(&pool).await.outcome.llm_text,
        "the tool servers have been shut down. The tool was not called. Continue without it and tell the user."
    );
    drop(pool);
    let other = super::pool(&fake, vec![spec("fake")]);
    echo(&other).await;
    drop(other);
    fake.ended
        .subscribe()
        .wait_for(|ended| *ended == 2)
        .await
        .unwrap();
}

#[tokio::test]
async fn i8_what_is_secret_is_in_no_debug_text_and_bad_specs_are_refused() {
    let fake = Fake::good();
    let mut secret = spec("fake");
    secret.transport = crate::Transport::Http {
        url: "http://localhost/?key=canary".to_owned(),
        headers: [("authorization".to_owned(), "canary".to_owned())].into(),
    };
    secret.limits = Limits::default();
    assert!(!format!("{secret:?}").contains("canary"));
    let stage = || Arc::new(Stage(Arc::clone(&fake)));
    for name in ["", "Files", "a__b", "x/y", "abcdefghijklmnopqrstuvwxyz"] {
        let made = Pool::new(vec![spec(name)], stage(), crate::http_client().unwrap());
        assert!(matches!(made, Err(McpError::Spec { .. })), "{name}");
    }
    let twice = Pool::new(vec![spec("a"), spec("a")], stage(), crate::http_client().unwrap());
    assert!(matches!(twice, Err(McpError::Spec { .. })));
}
