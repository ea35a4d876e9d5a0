//! Verdicts of the rules, verdicts of other rules, and the integrity of the audit files.

use crate::{ASKING, YOLO, daemon, played, session};
use agentd_bench::model_server::ModelServer;
use agentd_protocol::AuditParams;
use agentd_tests::fault_server::Say;
use agentd_tests::{Daemon, Finished, Follower, within};
use serde_json::{Value, json};

async fn json_of(daemon: &Daemon, args: &[&str]) -> Value {
    let said = daemon.agentctl(&[args, &["-o", "json"]].concat()).await;
    assert_eq!(said.code, Some(0), "{args:?}: {}", said.stderr);
    serde_json::from_str(&said.stdout).unwrap()
}

/// The program agentd knows the tools; agentctl does not contain them.
async fn tools_are_known(daemon: &Daemon, id: &str) {
    let check = async |tool: &str| {
        let words = [
            "policy",
            "check",
            "--session",
            id,
            "--path",
            "a",
            "-q",
            "--tool",
            tool,
        ];
        daemon.agentctl(&words).await
    };
    let said = check("edit").await;
    let verdict = (said.code, said.stdout.trim());
    assert_eq!(verdict, (Some(0), "ask"), "{}", said.stderr);
    let said = check("Reed").await;
    assert_eq!(said.code, Some(2), "{}", said.stderr);
    assert!(said.stderr.contains("Did you mean `Read`?"), "{}", said.stderr);
}

#[tokio::test(flavor = "multi_thread")]
async fn i7_the_same_rules_answer_a_check_a_dry_run_and_a_call() {
    let server = played::model(|_, step| match step {
        0 => Say::call("Bash", json!({ "command": "echo hi" })),
        _ => Say::text("Done."),
    })
    .await;
    let rules = "rules = [{ deny = \"Bash(git push:*)\" }, { allow = \"Bash(echo:*)\" }]\n";
    let daemon = played::daemon(&server, &format!("{ASKING}[permission]\n{rules}")).await;
    let client = daemon.client().await;
    let id = played::session(&daemon, &client, "say hi").await;
    Follower::attach(&client, &id).await.turn_finished(1).await;
    for (command, verdict) in [
        ("echo hi", "allow"),
        ("git push origin", "deny"),
        ("echo hi; git push -f", "deny"),
        ("make", "ask"),
    ] {
        let said = daemon
            .agentctl(&["policy", "check", "--session", &id, command, "-q"])
            .await;
        assert_eq!(
            (said.code, said.stdout.trim()),
            (Some(0), verdict),
            "{command}: {}",
            said.stderr
        );
    }
    tools_are_known(&daemon, &id).await;
    let file = daemon.dir.path().join("new.toml");
    std::fs::write(&file, "[permission]\nrules = [{ deny = \"Bash(echo:*)\" }]\n").unwrap();
    let file = file.to_string_lossy().into_owned();
    let changed = json_of(
        &daemon,
        &["policy", "dry-run", "--rules", &file, "--session", &id],
    )
    .await;
    let text = changed.to_string();
    assert!(
        text.contains("\"before\":\"allow\"") && text.contains("\"after\":\"deny\""),
        "{text}"
    );
    // The checks changed nothing.
    let said = daemon
        .agentctl(&["policy", "check", "--session", &id, "echo hi", "-q"])
        .await;
    assert_eq!(said.stdout.trim(), "allow");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_audit_is_searched_from_its_newest_line() {
    let server = ModelServer::start(false).await.unwrap();
    let daemon = daemon(&server, YOLO).await;
    let client = daemon.client().await;
    let one = session(&daemon, &client, "plan:a steps=2 command=echo_hi;").await;
    let two = session(&daemon, &client, "plan:b steps=1 command=echo_hi;").await;
    for id in [&one, &two] {
        Follower::attach(&client, id).await.turn_finished(1).await;
    }
    let lines = async |more: &[&str]| {
        let listed = json_of(&daemon, &[&["audit", "ls"], more].concat()).await;
        serde_json::from_value::<Vec<Value>>(listed).unwrap()
    };
    // The audit file follows the log.
    within("both ends are in the audit file", async {
        while lines(&["--event", "turn.finished"]).await.len() < 2 {}
    })
    .await;
    let mine = lines(&["--session", &one, "--since", "1h"]).await;
    assert!(
        mine.iter().all(|line| line["session"] == one.as_str()),
        "{mine:?}"
    );
    assert_eq!(mine.first().unwrap()["event"], "turn.finished");
    assert_eq!(mine.last().unwrap()["event"], "session.created");
    let agents = lines(&["--who", "agentd", "--event", "session.created"]).await;
    assert_eq!(agents, Vec::<Value>::new(), "a person created them");
    assert_eq!(lines(&["-n", "1"]).await.len(), 1);
    let limit = Some(1_001);
    let refused = client
        .audit(&AuditParams {
            limit,
            ..AuditParams::default()
        })
        .await;
    let refused = refused.unwrap_err().to_string();
    assert!(refused.contains("1001 is not from 1 to 1000"), "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_audit_is_whole_until_somebody_changes_a_line_of_it() {
    let server = ModelServer::start(false).await.unwrap();
    let mut daemon = daemon(&server, YOLO).await;
    let client = daemon.client().await;
    let id = session(&daemon, &client, "plan:a steps=2 command=echo_hi;").await;
    Follower::attach(&client, &id).await.turn_finished(1).await;
    // The daemon has its own data directory; the caller need not know it.
    let asked = daemon.agentctl(&["audit", "verify"]).await;
    assert_eq!(asked.code, Some(0), "{}{}", asked.stdout, asked.stderr);
    daemon.terminate();
    daemon.ended().await;
    let file = daemon.data_dir().join("logs/audit.jsonl");
    let whole = std::fs::read_to_string(&file).unwrap();
    let path = file.to_string_lossy().into_owned();
    let verify = || async { daemon.agentctl(&["audit", "verify", &path]).await };
    let good: Finished = verify().await;
    assert_eq!(good.code, Some(0), "{}{}", good.stdout, good.stderr);
    let lines: Vec<&str> = whole.lines().collect();
    assert!(lines.len() >= 4, "{whole}");
    let without = [&lines[..1], &lines[2..]].concat().join("\n") + "\n";
    let moved = [&lines[..1], &[lines[2], lines[1]], &lines[3..]]
        .concat()
        .join("\n")
        + "\n";
    let changed = whole.replacen("echo hi", "echo ho", 1);
    assert_ne!(changed, whole);
    for (what, text) in [("removed", without), ("moved", moved), ("changed", changed)] {
        std::fs::write(&file, text).unwrap();
        let bad = verify().await;
        assert_eq!(bad.code, Some(1), "{what}: {}{}", bad.stdout, bad.stderr);
    }
    std::fs::write(&file, &whole).unwrap();
    assert_eq!(verify().await.code, Some(0));
}
