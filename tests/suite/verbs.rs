//! Verbs as people and scripts type them: their sessions, the source of their input, and shell completion.

use crate::played::{daemon, model};
use crate::terminals::{Terminals, agentctl};
use agentd_tests::fault_server::{FaultServer, Say};
use agentd_tests::{Daemon, found, skipped, within};
use serde_json::{Value, json};
use std::process::Stdio;
use tokio::io::AsyncWriteExt as _;

const PLAIN: &str = "[model]\ndefault = \"claude\"\n";

/// A model that gives one answer to everything, and runs a command on request.
async fn echo() -> FaultServer {
    model(|body, step| {
        if body.contains("make something") && step == 0 {
            Say::call("Bash", json!({ "command": "touch A" }))
        } else {
            Say::text("Done.")
        }
    })
    .await
}

async fn ctl(daemon: &Daemon, args: &[&str]) -> (String, String) {
    let done = daemon.agentctl(args).await;
    assert_eq!(done.code, Some(0), "{args:?}: {}{}", done.stdout, done.stderr);
    (done.stdout, done.stderr)
}

/// One value of each session, by its name.
async fn of_each(daemon: &Daemon, key: &str) -> Vec<(String, Value)> {
    let rows = ctl(daemon, &["ps", "-o", "json", "--sort", "name"]).await.0;
    let rows: Vec<Value> = serde_json::from_str(&rows).unwrap();
    let value = |row: &Value| (row["name"].as_str().unwrap().to_owned(), row[key].clone());
    rows.iter().map(value).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn resume_all_means_those_that_are_paused_and_pause_all_asks_a_person() {
    const NAME: &str = "resume_all_means_those_that_are_paused_and_pause_all_asks_a_person";
    let server = echo().await;
    let daemon = daemon(&server, PLAIN).await;
    for name in ["one", "two"] {
        ctl(&daemon, &["run", "--name", name, "go"]).await;
    }
    ctl(&daemon, &["pause", "one"]).await;
    let before = of_each(&daemon, "seq").await;
    let said = ctl(&daemon, &["resume", "--all"]).await.1;
    assert!(said.contains("(one)") && !said.contains("(two)"), "{said}");
    let after = of_each(&daemon, "seq").await;
    assert!(
        before[0] != after[0] && before[1] == after[1],
        "{before:?} {after:?}"
    );
    let said = ctl(&daemon, &["resume", "two"]).await.1;
    assert!(said.contains("(two) was not paused"), "{said}");
    // A script that pauses all sessions needs no confirmation; a person does.
    let said = ctl(&daemon, &["pause", "--all"]).await.1;
    assert_eq!(said.matches("paused ").count(), 2, "{said}");
    ctl(&daemon, &["resume", "--all"]).await;
    let Some(terminals) = Terminals::start("pause") else {
        skipped(NAME, "tmux is not installed");
        return;
    };
    terminals.open("pause", &agentctl(&daemon, "pause --all"));
    terminals.shows("pause", "pause 2 sessions? [y/N]").await;
    terminals.keys("pause", &["n", "Enter"]);
    terminals.shows("pause", "exit=5").await;
    for (name, state) in of_each(&daemon, "state").await {
        assert_eq!(state, "idle", "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn run_takes_a_key_stdin_and_a_directory_above() {
    let server = echo().await;
    let daemon = daemon(&server, PLAIN).await;
    daemon.workdir("beside");
    let keyed = ["run", "-q", "-o", "json", "--name", "keyed", "--key", "k1", "go"];
    let (first, again) = (ctl(&daemon, &keyed).await.0, ctl(&daemon, &keyed).await.0);
    let session = |text: &str| serde_json::from_str::<Value>(text).unwrap()["session"].clone();
    assert_eq!(session(&first), session(&again));
    assert_eq!(of_each(&daemon, "seq").await.len(), 1, "a key makes one session");
    let mut command = daemon.agentctl_command(&["run", "--name", "piped", "-C", "../work/beside", "-"]);
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(b"words from a pipe").await.unwrap();
    drop(stdin);
    assert_eq!(within("run ends", child.wait()).await.unwrap().code(), Some(0));
    let log = ctl(&daemon, &["export", "--jsonl", "piped"]).await.0;
    assert!(log.contains("words from a pipe"), "{log}");
    let beside = daemon.dir.path().canonicalize().unwrap().join("work/beside");
    assert!(log.contains(beside.to_str().unwrap()), "{log}");
}

/// The completions that a shell gets for the last of these words.
async fn completed(daemon: &Daemon, words: &[&str]) -> Vec<String> {
    let mut args = vec!["--", "agentctl"];
    args.extend(words);
    let output = daemon
        .agentctl_command(&args)
        .env("COMPLETE", "fish")
        .env("_CLAP_COMPLETE_INDEX", words.len().to_string())
        .output();
    let output = within("the completion ends", output).await.unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let word = |line: &str| line.split('\t').next().unwrap_or_default().to_owned();
    text.lines().map(word).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn completion_offers_what_fits_the_verb() {
    let server = echo().await;
    let daemon = daemon(&server, PLAIN).await;
    ctl(&daemon, &["run", "--name", "idle", "go"]).await;
    let asks = ctl(&daemon, &["run", "-d", "-q", "--name", "asks", "make something"])
        .await
        .0;
    // `wait` reports an open approval by its exit code.
    let waited = daemon.agentctl(&["wait", "asks", "--for", "approval"]).await;
    assert_eq!(waited.code, Some(0), "{}", waited.stderr);
    let asks = asks.trim();
    let short = &asks[asks.len() - 12..];
    let open = ctl(&daemon, &["approvals", "-q"]).await.0;
    let open = &open.trim()[open.trim().len() - 12..];
    // Without an answer of the daemon in time, a completion offers only options.
    let offered = found("something to approve is offered", async || {
        let mut offered = completed(&daemon, &["approve", ""]).await;
        offered.retain(|word| !word.starts_with('-'));
        (!offered.is_empty()).then_some(offered)
    })
    .await;
    assert_eq!(offered, [open, short], "what asks, and nothing that is idle");
    for verb in ["answer", "resume"] {
        let mut offered = completed(&daemon, &[verb, ""]).await;
        offered.retain(|word| !word.starts_with('-'));
        assert_eq!(offered, Vec::<String>::new(), "{verb}");
    }
    found("the sessions are offered", async || {
        let offered = completed(&daemon, &["attach", ""]).await;
        (offered.len() >= 2 && offered.contains(&short.to_owned())).then_some(())
    })
    .await;
    for (words, wanted) in [
        (&["run", "--model", "cl"][..], "claude"),
        (&["ps", "--state", "waiting(ap"], "waiting(approval)"),
        (&["ps", "--state", "idle,fa"], "idle,failed"),
        (&["events", "--kind", "tool.f"], "tool.finished"),
        (&["help", "exit"], "exit-codes"),
        (&["help", "appr"], "approvals"),
    ] {
        found(&format!("{words:?} offers {wanted}"), async || {
            let offered = completed(&daemon, words).await;
            offered.contains(&wanted.to_owned()).then_some(())
        })
        .await;
    }
}
