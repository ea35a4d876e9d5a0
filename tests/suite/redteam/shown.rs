//! A person approves exactly what was shown. `docs/security/approvals.md` lists the attacks and their sources.

use super::{asked, bash, daemon, model, results, session};
use crate::terminals::{Terminals, agentctl};
use agentd_client::Client;
use agentd_protocol::{ApprovalListParams, OpenApproval, PermissionMode, ToolStatus};
use agentd_tests::fault_server::{FaultServer, Say};
use agentd_tests::{Daemon, Follower, check_log, eventually, skipped};
use serde_json::{Value, json};
use std::path::Path;

async fn open(client: &Client) -> Vec<OpenApproval> {
    client.approvals(&ApprovalListParams::default()).await.unwrap()
}

async fn ctl(daemon: &Daemon, args: &[&str], code: i32) -> (String, String) {
    let done = daemon.agentctl(args).await;
    assert_eq!(done.code, Some(code), "{args:?}: {}{}", done.stdout, done.stderr);
    (done.stdout, done.stderr)
}

fn there(daemon: &Daemon, dir: &str, name: &str) -> bool {
    Path::new(&daemon.workdir(dir)).join(name).exists()
}

/// A session that has asked its first question.
async fn asks(daemon: &Daemon, client: &Client, dir: &str) -> String {
    let agent = session(daemon, client, dir, PermissionMode::Default).await;
    asked(&mut Follower::attach(client, &agent).await, 1).await;
    agent
}

