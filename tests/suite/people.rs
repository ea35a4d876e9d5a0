//! The output that a person sees on a terminal, and its keys.

use crate::terminals::{Terminals, agentctl};
use crate::{ASKING, YOLO, daemon};
use agentd_bench::model_server::ModelServer;
use agentd_tests::{Daemon, found, skipped};

#[tokio::test(flavor = "multi_thread")]
async fn ps_watches_until_q_and_tells_whom_the_fleet_waits_for() {
    let server = ModelServer::start(false).await.unwrap();
    let daemon = daemon(&server, ASKING).await;
    let Some(terminals) = Terminals::start("people") else {
        skipped("ps_watches_until_q", "tmux is not installed");
        return;
    };
    terminals.open("ps", &agentctl(&daemon, "ps -w -L team"));
    terminals.shows("ps", "no open sessions").await;
    // Output is drawn as it arrives.
    let plan = "plan:w steps=1 command=echo_hello;";
    let args = ["run", "-dq", "--name", "w", "-l", "team=infra", plan];
    let run = daemon.agentctl(&args).await;
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    terminals.shows("ps", "1 session: 1 waiting for a person").await;
    let screen = terminals.screen("ps");
    for part in ["REASON", "echo hello", "TEAM", "infra"] {
        assert!(screen.contains(part), "{part}: {screen}");
    }
    terminals.keys("ps", &["q"]);
    terminals.shows("ps", "exit=0").await;
    // Without a terminal, only the table is printed.
    let piped = daemon.agentctl(&["ps", "-L", "team"]).await.stdout;
    assert_eq!(piped.lines().count(), 2, "{piped}");
    assert!(!piped.contains('\x1b'), "{piped:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn events_and_usage_are_asked_for_their_end_and_since_a_moment() {
    let server = ModelServer::start(false).await.unwrap();
    let daemon = daemon(&server, YOLO).await;
    let out = async |args: &[&str]| {
        let done = daemon.agentctl(args).await;
        assert_eq!(done.code, Some(0), "{args:?}: {}", done.stderr);
        done.stdout
    };
    for name in ["a", "b"] {
        let label = format!("team={name}");
        out(&[
            "run",
            "--name",
            name,
            "-l",
            &label,
            "plan:x steps=1 command=true;",
        ])
        .await;
    }
    let all = out(&["events", "-o", "jsonl"]).await;
    let all: Vec<&str> = all.lines().collect();
    let last = out(&["events", "-n", "3", "-o", "jsonl"]).await;
    assert_eq!(last.lines().collect::<Vec<_>>(), all[all.len() - 3..]);
    assert_eq!(out(&["events", "-n", "0"]).await, "");
    // The last of the selected events.
    let turns = out(&[
        "events", "-n", "1", "--kind", "turn", "-l", "team=a", "-o", "jsonl",
    ])
    .await;
    let first = all
        .iter()
        .find(|line| line.contains("\"type\":\"turn.finished\""));
    assert_eq!(Some(turns.trim()), first.copied(), "team a ran first");
    let since = out(&["events", "--since", "1h", "-o", "jsonl"]).await;
    assert_eq!(since.lines().count(), all.len());
    assert_eq!(out(&["events", "--since", "2100-01-01T00:00:00Z"]).await, "");
    let wrong = daemon.agentctl(&["events", "--since", "noon"]).await;
    assert_eq!(wrong.code, Some(2), "{}", wrong.stderr);
    // The logs contain the figures that the rows sum up.
    let rows = out(&["usage", "--by", "team", "-o", "json"]).await;
    assert_eq!(
        out(&["usage", "--by", "team", "--since", "1h", "-o", "json"]).await,
        rows
    );
    assert_eq!(
        out(&["usage", "--since", "2100-01-01T00:00:00Z", "-o", "json"])
            .await
            .trim(),
        "[]"
    );
    let table = out(&["usage", "--by", "team"]).await;
    let total: Vec<&str> = table.lines().last().unwrap().split_whitespace().collect();
    assert_eq!(total[..3], ["(total)", "2", "4"], "{table}");
    assert!(!rows.contains("total)"), "{rows}");
}

#[tokio::test(flavor = "multi_thread")]
async fn usage_by_day_counts_each_step_once_also_after_a_crash() {
    let server = ModelServer::start(false).await.unwrap();
    let mut daemon = daemon(&server, YOLO).await;
    for team in ["team=a", "team=b"] {
        let ran = daemon
            .agentctl(&["run", "-l", team, "plan:x steps=1 command=true;"])
            .await;
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    }
    let rows = async |daemon: &Daemon, daily: &[&str]| {
        let args = [&["usage", "--by", "team", "-o", "json"], daily].concat();
        let done = daemon.agentctl(&args).await;
        assert_eq!(done.code, Some(0), "{}", done.stderr);
        let rows: Vec<serde_json::Value> = serde_json::from_str(&done.stdout).unwrap();
        let keys = ["/group", "/steps", "/usage", "/cost_usd"];
        let sums = rows.iter().map(|row| keys.map(|key| row.pointer(key).cloned()));
        let mut sums: Vec<String> = sums.map(|sums| format!("{sums:?}")).collect();
        sums.sort();
        sums
    };
    let expected = rows(&daemon, &[]).await;
    assert_eq!(expected.len(), 2);
    let counted = async |daemon: &Daemon| (rows(daemon, &["--daily"]).await == expected).then_some(());
    found("each step counts once", async || counted(&daemon).await).await;
    daemon.kill().await;
    let daemon = daemon.restart(None).await;
    found("each step still counts once", async || counted(&daemon).await).await;
    let by_session = daemon.agentctl(&["usage", "--daily", "--by", "session"]).await;
    assert_eq!(by_session.code, Some(2), "{}", by_session.stderr);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transcript_shows_the_numbers_that_fork_takes() {
    let server = ModelServer::start(false).await.unwrap();
    let daemon = daemon(&server, YOLO).await;
    let out = async |args: &[&str]| {
        let done = daemon.agentctl(args).await;
        assert_eq!(done.code, Some(0), "{args:?}: {}", done.stderr);
        done.stdout
    };
    for plan in [
        "plan:x steps=1 command=true text=first_answer;",
        "plan:y text=second_answer;",
    ] {
        let onto: &[&str] = if plan.contains("first") {
            &["--name", "x"]
        } else {
            &["--session", "x"]
        };
        out(&[&["run"], onto, &[plan]].concat()).await;
    }
    let events = out(&["export", "x", "--jsonl"]).await.lines().count();
    let log = out(&["logs", "--seq", "--times", "x"]).await;
    // A day, then a number and a time on each line that begins an event.
    assert_eq!(
        log.lines().next().map(str::len),
        Some("2026-11-23".len()),
        "{log}"
    );
    let number = |what: &str| {
        let line = log
            .lines()
            .find(|line| line.contains(what))
            .unwrap_or_else(|| panic!("{what}: {log}"));
        let mut words = line.split_whitespace();
        let number: usize = words.next().unwrap().parse().unwrap();
        let moment = words.next().unwrap();
        assert!(moment.len() == 9 && moment.ends_with('Z'), "{line}");
        number
    };
    assert!(number("first answer") < number("turn     completed"));
    assert!(number("second answer") < events);
    let at = number("turn     completed").to_string();
    let fork = out(&["fork", "x", "--at", &at, "--name", "fork"]).await;
    let copy = out(&["logs", fork.trim()]).await;
    assert!(
        copy.contains("first answer") && !copy.contains("second answer"),
        "{copy}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn long_texts_go_through_the_pager_on_a_terminal_only() {
    let server = ModelServer::start(false).await.unwrap();
    let daemon = daemon(&server, YOLO).await;
    let run = [
        "run",
        "--name",
        "x",
        "plan:x steps=1 command=seq_5000; text=the_end;",
    ];
    let run = daemon.agentctl(&run).await;
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let Some(terminals) = Terminals::start("pager") else {
        skipped("long_texts_go_through_the_pager", "tmux is not installed");
        return;
    };
    let with = |pager: &str, args: &str| format!("AGENTD_PAGER='{pager}' {}", agentctl(&daemon, args));
    terminals.open("paged", &with("sed s/^/paged:/", "logs x"));
    terminals.shows("paged", "paged:turn     completed").await;
    terminals.shows("paged", "exit=0").await;
    // If the person quits the pager, the rest is not shown, and that is no error.
    terminals.open("early", &with("head -n 2", "logs x -o wide"));
    terminals.shows("early", "exit=0").await;
    let screen = terminals.screen("early");
    assert!(
        !screen.contains("completed") && !screen.contains("error"),
        "{screen}"
    );
    terminals.open("wrong", &with("no-such-pager", "logs x"));
    terminals
        .shows("wrong", "cannot run the pager \"no-such-pager\"")
        .await;
    terminals.shows("wrong", "exit=2").await;
    terminals.open("off", &with("sed s/^/paged:/", "--no-pager logs x"));
    terminals.shows("off", "exit=0").await;
    assert!(!terminals.screen("off").contains("paged:"));
}

#[tokio::test(flavor = "multi_thread")]
async fn one_cancel_is_one_line() {
    let server = ModelServer::start(false).await.unwrap();
    let daemon = daemon(&server, ASKING).await;
    let Some(terminals) = Terminals::start("one") else {
        skipped("one_cancel_is_one_line", "tmux is not installed");
        return;
    };
    terminals.open(
        "run",
        &agentctl(
            &daemon,
            "run --no-tui --name asks 'plan:x steps=1 command=echo_hello;'",
        ),
    );
    terminals.shows("run", "y allow").await;
    terminals.keys("run", &["C-c"]);
    terminals.shows("run", "exit=130").await;
    let log = daemon.agentctl(&["logs", "asks"]).await.stdout;
    let behind: Vec<&str> = log
        .lines()
        .skip_while(|line| !line.starts_with("ask"))
        .skip(1)
        .collect();
    let [line] = behind.as_slice() else {
        panic!("{log}");
    };
    assert!(line.starts_with("turn     cancelled by Ctrl-C: "), "{log}");
}
