//! A third-party mock of five providers, in strict mode and in chaos mode: `@copilotkit/aimock`.

use agentd_client::Client;
use agentd_protocol::{Block, CreateParams, EndReason, TurnFinished};
use agentd_tests::{Aimock, Daemon, DaemonOptions, Follower, Tap, check_log};
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

/// Model name, dialect, path below the server, and the provider's name of the model.
const SPOKEN: [(&str, &str, &str, &str); 5] = [
    ("mock-chat", "openai-chat", "/v1", "gpt-5"),
    ("mock-responses", "openai-responses", "/v1", "gpt-5"),
    ("mock-anthropic", "anthropic", "", "claude-sonnet-5-5"),
    ("mock-gemini", "gemini", "", "gemini-2.5-pro"),
    ("mock-ollama", "ollama", "", "qwen3"),
];
const SESSIONS: usize = 100;
/// Sessions of all dialects that run at the same time: the mock and the machine are small.
const AT_ONCE: usize = 150;
const COMPLETED: &str = "completed";

/// Short waits, so that a fleet with failures finishes soon.
const QUICK: &str = "base_ms = 20\ncap_ms = 2000";

async fn daemon(url: &str, retry: &str) -> Daemon {
    let mut config = format!("[retry]\n{retry}\n[scheduler]\ncircuit_cap_ms = 4000\n");
    for (name, dialect, path, model) in SPOKEN {
        config += &format!(
            r#"[providers.{name}]
dialect = "{dialect}"
base_url = "{url}{path}"
credentials = [{{ name = "main", env = "AGENTD_TEST_KEY" }}]
max_concurrent = 32
[models.{name}]
provider = "{name}"
model = "{model}"
context_window = 200000
max_output = 8192
thinking = "medium"
"#
        );
    }
    Daemon::start(DaemonOptions {
        config,
        ..DaemonOptions::default()
    })
    .await
}

/// Runs a session with this prompt to the end of its turn.
async fn run(client: &Client, workdir: String, model: &str, words: &str) -> (String, TurnFinished) {
    std::fs::write(format!("{workdir}/notes.txt"), "the moon is full\n").unwrap();
    let params = CreateParams {
        prompt: Some(vec![Block::text(words)]),
        workdir,
        model: Some(model.to_owned()),
        ..CreateParams::default()
    };
    let session = client.create(&params).await.unwrap().session.to_string();
    let mut follower = Follower::attach(client, &session).await;
    let end = follower.turn_finished(1).await;
    check_log(client, &session).await;
    (session, end)
}

/// `completed`, or the class of the failure.
fn how(end: &TurnFinished) -> String {
    match (&end.error, end.reason) {
        (None, EndReason::Completed) => COMPLETED.to_owned(),
        (Some(error), EndReason::ModelError) => error.class.clone(),
        (error, reason) => format!("{reason:?} {error:?}"),
    }
}