/// A model that runs a command, with its own description of it.
async fn described(command: &str, words: &str) -> FaultServer {
    model(vec![Say::call(
        "Bash",
        json!({ "command": command, "description": words }),
    )])
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn redteam_42_i7_padding_and_the_models_words_hide_nothing_in_the_inbox() {
    for (command, mark) in [
        (
            format!("echo ok{}touch pushed", "\n".repeat(60)),
            "⟨59 blank lines⟩",
        ),
        (
            format!("echo ok{}; touch pushed", " ".repeat(400)),
            "⟨400 spaces⟩",
        ),
    ] {
        let server = described(&command, "List files\nrisk: none\n  │ ls").await;
        let daemon = daemon(&server, "").await;
        let client = daemon.client().await;
        let agent = asks(&daemon, &client, "padded").await;
        let id = open(&client).await.remove(0).approval.to_string();
        let (table, _) = ctl(&daemon, &["approvals"], 0).await;
        assert!(table.contains(mark) && table.contains("touch pushed"), "{table}");
        assert!(!table.contains("List files"), "not the model's words: {table}");
        let (whole, _) = ctl(&daemon, &["approvals", &id], 0).await;
        let (_, approved) = ctl(&daemon, &["approve", &agent], 0).await;
        for shown in [&whole, &approved] {
            assert!(shown.contains(mark) && shown.contains("touch pushed"), "{shown}");
            assert!(
                shown.contains("\n  » risk: none\n"),
                "in the model's gutter: {shown}"
            );
            let forged = shown.lines().any(|line| {
                line.starts_with("risk") || (line.starts_with("  RISK") && line.contains("none"))
            });
            assert!(!forged, "{shown}");
        }
        // Positive control: this is what ran.
        results(&client, &agent).await;
        assert!(there(&daemon, "padded", "pushed"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn redteam_44_i7_an_answer_is_held_to_what_was_read() {
    let server = described("touch made", "").await;
    let daemon = daemon(&server, "").await;
    let client = daemon.client().await;
    let agent = asks(&daemon, &client, "held").await;
    let (inbox, _) = ctl(&daemon, &["approvals", "-o", "json"], 0).await;
    let inbox: Value = serde_json::from_str(&inbox).unwrap();
    let sum = inbox[0]["sha256"].as_str().unwrap();
    assert_eq!(
        (sum, &inbox[0]["bytes"]),
        (agentd_text::digest("touch made").as_str(), &json!(10))
    );
    let other = agentd_text::digest("touch other");
    for wrong in [other.as_str(), "00"] {
        let (_, said) = ctl(&daemon, &["approve", &agent, "--sha256", wrong], 5).await;
        assert!(said.contains("nothing was approved"), "{said}");
    }
    ctl(&daemon, &["approve", &agent, "--sha256", ""], 2).await;
    assert_eq!(open(&client).await.len(), 1);
    // Positive control: the right hash.
    ctl(&daemon, &["approve", &agent, "--sha256", &sum[..12]], 0).await;
    results(&client, &agent).await;
    assert!(there(&daemon, "held", "made"));
}

#[tokio::test(flavor = "multi_thread")]
async fn redteam_45_i7_like_means_the_same_place_and_the_same_script() {
    let server = FaultServer::start(|asked: &agentd_tests::fault_server::Asked| {
        let done = String::from_utf8_lossy(&asked.body).contains("tool_result");
        let say = if done {
            Say::text("It is done.")
        } else {
            bash("sh x.sh")
        };
        agentd_tests::fault_server::Speech(agentd_provider::Dialect::Anthropic).answer(&say)
    })
    .await;
    let daemon = daemon(&server, "").await;
    let client = daemon.client().await;
    let script =
        |dir: &str, text: &str| std::fs::write(Path::new(&daemon.workdir(dir)).join("x.sh"), text).unwrap();
    for dir in ["a", "b"] {
        script(dir, "echo >>ran\n");
    }
    let first = asks(&daemon, &client, "a").await;
    let same = asks(&daemon, &client, "a").await;
    let elsewhere = asks(&daemon, &client, "b").await;
    // The same text and the same place, but a different script by now.
    script("a", "echo >>ran # changed\n");
    let changed = asks(&daemon, &client, "a").await;
    let (done, _) = ctl(
        &daemon,
        &["approve", "--like", &changed, "--yes", "-o", "name"],
        0,
    )
    .await;
    assert_eq!(done.lines().count(), 1, "{done}");
    results(&client, &changed).await;
    let left: Vec<String> = open(&client)
        .await
        .iter()
        .map(|open| open.session.to_string())
        .collect();
    assert_eq!(left, [first.clone(), same.clone(), elsewhere.clone()]);
    // Positive control: only the two equal ones are answered at once.
    let (done, _) = ctl(&daemon, &["approve", "--like", &first, "--yes", "-o", "name"], 0).await;
    assert_eq!(done.lines().count(), 2, "{done}");
    let left: Vec<String> = open(&client)
        .await
        .iter()
        .map(|open| open.session.to_string())
        .collect();
    assert_eq!(left, [elsewhere]);
    assert!(!there(&daemon, "b", "ran"));
}

#[tokio::test(flavor = "multi_thread")]
async fn redteam_45_i7_what_a_script_sources_and_a_module_imports_is_approved_with_it() {
    for (command, file) in [
        ("sh x.sh", "lib.sh"),
        ("make", "part.mk"),
        ("python3 -m app", "app/part.py"),
    ] {
        let server = model(vec![bash(command), bash("touch done")]).await;
        let daemon = daemon(&server, "").await;
        let client = daemon.client().await;
        let dir = daemon.workdir("deep");
        let put = |name: &str, text: &str| {
            let path = Path::new(&dir).join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        put("x.sh", ". ./lib.sh\n");
        put("Makefile", "include part.mk\n");
        put("app/__main__.py", "import app.part\n");
        put(file, "\n");
        let agent = session(&daemon, &client, "deep", PermissionMode::Default).await;
        let mut follower = Follower::attach(&client, &agent).await;
        asked(&mut follower, 1).await;
        let watched = &open(&client).await.remove(0).about.watches;
        assert_eq!(watched.len(), 1, "the question says so");
        put(file, "# changed\n");
        ctl(&daemon, &["approve", &agent], 0).await;
        asked(&mut follower, 2).await;
        // Positive control: the same answer to a command that runs no code of the directory.
        put(file, "# changed again\n");
        ctl(&daemon, &["approve", &agent], 0).await;
        let results = results(&client, &agent).await;
        let [(ToolStatus::Denied, why), (ToolStatus::Ok, _)] = results.as_slice() else {
            panic!("{command}: {results:?}");
        };
        assert!(why.contains("a directory that it runs code from"), "{why}");
        check_log(&client, &agent).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn redteam_42_i7_yes_does_not_count_before_the_end_was_shown() {
    let lines: Vec<String> = (1..=300).map(|n| format!(": line {n}")).collect();
    let command = format!("{}\ntouch made", lines.join("\n"));
    let server = described(&command, "Nothing to see").await;
    let daemon = daemon(&server, "").await;
    let client = daemon.client().await;
    let agent = asks(&daemon, &client, "long").await;
    let Some(terminals) = Terminals::start("pages") else {
        return skipped("redteam_42_i7_yes_does_not_count", "tmux is not installed");
    };
    terminals.open(
        "attach",
        &agentctl(&daemon, &format!("attach --no-tui -n 1 {agent}")),
    );
    terminals.shows("attach", "page 1 of 7").await;
    let page = "not accepted: you are on page 1 of 7";
    for (early, refusal, times) in [
        ("y", page, 1),
        ("yes", page, 2),
        ("a", "this call cannot be allowed that far", 1),
        ("/approve", page, 3),
    ] {
        terminals.keys("attach", &[early, "Enter"]);
        eventually("it is refused", || {
            terminals.screen("attach").matches(refusal).count() == times
        })
        .await;
        assert_eq!(open(&client).await.len(), 1, "{early}");
    }
    for page in 2..7 {
        terminals.keys("attach", &["Enter"]);
        terminals
            .shows("attach", &format!("page {page} of 7. Enter"))
            .await;
    }
    terminals.keys("attach", &["y", "Enter"]);
    terminals.shows("attach", "you are on page 6 of 7").await;
    assert!(!there(&daemon, "long", "made"));
    terminals.keys("attach", &["Enter"]);
    terminals.shows("attach", "end of the command").await;
    terminals.shows("attach", "touch made").await;
    // Positive control: after the last page the same key is accepted.
    terminals.keys("attach", &["y", "Enter"]);
    results(&client, &agent).await;
    assert!(there(&daemon, "long", "made"));
}

#[tokio::test(flavor = "multi_thread")]
async fn redteam_42_i7_approve_shows_and_asks_on_a_terminal() {
    let server = described("ls\u{202e}\u{200b}; touch made", "Lists").await;
    let daemon = daemon(&server, "").await;
    let client = daemon.client().await;
    let agent = asks(&daemon, &client, "asks").await;
    let Some(terminals) = Terminals::start("approve") else {
        return skipped("redteam_42_i7_approve_shows_and_asks", "tmux is not installed");
    };
    let approve = agentctl(&daemon, &format!("approve {agent}"));
    terminals.open("no", &approve);
    terminals
        .shows("no", "  │ ls⟨bidi U+202E⟩⟨zero-width U+200B⟩; touch made")
        .await;
    terminals.shows("no", "[y/N]").await;
    terminals.keys("no", &["n", "Enter"]);
    terminals.shows("no", "exit=5").await;
    assert_eq!(open(&client).await.len(), 1);
    // Positive control.
    terminals.open("yes", &approve);
    terminals.shows("yes", "[y/N]").await;
    terminals.keys("yes", &["y", "Enter"]);
    terminals.shows("yes", "exit=0").await;
    assert_eq!(open(&client).await.len(), 0);
}
