//! Names that a shell, a path or an option parser would understand.

use super::{bash, daemon, model, results, session};
use agentd_protocol::{CreateParams, PermissionMode, ToolStatus};
use agentd_tests::fault_server::Say;
use serde_json::json;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

const HOSTILE: [&str; 6] = ["$(touch M)", "`touch M`", "; touch M", "-rf", "a\nb", "'\"\\"];

#[tokio::test(flavor = "multi_thread")]
async fn redteam_52_names_of_files_and_directories_are_only_names() {
    let reads = |name: &str| Say::call("Read", json!({ "file_path": name }));
    let mut says: Vec<Say> = HOSTILE.iter().map(|name| reads(name)).collect();
    says.push(Say::call("Grep", json!({ "pattern": "inside" })));
    says.push(Say::call("Glob", json!({ "pattern": "*" })));
    says.push(bash("pwd; echo x >ran"));
    let server = model(says).await;
    let daemon = daemon(&server, "").await;
    let client = daemon.client().await;
    // The working directory itself also has such a name.
    let dir = daemon.workdir("$(touch M); -rf");
    for name in HOSTILE {
        std::fs::write(Path::new(&dir).join(name), "inside\n").unwrap();
    }
    std::fs::write(Path::new(&dir).join(OsStr::from_bytes(b"\xff\xfe")), "inside\n").unwrap();
    let agent = session(&daemon, &client, "$(touch M); -rf", PermissionMode::Yolo).await;
    let results = results(&client, &agent).await;
    assert_eq!(
        super::statuses(&results),
        vec![ToolStatus::Ok; HOSTILE.len() + 3],
        "{results:?}"
    );
    assert!(
        Path::new(&dir).join("ran").exists(),
        "positive control: the command ran there"
    );
    for place in [
        dir.as_str(),
        &daemon.workdir(""),
        &daemon.dir.path().display().to_string(),
    ] {
        assert!(!Path::new(place).join("M").exists(), "{place}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn redteam_52_names_of_sessions_are_only_names_and_ids_are_checked() {
    let server = model(Vec::new()).await;
    let daemon = daemon(&server, "").await;
    let client = daemon.client().await;
    let create = |title: &str| CreateParams {
        title: Some(title.to_owned()),
        workdir: daemon.workdir("project"),
        ..CreateParams::default()
    };
    let plain = client.create(&create("plain")).await.unwrap().session.to_string();
    let shown = daemon.agentctl(&["show", "plain", "-o", "name"]).await;
    assert!(
        shown.stdout.contains(&plain),
        "positive control: {}{}",
        shown.stdout,
        shown.stderr
    );
    for name in HOSTILE {
        // Taken verbatim or refused; never interpreted.
        drop(client.create(&create(name)).await);
    }
    let long = "x".repeat(100_000);
    assert!(client.create(&create(&long)).await.is_err(), "too long a name");
    for id in ["..", "../../etc/passwd", "%2e%2e", "0000", "*", "' or 1=1 --"] {
        for verb in ["show", "logs", "export"] {
            let done = daemon.agentctl(&[verb, id]).await;
            assert!(
                matches!(done.code, Some(2..=5)),
                "{verb} {id}: {:?} {}",
                done.code,
                done.stdout
            );
        }
    }
    let listed = daemon.agentctl(&["ps", "-a"]).await;
    assert!(
        !listed.stdout.contains("a\nb "),
        "a name stays on its line: {}",
        listed.stdout
    );
    for place in [
        daemon.workdir("project"),
        daemon.workdir(""),
        daemon.dir.path().display().to_string(),
    ] {
        assert!(!Path::new(&place).join("M").exists(), "{place}");
    }
}