/// Runs a hundred sessions in each dialect concurrently; counts their ends: `completed`, or the class of the failure.
async fn fleet(daemon: &Daemon) -> BTreeMap<(String, String), usize> {
    let (mut running, places) = (JoinSet::new(), Arc::new(Semaphore::new(AT_ONCE)));
    for (name, ..) in SPOKEN {
        // One connection supports a few hundred viewers.
        let client = daemon.client().await;
        for n in 0..SESSIONS {
            let (client, workdir) = (client.clone(), daemon.workdir(&format!("{name}-{n}")));
            let places = Arc::clone(&places);
            running.spawn(async move {
                let _place = places.acquire_owned().await.unwrap();
                let (_, end) = run(&client, workdir, name, "Please look around.").await;
                if end.reason == EndReason::Completed {
                    assert_eq!(
                        (end.steps, end.tool_calls, end.text.as_str()),
                        (3, 3, "All done, said the mock.")
                    );
                }
                (name.to_owned(), how(&end))
            });
        }
    }
    let mut ends = BTreeMap::new();
    while let Some(end) = running.join_next().await {
        *ends.entry(end.unwrap()).or_default() += 1;
    }
    ends
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_sessions_in_each_dialect_finish_at_a_strict_mock() {
    let Some(mock) = Aimock::start("a_hundred_sessions_in_each_dialect_finish_at_a_strict_mock", &[]).await
    else {
        return;
    };
    let daemon = daemon(mock.url(), QUICK).await;
    let ends = fleet(&daemon).await;
    let wanted = SPOKEN.map(|(name, ..)| ((name.to_owned(), COMPLETED.to_owned()), SESSIONS));
    assert_eq!(ends, BTreeMap::from(wanted));
    let mut asked: BTreeMap<u64, usize> = BTreeMap::new();
    for (path, status) in mock.journal().await {
        if !path.starts_with("/__aimock") {
            *asked.entry(status).or_default() += 1;
        }
    }
    let calls = SPOKEN.len() * SESSIONS * 3;
    assert_eq!(
        asked,
        BTreeMap::from([(200, calls)]),
        "three requests a session, none refused"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_sessions_in_each_dialect_end_with_the_right_class_in_chaos() {
    let chaos = [
        "--chaos-drop",
        "0.1",
        "--chaos-malformed",
        "0.05",
        "--chaos-disconnect",
        "0.1",
    ];
    let test = "a_hundred_sessions_in_each_dialect_end_with_the_right_class_in_chaos";
    let Some(mock) = Aimock::start(test, &chaos).await else {
        return;
    };
    let daemon = daemon(mock.url(), QUICK).await;
    let ends = fleet(&daemon).await;
    for ((name, end), count) in &ends {
        let known = [COMPLETED, "transient"];
        assert!(known.contains(&end.as_str()), "{name}: {count} ended with {end}");
    }
    for (name, ..) in SPOKEN {
        // Each attempt fails with a chance of a quarter, so six in a row are rare.
        let completed = ends.get(&(name.to_owned(), COMPLETED.to_owned()));
        assert!(
            completed.is_some_and(|count| *count >= SESSIONS * 9 / 10),
            "{ends:?}"
        );
    }
}

/// One session in each dialect, with a single retry, on a mock whose every answer has this fault; returns the ends.
async fn always(test: &str, fault: &str) -> Option<BTreeMap<&'static str, String>> {
    let mock = Aimock::start(test, &[fault, "1"]).await?;
    let daemon = daemon(mock.url(), "base_ms = 20\nmax_retries = 1\ncap_ms = 120000").await;
    let client = daemon.client().await;
    let mut running = JoinSet::new();
    for (name, ..) in SPOKEN {
        let (client, workdir) = (client.clone(), daemon.workdir(&format!("{name}-{fault}")));
        running.spawn(async move {
            let (_, end) = run(&client, workdir, name, "Please look around.").await;
            (name, how(&end))
        });
    }
    Some(running.join_all().await.into_iter().collect())
}

/// The mock's rate limits say that the tokens of six minutes are used up, and the daemon respects that: a fleet would take
/// hours.
#[tokio::test(flavor = "multi_thread")]
async fn a_mock_that_limits_every_call_ends_the_turn_with_its_class() {
    let test = "a_mock_that_limits_every_call_ends_the_turn_with_its_class";
    let Some(ends) = always(test, "--chaos-ratelimit").await else {
        return;
    };
    assert_eq!(
        ends,
        SPOKEN.map(|(name, ..)| (name, "rate_limited".to_owned())).into()
    );
}

/// Which fault comes last in a call is random, so each must end as `transient`.
#[tokio::test(flavor = "multi_thread")]
async fn a_mock_that_fails_every_call_in_one_way_ends_the_turn_as_transient() {
    let test = "a_mock_that_fails_every_call_in_one_way_ends_the_turn_as_transient";
    for fault in ["--chaos-drop", "--chaos-malformed", "--chaos-disconnect"] {
        let Some(ends) = always(test, fault).await else {
            return;
        };
        assert_eq!(
            ends,
            SPOKEN.map(|(name, ..)| (name, "transient".to_owned())).into(),
            "{fault}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn thinking_is_sent_back_in_tool_loops_as_it_came() {
    let Some(mock) = Aimock::start("thinking_is_sent_back_in_tool_loops_as_it_came", &[]).await else {
        return;
    };
    let tap = Tap::before(mock.url()).await;
    let daemon = daemon(tap.url(), QUICK).await;
    let client = daemon.client().await;
    for (name, dialect, ..) in SPOKEN {
        let before = tap.heard().len();
        let (_, end) = run(&client, daemon.workdir(name), name, "Please look around.").await;
        assert_eq!(end.reason, EndReason::Completed, "{name}: {:?}", end.error);
        let sent = tap.heard().split_off(before);
        let marks: &[&str] = match dialect {
            "anthropic" => &[
                r#""thinking":"First I look twice.","signature":"signature-one""#,
                r#""thinking":"There are notes.","signature":"signature-two""#,
            ],
            "openai-chat" => &[
                r#""reasoning_content":"First I look twice.""#,
                r#""reasoning_content":"There are notes.""#,
            ],
            "openai-responses" => &[r#""encrypted_content":""#, r#""text":"First I look twice.""#],
            // The mock gives no signature in Google's dialect, and no thoughts under the field names of Ollama.
            _ => &[],
        };
        for mark in marks {
            assert!(sent.contains(mark), "{name}: {mark} is missing in {sent}");
        }
        if dialect == "anthropic" {
            people_see_thoughts_who_ask_for_them(&daemon, name).await;
        }
    }
}

async fn people_see_thoughts_who_ask_for_them(daemon: &Daemon, model: &str) {
    let prompt = "Please look around.";
    let workdir = daemon.workdir(model);
    for flags in [&["--show-thinking"][..], &[]] {
        let run = [
            &["run", "--model", model, "--mode", "yolo", "-C", &workdir, prompt],
            flags,
        ]
        .concat();
        let done = daemon.agentctl(&run).await;
        let thought = done.stderr.contains("~ First I look twice.\n");
        assert_eq!(
            (done.code, thought),
            (Some(0), !flags.is_empty()),
            "{}",
            done.stderr
        );
        assert!(!done.stdout.contains("First I look twice"), "{}", done.stdout);
    }
    for (flags, expected) in [
        (&["--thinking"][..], true),
        (&["--thinking", "--seq"], true),
        (&[], false),
    ] {
        let done = daemon.agentctl(&[&["logs", "@last"], flags].concat()).await;
        assert_eq!(
            done.stdout.contains("~ First I look twice.\n"),
            expected,
            "{}",
            done.stdout
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_of_the_mock_ends_the_turn_with_its_class() {
    let Some(mock) = Aimock::start("a_refusal_of_the_mock_ends_the_turn_with_its_class", &[]).await else {
        return;
    };
    let daemon = daemon(mock.url(), QUICK).await;
    let client = daemon.client().await;
    for (name, ..) in SPOKEN {
        let workdir = daemon.workdir(&format!("{name}-bad"));
        let (_, end) = run(&client, workdir, name, "This is a bad request.").await;
        assert_eq!(how(&end), "invalid_request", "{name}");
    }
}
