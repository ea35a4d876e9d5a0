//! Paths that run code without an explicit build or run, in `accept-edits`: each write asks and says so.
//! `docs/security/protected.md` has the table.

use super::{asked, bash, daemon, model, session, statuses};
use agentd_protocol::{ApprovalAsked, DecideParams, Decision, EventBody, PermissionMode, ToolStatus};
use agentd_tests::Follower;
use agentd_tests::fault_server::Say;
use serde_json::json;
use std::path::Path;

/// The attacks also use patches.
const PATCHING: &str = "[tools]\nmore = [\"ApplyPatch\"]\n";

fn write(path: &str) -> Say {
    Say::call("Write", json!({ "file_path": path, "content": "x\n" }))
}

fn patch(text: &str) -> Say {
    let patch = format!("*** Begin Patch\n{text}\n*** End Patch");
    Say::call("ApplyPatch", json!({ "patch": patch }))
}

/// Attacks, and the file that each would make or change.
fn attacks() -> Vec<(Say, &'static str)> {
    vec![
        (write(".git/modules/m/config"), ".git/modules/m/config"),
        (write(".git/config.worktree"), ".git/config.worktree"),
        (write("sub/.git"), "sub/.git"),
        (write(".husky/pre-commit"), ".husky/pre-commit"),
        // Named by core.hooksPath only.
        (write("tools/hooks/pre-push"), "tools/hooks/pre-push"),
        (write("theme/HEAD"), "theme/HEAD"),
        (write(".vscode/tasks.json"), ".vscode/tasks.json"),
        (write(".idea/workspace.xml"), ".idea/workspace.xml"),
        (write(".claude/settings.json"), ".claude/settings.json"),
        (write(".cUrSoR/mcp.json"), ".cUrSoR/mcp.json"),
        (write(".codex/config.toml"), ".codex/config.toml"),
        (write(".envrc"), ".envrc"),
        (write(".cargo/config.toml"), ".cargo/config.toml"),
        (write("AGENTS.md"), "AGENTS.md"),
        (
            patch("*** Add File: src/x\n+x\n*** Add File: .github/workflows/ci.yml\n+x"),
            ".github/workflows/ci.yml",
        ),
        (
            patch("*** Update File: src/a\n*** Move to: .gitattributes\n@@\n-1\n+2"),
            ".gitattributes",
        ),
        (bash("cp src/a .npmrc"), ".npmrc"),
    ]
}

/// Waits for the n-th question, and answers it.
async fn answered(
    client: &agentd_client::Client,
    session: &str,
    nth: usize,
    decision: Decision,
) -> ApprovalAsked {
    let mut follower = Follower::attach(client, session).await;
    asked(&mut follower, nth).await;
    let mut questions = follower.events.iter().filter_map(|event| match &event.body {
        EventBody::ApprovalAsked(asked) => Some(asked.clone()),
        _ => None,
    });
    let question = questions.nth(nth - 1).unwrap();
    let params = DecideParams {
        approval: session.to_owned(),
        decision: Some(decision),
        policy: true,
        ..DecideParams::default()
    };
    client.decide(&params).await.unwrap();
    question
}

#[tokio::test(flavor = "multi_thread")]
async fn i7_redteam_protected_paths_are_asked_about_in_accept_edits() {
    let attacks = attacks();
    let mut says = vec![
        write("src/plain"),
        Say::call("Read", json!({ "file_path": "src/a" })),
    ];
    says.extend(attacks.iter().map(|(say, _)| say.clone()));
    says.push(write(".envrc"));
    let server = model(says).await;
    // A rule intended for ordinary files.
    let rules = "[permission]\nrules = [{ allow = \"Bash(cp:*)\" }, { allow = \"Write(**)\" }]\n";
    let daemon = daemon(&server, &format!("{rules}\n{PATCHING}")).await;
    let client = daemon.client().await;
    let dir = daemon.workdir("guarded");
    let path = |name: &str| Path::new(&dir).join(name);
    std::fs::create_dir_all(path(".git")).unwrap();
    std::fs::create_dir_all(path("src")).unwrap();
    std::fs::write(path(".git/config"), "[core]\n\thooksPath = tools/hooks\n").unwrap();
    std::fs::write(path("src/a"), "1\n").unwrap();
    let agent = session(&daemon, &client, "guarded", PermissionMode::AcceptEdits).await;
    for (nth, (_, file)) in attacks.iter().enumerate() {
        let question = answered(&client, &agent, nth + 1, Decision::Deny).await;
        let shown = format!("{file}: {question:?}");
        assert!(
            question
                .about
                .risks
                .iter()
                .any(|risk| risk.contains("may run code outside the sandbox")),
            "{shown}"
        );
        assert!(!path(file).exists(), "{shown}");
    }
    // Positive control: approved, it is written.
    answered(&client, &agent, attacks.len() + 1, Decision::Allow).await;
    let results = super::results(&client, &agent).await;
    let mut expected = vec![ToolStatus::Ok; 2];
    expected.extend(vec![ToolStatus::Denied; attacks.len()]);
    expected.push(ToolStatus::Ok);
    assert_eq!(statuses(&results), expected, "{results:?}");
    assert!(path("src/plain").exists(), "positive control");
    assert_eq!(std::fs::read_to_string(path(".envrc")).unwrap(), "x\n");
    assert_eq!(std::fs::read_to_string(path("src/a")).unwrap(), "1\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn redteam_protected_paths_are_what_the_settings_leave_of_them() {
    // Positive control: the same writes without a guard.
    let files = [".vscode/tasks.json", ".github/workflows/ci.yml"];
    let server = model(files.iter().map(|file| write(file)).collect()).await;
    let free = "[permission]\nunprotected = [\".vscode\"]\nrules = [{ allow = \"Write(.github/**)\" }]\n";
    let daemon = daemon(&server, free).await;
    let client = daemon.client().await;
    let agent = session(&daemon, &client, "free", PermissionMode::AcceptEdits).await;
    let results = super::results(&client, &agent).await;
    assert_eq!(statuses(&results), [ToolStatus::Ok; 2], "{results:?}");
    for file in files {
        assert!(Path::new(&daemon.workdir("free")).join(file).exists(), "{file}");
    }
}
