//! Changes of several files at once, through a daemon, with a person who approves.

use crate::played::{daemon, model, results, session};
use agentd_client::Client;
use agentd_protocol::{EndReason, EventBody, ToolStatus};
use agentd_tests::fault_server::{FaultServer, Say};
use agentd_tests::{Daemon, Follower, check_log};
use serde_json::json;

const PATCH: &str =
    "*** Begin Patch\n*** Update File: a.txt\n one\n-two\n+TWO\n*** Add File: b.txt\n+new\n*** End Patch";
const BAD: &str =
    "*** Begin Patch\n*** Add File: c.txt\n+c\n*** Update File: a.txt\n-nowhere\n+x\n*** End Patch";

/// All tools that change files; commands need an approval.
const CONFIG: &str =
    "[model]\ndefault = \"claude\"\n[tools]\nmore = [\"ApplyPatch\", \"MultiEdit\", \"UndoPatch\"]\n";

/// The undo id in the last result.
fn undo_id(body: &str) -> String {
    let id = body.rsplit_once("ndo id: ").map_or("", |(_, rest)| rest);
    id.chars().take_while(char::is_ascii_alphanumeric).collect()
}

async fn patches() -> FaultServer {
    model(|body, step| match step {
        0 => Say::call("Read", json!({ "file_path": "a.txt" })),
        1 => Say::call("ApplyPatch", json!({ "patch": BAD })),
        2 => Say::call("ApplyPatch", json!({ "patch": PATCH })),
        3 => Say::call("UndoPatch", json!({ "undo_id": undo_id(body) })),
        4 => Say::call(
            "MultiEdit",
            json!({ "file_path": "a.txt", "edits": [
                { "old_string": "one", "new_string": "1" },
                { "old_string": "two", "new_string": "2" }
            ] }),
        ),
        _ => Say::text("Done."),
    })
    .await
}

/// Waits for the `n`th question and answers it; returns the text that the person saw.
async fn answer(daemon: &Daemon, follower: &mut Follower, n: usize, verb: &str) -> String {
    let asked = |follower: &Follower| {
        let mut asks = follower.events.iter().filter_map(|event| match &event.body {
            EventBody::ApprovalAsked(ask) => Some(ask.clone()),
            _ => None,
        });
        asks.nth(n - 1)
    };
    let ask = loop {
        if let Some(ask) = asked(follower) {
            break ask;
        }
        assert!(follower.next().await.is_some());
    };
    let said = daemon.agentctl(&[verb, &ask.approval.to_string()]).await;
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    ask.detail
}

async fn begun(daemon: &Daemon, client: &Client) -> (String, std::path::PathBuf) {
    let dir = std::path::PathBuf::from(daemon.workdir("project"));
    std::fs::write(dir.join("a.txt"), "one\ntwo\n").unwrap();
    (session(daemon, client, "change it").await, dir)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_patch_is_shown_applied_whole_undone_and_edited_again() {
    let server = patches().await;
    let daemon = daemon(&server, CONFIG).await;
    let client = daemon.client().await;
    let (session, dir) = begun(&daemon, &client).await;
    let read = |name: &str| std::fs::read_to_string(dir.join(name)).ok();
    let mut follower = Follower::attach(&client, &session).await;
    // A patch that does not match changes nothing, not even the parts that match.
    answer(&daemon, &mut follower, 1, "approve").await;
    let detail = answer(&daemon, &mut follower, 2, "approve").await;
    assert!(
        detail.contains("-two") && detail.contains("+TWO") && detail.contains("+new"),
        "{detail}"
    );
    answer(&daemon, &mut follower, 3, "approve").await;
    answer(&daemon, &mut follower, 4, "approve").await;
    assert_eq!(follower.turn_finished(1).await.reason, EndReason::Completed);
    let results = results(&check_log(&client, &session).await);
    let how: Vec<ToolStatus> = results.iter().map(|(status, _)| *status).collect();
    let (ok, error) = (ToolStatus::Ok, ToolStatus::Error);
    assert_eq!(how, [ok, error, ok, ok, ok], "{results:#?}");
    assert_eq!(
        (read("a.txt").as_deref(), read("b.txt"), read("c.txt")),
        (Some("1\n2\n"), None, None)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn i7_a_patch_that_a_person_refuses_changes_nothing() {
    let server = model(|_, step| match step {
        0 => Say::call("Read", json!({ "file_path": "a.txt" })),
        1 => Say::call("ApplyPatch", json!({ "patch": PATCH })),
        _ => Say::text("Done."),
    })
    .await;
    let daemon = daemon(&server, CONFIG).await;
    let client = daemon.client().await;
    let (session, dir) = begun(&daemon, &client).await;
    let mut follower = Follower::attach(&client, &session).await;
    answer(&daemon, &mut follower, 1, "deny").await;
    follower.turn_finished(1).await;
    let results = results(&check_log(&client, &session).await);
    assert_eq!(results[1].0, ToolStatus::Denied, "{results:?}");
    assert_eq!(std::fs::read_to_string(dir.join("a.txt")).unwrap(), "one\ntwo\n");
    assert!(!dir.join("b.txt").exists());
}
