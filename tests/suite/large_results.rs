//! Outputs that are too long for their results travel with an exported log.

use crate::commands::ctl;
use agentd_client::Client;
use agentd_protocol::{Event, EventBody, ExportParams};
use agentd_tests::{Daemon, DaemonOptions, Follower, check_log};
use std::path::Path;

/// More than a row of the store holds, and more than one part of an export.
const LONG: &str = r#"
[[turn]]
calls = [{ name = "Bash", input = { command = "seq 1 700000" } }]
[[turn]]
text = "Done."
"#;

async fn played(dir: &Path, script: &str) -> Daemon {
    let file = dir.join("script.toml");
    std::fs::write(&file, script).unwrap();
    let config = format!(
        "[model]\ndefault = \"played\"\n[models.played]\nprovider = \"scripted\"\nmodel = \"{}\"\n[permission]\nmode = \"yolo\"\n",
        file.display()
    );
    Daemon::start(DaemonOptions {
        config,
        ..DaemonOptions::default()
    })
    .await
}

/// The results of the session's own calls.
async fn results(client: &Client, session: &str) -> Vec<String> {
    let log = check_log(client, session).await;
    let result = |event: &Event| match &event.body {
        EventBody::ToolFinished(finished) => Some(finished.outcome.llm_text.clone()),
        _ => None,
    };
    log.iter().filter_map(result).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn i7_a_large_result_is_exported_and_can_be_read_where_it_is_imported_and_a_changed_one_is_refused() {
    let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let one = played(here.path(), LONG).await;
    let id = ctl(&one, &["run", "-d", "-q", "go"], 0).await.trim().to_owned();
    ctl(&one, &["wait", &id], 0).await;
    let exported = ctl(&one, &["export", &id], 0).await;
    let events = ctl(&one, &["export", &id, "--no-blobs"], 0).await;
    let parts = exported.strip_prefix(&events).expect("the contents follow");
    assert!(parts.lines().count() > 1, "{} bytes", parts.len());
    assert!(parts.lines().all(|line| line.starts_with(r#"{"blob":""#)));
    let log = check_log(&one.client().await, &id).await;
    let name = log.iter().find_map(|event| event.kept_output());
    let name = name.expect("the output was kept").to_owned();

    // The imported session can read what its result omits, but no other content.
    let read = |path: &str, from: u32| {
        format!(
            "[[turn]]\ncalls = [{{ name = \"Read\", input = {{ file_path = \"blob:{path}\", offset = {from} }} }}]\n"
        )
    };
    let script = format!(
        // The first two answers are in the imported conversation.
        "[[turn]]\ntext = \"-\"\n[[turn]]\ntext = \"-\"\n{}{}[[turn]]\ntext = \"Done.\"\n[[turn]]\ntext = \"Done.\"\n",
        read(&name, 600_000),
        read(&"0".repeat(64), 1),
    );
    let two = played(there.path(), &script).await;
    let file = there.path().join("log.jsonl");
    let import = async |text: &str, code| {
        std::fs::write(&file, text).unwrap();
        let args = ["import", &file.to_string_lossy(), "-C", &two.workdir("in")];
        let done = two.agentctl(&args).await;
        assert_eq!(done.code, Some(code), "{}{}", done.stdout, done.stderr);
        (done.stdout.trim().to_owned(), done.stderr)
    };
    let (copy, _) = import(&exported, 0).await;
    ctl(&two, &["run", "--session", &copy, "read it"], 0).await;
    let client = two.client().await;
    let mut follower = Follower::attach(&client, &copy).await;
    follower.turn_finished(1).await;
    let results = results(&client, &copy).await;
    assert!(results[0].contains("600001"), "{results:?}");
    assert!(results[1].contains("no stored output"), "{results:?}");
    // The imported session is exported again.
    let again = ctl(&two, &["export", &copy], 0).await;
    assert!(again.ends_with(parts), "{} bytes", again.len());

    // One byte of the data differs: nothing is imported.
    let sessions = async || ctl(&two, &["ps", "-a", "-q"], 0).await;
    let before = sessions().await;
    let at = exported.len() - parts.len() + parts.find("\"data\":\"").unwrap() + 100;
    let (head, tail) = exported.split_at(at);
    let other = if tail.starts_with('A') { "B" } else { "A" };
    let (_, error) = import(&format!("{head}{other}{}", &tail[1..]), 2).await;
    assert!(error.contains(&name) && error.contains("changed"), "{error}");
    let lines: Vec<&str> = exported.lines().collect();
    let (_, error) = import(&lines[..lines.len() - 1].join("\n"), 2).await;
    assert!(error.contains("ends after"), "{error}");
    assert_eq!(sessions().await, before);
    // A file without contents works as before contents existed.
    let (bare, _) = import(&events, 0).await;
    let params = ExportParams {
        session: bare,
        ..ExportParams::default()
    };
    assert!(client.export(&params).await.unwrap().lines[0].contains("session.imported"));
}
