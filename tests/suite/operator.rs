//! Settings of an operator: limits that are ceilings, settings of sessions, selectors.

use crate::commands::{ctl, json};
use crate::played;
use crate::{ASKING, YOLO, daemon};
use agentd_bench::model_server::ModelServer;
use agentd_client::{ClientError, Push};
use agentd_protocol::{EventBody, FaultClass, UpdateParams, WatchParams};
use agentd_tests::fault_server::Say;
use agentd_tests::{Daemon, check_log, within};
use serde_json::Value;

async fn refused(daemon: &Daemon, args: &[&str], code: i32) -> String {
    let done = daemon.agentctl(args).await;
    assert_eq!(done.code, Some(code), "{args:?}: {}{}", done.stdout, done.stderr);
    done.stderr
}

#[tokio::test(flavor = "multi_thread")]
async fn i7_a_client_does_not_lift_an_operators_limits_and_show_says_whose_they_are() {
    let server = ModelServer::start(false).await.unwrap();
    let limits = "[loop]\nturn_cap = 3\n[budget]\nsession = { steps = 40 }\n";
    let daemon = daemon(&server, &format!("{YOLO}on_deny = \"stop\"\n{limits}")).await;
    let lifts = ["--preset", "clawd", "--max-turns", "50", "--budget", "steps=90"];
    let plan = "plan:a steps=9 command=true;";
    let run = [&["run", "--name", "a", plan, "-o", "json"], &lifts[..]].concat();
    let result: Value = serde_json::from_str(&ctl(&daemon, &run, 9).await).unwrap();
    assert_eq!(
        (&result["reason"], &result["steps"]),
        (&"max_turns".into(), &3.into())
    );
    let shown = json(&daemon, &["show", "a"]).await;
    let from = |key: &str| {
        shown["limits"]["from"][key]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    };
    assert_eq!(
        (&shown["limits"]["turn_cap"], &shown["limits"]["on_deny"]),
        (&3.into(), &"stop".into())
    );
    for key in ["turn_cap", "on_deny", "budget.steps"] {
        assert!(from(key).contains("config.toml:"), "{key}: {}", from(key));
    }
    assert_eq!(
        (from("max_turns"), &shown["budget"]["steps"]),
        ("the client".to_owned(), &40.into())
    );
    let text = ctl(&daemon, &["show", "a"], 0).await;
    assert!(
        text.contains("turn_cap 3 (") && text.contains("defaults"),
        "{text}"
    );

    let said = refused(&daemon, &["set", "a", "budget=steps=none"], 4).await;
    assert!(
        said.contains("budget.session.steps is 40") && said.contains("config.toml:"),
        "{said}"
    );
    ctl(&daemon, &["set", "a", "budget=steps=20"], 0).await;
    let shown = json(&daemon, &["show", "a"]).await;
    assert_eq!(shown["limits"]["from"]["budget.steps"], "the client, later");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_used_up_its_budget_goes_on_when_it_is_raised() {
    let server = ModelServer::start(false).await.unwrap();
    let daemon = daemon(&server, YOLO).await;
    let plan = "plan:b steps=4 command=echo_x_>>_marks text=through;";
    let run = ["run", "-dq", "--name", "b", "--budget", "steps=2,usd=5", plan];
    let id = ctl(&daemon, &run, 0).await;
    ctl(&daemon, &["wait", "b"], 9).await;
    ctl(&daemon, &["set", "b", "budget=tokens=1M"], 0).await;
    ctl(&daemon, &["wait", "b"], 9).await;
    ctl(&daemon, &["set", "b", "budget=steps=none"], 0).await;
    ctl(&daemon, &["wait", "b"], 0).await;
    let shown = json(&daemon, &["show", "b"]).await;
    assert_eq!(
        (&shown["budget"]["usd"], &shown["budget"]["steps"]),
        (&5.0.into(), &0.into())
    );
    let marks = std::fs::read_to_string(daemon.dir.path().join("work/marks")).unwrap();
    assert_eq!(marks.lines().count(), 4, "each command ran once");
    check_log(&daemon.client().await, id.trim()).await;
}

/// The names of the sessions that these selectors match, in order.
async fn chosen(daemon: &Daemon, selectors: &[&str]) -> String {
    let flags = selectors.iter().flat_map(|selector| ["-l", selector]);
    let args: Vec<&str> = ["ps", "--sort", "name"].into_iter().chain(flags).collect();
    let rows = json(daemon, &args).await;
    let rows = rows.as_array().into_iter().flatten();
    rows.filter_map(|row| row["name"].as_str()).collect()
}

/// Two sessions: a has team=x and tier=1, b has team=y and old=yes.
async fn two_labelled(daemon: &Daemon) {
    for (name, one, other) in [("a", "team=x", "tier=1"), ("b", "team=y", "old=yes")] {
        let run = [
            "run",
            "-dq",
            "--name",
            name,
            "-l",
            one,
            "-l",
            other,
            "plan:s text=ok;",
        ];
        ctl(daemon, &run, 0).await;
        ctl(daemon, &["wait", name], 0).await;
    }
}

/// Two services used to ignore the stop, until each was killed after five seconds.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_has_to_be_killed_when_a_daemon_stops_and_the_next_one_can_start_at_once() {
    let server = ModelServer::start(false).await.unwrap();
    let first = daemon(&server, YOLO).await;
    ctl(&first, &["daemon", "stop"], 0).await;
    let said = first.said();
    assert!(!said.contains("did not stop in time"), "{said}");
    let second = first.restart(None).await;
    ctl(&second, &["ps"], 0).await;
}

/// Changes of settings are events, too; they used to hide an end that was further back than the events that `wait` reads.
#[tokio::test(flavor = "multi_thread")]
async fn wait_tells_how_the_last_turn_ended_however_long_ago_that_was() {
    let server = ModelServer::start(false).await.unwrap();
    let daemon = daemon(&server, YOLO).await;
    let run = [
        "run",
        "--name",
        "a",
        "--max-turns",
        "1",
        "plan:a steps=3 command=true;",
    ];
    ctl(&daemon, &run, 9).await;
    let client = daemon.client().await;
    for number in 0..40 {
        let change = UpdateParams {
            session: "a".to_owned(),
            labels: Some([("n".to_owned(), number.to_string())].into()),
            ..UpdateParams::default()
        };
        client.update(&change).await.unwrap();
    }
    ctl(&daemon, &["wait", "a"], 9).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn set_changes_what_it_names() {
    let server = ModelServer::start(false).await.unwrap();
    let daemon = daemon(&server, YOLO).await;
    two_labelled(&daemon).await;
    let change = [
        "set",
        "b",
        "name=c",
        "model=gpt-test",
        "mode=plan",
        "labels=tier=2,old-",
    ];
    let shown = json(&daemon, &change).await;
    assert_eq!(
        (&shown["name"], &shown["model"]),
        (&"c".into(), &"gpt-test".into())
    );
    assert_eq!(shown["labels"], serde_json::json!({"team": "y", "tier": "2"}));
    // Whoever switches yolo on is told what its deny rules cannot see.
    let done = daemon.agentctl(&["set", "a", "mode=yolo"]).await;
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    assert!(
        done.stderr.contains("deny rules see only the text"),
        "{}",
        done.stderr
    );
    let said = refused(&daemon, &["set", "a", "colour=red"], 2).await;
    assert!(said.contains("the keys are name, model"), "{said}");
    let said = refused(&daemon, &["set", "a", "model=nothing"], 2).await;
    assert!(said.contains("there is no model"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn selectors_choose_as_kubectls_do_and_anything_else_is_refused() {
    let server = ModelServer::start(false).await.unwrap();
    let daemon = daemon(&server, YOLO).await;
    two_labelled(&daemon).await;
    ctl(&daemon, &["set", "b", "name=c", "labels=tier=2,old-"], 0).await;
    for (selectors, expected) in [
        (&["team=x"][..], "a"),
        (&["team!=x"], "c"),
        (&["team in (x, y)"], "ac"),
        (&["team notin (x),tier"], "c"),
        (&["!old"], "ac"),
        (&["old"], ""),
        (&["team", "tier == 1"], "a"),
    ] {
        assert_eq!(chosen(&daemon, selectors).await, expected, "{selectors:?}");
    }
    for (verb, selector) in [
        ("ps", "team!"),
        ("events", "a=b=c"),
        ("usage", "team in x"),
        ("approvals", "a b"),
    ] {
        let said = refused(&daemon, &[verb, "-l", selector], 2).await;
        assert!(said.contains("is not a label selector"), "{said}");
    }
    let usage = json(&daemon, &["usage", "--by", "tier", "-l", "team!=x"]).await;
    assert_eq!(
        (usage[0]["group"].as_str(), usage.as_array().map(Vec::len)),
        (Some("2"), Some(1))
    );
    let close = ["close", "--all", "-l", "tier in (2)", "--yes", "-q"];
    assert_eq!(ctl(&daemon, &close, 0).await.lines().count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_empty_answer_is_asked_for_once_more_and_is_no_success() {
    let server = played::model(|body, _| {
        let again = body.contains("Your last answer was empty");
        Say::text(if again { "Here I am." } else { "" })
    })
    .await;
    let daemon = played::daemon(&server, YOLO).await;
    let answer = json(&daemon, &["run", "--name", "late", "hello"]).await;
    assert_eq!(
        (&answer["success"], &answer["text"]),
        (&true.into(), &"Here I am.".into())
    );

    let server = played::model(|_, _| Say::text("")).await;
    let daemon = played::daemon(&server, YOLO).await;
    let answer = ctl(&daemon, &["run", "--name", "mute", "hello", "-o", "json"], 6).await;
    let answer: Value = serde_json::from_str(&answer).unwrap();
    assert_eq!(
        (&answer["success"], &answer["reason"]),
        (&false.into(), &"completed".into())
    );
    assert_eq!(answer["steps"], 2, "it was asked once more");
    ctl(&daemon, &["wait", "mute"], 6).await;
    let log = check_log(&daemon.client().await, "mute").await;
    let warned = |body: &EventBody| matches!(body, EventBody::WarningRaised(it) if it.code == "empty_answer");
    assert_eq!(log.iter().filter(|event| warned(&event.body)).count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_denied_call_is_counted_and_fails_a_run_that_asks_for_it() {
    let server = ModelServer::start(false).await.unwrap();
    let daemon = daemon(&server, ASKING).await;
    let plan = "plan:d steps=1 command=touch_M;";
    let result = json(&daemon, &["run", plan]).await;
    assert_eq!(
        (&result["success"], &result["denied_calls"]),
        (&true.into(), &1.into())
    );
    let run = ["run", "--json", "--fail-on-deny", plan];
    let lines = ctl(&daemon, &run, 7).await;
    assert!(
        lines.contains("\"turn.finished\""),
        "the events are printed all the same: {lines}"
    );
    let run = ["run", "--fail-on-deny", "--mode", "yolo", plan];
    ctl(&daemon, &run, 0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn config_view_and_doctor_ask_the_daemon_and_say_when_it_is_not_there() {
    let server = ModelServer::start(false).await.unwrap();
    let mut daemon = daemon(&server, &format!("{YOLO}[loop]\nturn_cap = 33\n")).await;
    let text = ctl(&daemon, &["config", "view", "--show-origin"], 0).await;
    let line = text
        .lines()
        .find(|line| line.starts_with("loop.turn_cap"))
        .unwrap();
    assert!(
        line.starts_with("loop.turn_cap = 33  # ") && line.contains("config.toml:"),
        "{line}"
    );
    let shown = json(&daemon, &["config", "view"]).await;
    assert_eq!(shown["settings"]["loop"]["turn_cap"], 33);
    let checks = daemon.agentctl(&["doctor"]).await.stdout;
    assert!(
        checks.contains("the daemon read") && checks.contains("config.toml"),
        "{checks}"
    );

    daemon.kill().await;
    // The context was named explicitly, so no other daemon answers for it.
    refused(&daemon, &["config", "view"], 69).await;
    let mut local = daemon.agentctl_command(&["config", "view"]);
    let local = local
        .env_remove("AGENTD_SOCKET")
        .env("XDG_RUNTIME_DIR", daemon.dir.path());
    let output = within("agentctl ends", local.output()).await.unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() && said.contains("no daemon answers"),
        "{said}"
    );
    assert!(String::from_utf8_lossy(&output.stdout).contains("loop.turn_cap = 100"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watch_of_the_fleet_says_when_it_has_caught_up_and_refuses_unknown_kinds() {
    let server = ModelServer::start(false).await.unwrap();
    let daemon = daemon(&server, YOLO).await;
    ctl(&daemon, &["run", "plan:w text=ok;"], 0).await;
    let client = daemon.client().await;
    let kind = |kind: &str| WatchParams {
        kinds: vec![kind.to_owned()],
        after: Some(1),
        ..WatchParams::default()
    };
    let fault = match client.watch(&kind("turn.finishd")).await {
        Err(ClientError::Refused(fault)) => fault,
        other => unreachable!("a type that does not exist was taken: {other:?}"),
    };
    let hint = fault.hint.as_deref();
    assert_eq!(
        (fault.class, hint),
        (FaultClass::Invalid, Some("did you mean turn.finished?"))
    );
    let mut live = client.watch(&kind("turn")).await.unwrap();
    let head = live.head();
    assert!(
        head > 1,
        "the head is that of the fleet, not the requested cursor: {head}"
    );
    let mut finished = 0;
    loop {
        match within("news", live.next()).await.unwrap() {
            Push::Event(_) => finished += 1,
            Push::CaughtUp(at) => {
                assert!(at.cursor >= head, "{at:?}");
                break;
            }
            other => unreachable!("{other:?}"),
        }
    }
    assert_eq!(finished, 2, "turn.started and turn.finished");
}

#[tokio::test(flavor = "multi_thread")]
async fn i7_an_answer_for_good_is_listed_and_can_be_taken_back() {
    // Each input has two answers: the call, and the end.
    let server = played::model(|_, step| match step % 2 {
        0 => Say::call("Bash", serde_json::json!({ "command": "touch M" })),
        _ => Say::text("Done."),
    })
    .await;
    let daemon = played::daemon(&server, ASKING).await;
    assert_eq!(json(&daemon, &["rules", "ls"]).await, serde_json::json!([]));
    ctl(&daemon, &["run", "-dq", "--name", "a", "please touch"], 0).await;
    ctl(&daemon, &["wait", "--for", "approval", "a"], 0).await;
    ctl(&daemon, &["approve", "--scope", "always", "--yes", "a"], 0).await;
    ctl(&daemon, &["wait", "a"], 0).await;
    // The answer is given before the rule is durable.
    let rules = within("the rule", async {
        loop {
            let rules = json(&daemon, &["rules", "ls"]).await;
            if rules[0]["rule"] == "allow Bash(touch M)" {
                return rules;
            }
        }
    })
    .await;
    let other = json(&daemon, &["run", "please touch in another session"]).await;
    assert_eq!(other["denied_calls"], 0, "{other}");
    let number = rules[0]["number"].to_string();
    let said = ctl(&daemon, &["rules", "rm", &number, "-o", "json"], 0).await;
    assert!(said.contains("allow Bash(touch M)"), "{said}");
    refused(&daemon, &["rules", "rm", &number], 3).await;
    assert_eq!(json(&daemon, &["rules", "ls"]).await, serde_json::json!([]));
    // The session that got the answer also asks again.
    ctl(&daemon, &["send", "a", "please touch again"], 0).await;
    ctl(&daemon, &["wait", "--for", "approval", "a"], 0).await;
}
