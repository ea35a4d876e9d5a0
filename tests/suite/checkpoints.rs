//! Recorded files: what commands did is shown, undone and rewound, also across a crash.

use crate::session;
use agentd_client::Client;
use agentd_protocol::{Block, Diffed, EventBody, PutBackDone, SendParams};
use agentd_tests::{Daemon, DaemonOptions, Follower, check_log};
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

/// Two turns: the first makes files with a command, the second destroys them with another one.
const SCRIPT: &str = r#"
[[turn]]
calls = [{ name = "Write", input = { file_path = "a.txt", content = "one\n" } }]
[[turn]]
calls = [{ name = "Bash", input = { command = "mkdir d && echo x > d/x && chmod 755 d/x && ln -s x d/l && echo two >> a.txt" } }]
[[turn]]
text = "First turn done."
[[turn]]
calls = [{ name = "Bash", input = { command = "rm -r d && mkdir a && mv a.txt a/ && echo new > \"$(printf 'b\\nc')\"" } }]
[[turn]]
text = "Second turn done."
[[turn]]
text = "Third turn done."
"#;

struct Played {
    daemon: Daemon,
    client: Client,
    id: String,
    workdir: PathBuf,
}

impl Played {
    /// A session that has played one turn; before it, the directory has a file.
    async fn one_turn(more: &str) -> Self {
        Self::script(SCRIPT, more).await
    }

    /// The same with other turns.
    async fn script(turns: &str, more: &str) -> Self {
        let script = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(script.path(), turns).unwrap();
        let config = format!(
            "[model]\ndefault = \"played\"\n[models.played]\nprovider = \"scripted\"\nmodel = \"{}\"\n[permission]\nmode = \"yolo\"\n[workspace]\ncheckpoint = \"step\"\n{more}",
            script.path().display()
        );
        let daemon = Daemon::start(DaemonOptions {
            config,
            ..DaemonOptions::default()
        })
        .await;
        let client = daemon.client().await;
        let workdir = PathBuf::from(daemon.workdir("project"));
        std::fs::write(workdir.join("before.txt"), "before\n").unwrap();
        let id = session(&daemon, &client, "begin").await;
        let _ = script.keep().unwrap();
        let played = Self {
            daemon,
            client,
            id,
            workdir,
        };
        played.turn(1, "First turn done.").await;
        played
    }

    async fn go_on(&self, n: usize, text: &str) {
        let params = SendParams {
            session: self.id.clone(),
            content: vec![Block::text("go on")],
            ..SendParams::default()
        };
        self.client.send(&params).await.unwrap();
        self.turn(n, text).await;
    }

    async fn turn(&self, n: usize, text: &str) {
        let mut follower = Follower::attach(&self.client, &self.id).await;
        assert_eq!(follower.turn_finished(n).await.text, text);
    }

    fn file(&self, name: &str) -> Option<String> {
        std::fs::read_to_string(self.workdir.join(name)).ok()
    }

    /// The directory as the first turn left it.
    fn is_as_after_the_first_turn(&self) {
        assert_eq!(self.file("a.txt").as_deref(), Some("one\ntwo\n"));
        assert_eq!(self.file("d/x").as_deref(), Some("x\n"));
        let mode = std::fs::metadata(self.workdir.join("d/x"))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o755);
        assert_eq!(
            std::fs::read_link(self.workdir.join("d/l")).unwrap(),
            PathBuf::from("x")
        );
        assert!(!self.workdir.join("a").exists() && !self.workdir.join("b\nc").exists());
    }

    async fn agentctl(&self, args: &[&str], code: i32) -> String {
        let done = self.daemon.agentctl(args).await;
        assert_eq!(done.code, Some(code), "{args:?}: {}{}", done.stdout, done.stderr);
        format!("{}{}", done.stdout, done.stderr)
    }

    async fn json<T: serde::de::DeserializeOwned>(&self, args: &[&str]) -> T {
        let done = self.daemon.agentctl(args).await;
        assert_eq!(done.code, Some(0), "{args:?}: {}", done.stderr);
        serde_json::from_str(&done.stdout).unwrap()
    }

    /// The seqs of the events that name recorded files.
    async fn recorded(&self) -> Vec<u64> {
        let log = check_log(&self.client, &self.id).await;
        let names = log
            .iter()
            .filter(|event| matches!(event.body, EventBody::WorkspaceCheckpointed(_)));
        names.map(|event| event.seq).collect()
    }
}

fn paths(diffed: &Diffed) -> Vec<(&str, &str)> {
    let files = diffed.files.iter();
    files
        .map(|file| (file.path.as_str(), file.status.as_str()))
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_command_destroyed_is_shown_and_undone_and_that_is_undone() {
    let played = Played::one_turn("").await;
    let id = played.id.as_str();
    let first: Diffed = played.json(&["diff", id, "-o", "json"]).await;
    assert_eq!(
        paths(&first),
        [("a.txt", "added"), ("d/l", "added"), ("d/x", "added")]
    );
    assert!(first.stays.is_empty(), "{:?}", first.stays);
    played.go_on(2, "Second turn done.").await;
    assert_eq!(played.file("a.txt"), None);
    let second: Diffed = played.json(&["diff", id, "--turn", "last", "-o", "json"]).await;
    assert_eq!(
        paths(&second),
        [
            ("a.txt", "deleted"),
            ("a/a.txt", "added"),
            ("b\nc", "added"),
            ("d/l", "deleted"),
            ("d/x", "deleted")
        ]
    );
    let would: PutBackDone = played.json(&["undo", id, "--dry-run", "-o", "json"]).await;
    assert_eq!((would.files.len(), would.conflicts.len()), (5, 0));
    let done: PutBackDone = played.json(&["undo", id, "-o", "json"]).await;
    assert_eq!(done.files.len(), 5);
    played.is_as_after_the_first_turn();
    // The change that it reverted is over; the one before it is next.
    played.agentctl(&["undo", id, "--change", &done.undo_id], 0).await;
    assert_eq!(played.file("a/a.txt").as_deref(), Some("one\ntwo\n"));
    played.agentctl(&["undo", id], 0).await;
    played.is_as_after_the_first_turn();
    played.agentctl(&["undo", id], 0).await;
    assert_eq!(played.file("a.txt").as_deref(), Some("one\n"));
    assert!(!played.workdir.join("d").exists());
    played.agentctl(&["undo", id], 0).await;
    assert_eq!(played.file("a.txt"), None);
    assert!(
        played
            .agentctl(&["undo", id], 5)
            .await
            .contains("no file change left to undo")
    );
    assert_eq!(played.file("before.txt").as_deref(), Some("before\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn going_back_takes_the_files_along_and_spares_what_others_did_between_the_turns() {
    let played = Played::one_turn("").await;
    let id = played.id.as_str();
    let log = check_log(&played.client, id).await;
    let end = log
        .iter()
        .find(|event| matches!(event.body, EventBody::TurnFinished(_)));
    let end = end.unwrap().seq.to_string();
    std::fs::write(played.workdir.join("before.txt"), "a person's\n").unwrap();
    played.go_on(2, "Second turn done.").await;
    let recorded = played.recorded().await;
    let range = format!("{}..{}", recorded[0], recorded[recorded.len() - 1]);
    let all: Diffed = played.json(&["diff", id, "--at", &range, "-o", "json"]).await;
    assert_eq!(
        paths(&all),
        [
            ("a/a.txt", "added"),
            ("b\nc", "added"),
            ("before.txt", "modified")
        ]
    );
    played.agentctl(&["rewind", id, "--at", &end, "--files"], 0).await;
    played.is_as_after_the_first_turn();
    assert_eq!(played.file("before.txt").as_deref(), Some("a person's\n"));
    let refused = played.agentctl(&["diff", id, "--at", "1..2"], 3).await;
    assert!(refused.contains("no files were recorded"), "{refused}");
    check_log(&played.client, id).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_someone_changed_since_is_a_conflict() {
    let played = Played::one_turn("").await;
    let id = played.id.as_str();
    std::fs::write(played.workdir.join("d/x"), "mine\n").unwrap();
    let refused = played.agentctl(&["undo", id], 5).await;
    assert!(refused.contains("d/x"), "{refused}");
    assert_eq!(
        played.file("a.txt").as_deref(),
        Some("one\ntwo\n"),
        "nothing was changed"
    );
    played.agentctl(&["undo", id, "--force"], 0).await;
    assert!(!played.workdir.join("d").exists());
    assert_eq!(played.file("a.txt").as_deref(), Some("one\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn i6_a_directory_with_too_many_files_is_not_recorded_and_the_log_says_so_once() {
    let played = Played::one_turn("checkpoint_files = 1\n").await;
    played.go_on(2, "Second turn done.").await;
    let log = check_log(&played.client, &played.id).await;
    let warnings: Vec<_> = log
        .iter()
        .filter_map(|event| match &event.body {
            EventBody::WarningRaised(raised) => Some(raised.message.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(
        warnings,
        [
            "undo and diff do not cover what commands do: the directory has more than 1 files (workspace.checkpoint_files)"
        ]
    );
    let done: PutBackDone = played.json(&["undo", &played.id, "--force", "-o", "json"]).await;
    assert_eq!(
        done.files,
        ["a.txt"],
        "what the file tools did is undone as before"
    );
}

/// Makes a file of 5 GB, deletes another one, and makes a small one.
const HUGE: &str = r#"
[[turn]]
calls = [{ name = "Bash", input = { command = "truncate -s 5G big && rm before.txt && mkdir d && echo x > d/x" } }]
[[turn]]
text = "First turn done."
"#;

#[tokio::test(flavor = "multi_thread")]
async fn a_file_of_5_gb_is_left_out_with_words_and_the_rest_is_undone() {
    let played = Played::script(HUGE, "").await;
    let id = played.id.as_str();
    let log = check_log(&played.client, id).await;
    let left_out = log.iter().rev().find_map(|event| match &event.body {
        EventBody::WorkspaceCheckpointed(taken) => Some(taken.left_out.clone()),
        _ => None,
    });
    let left_out = left_out.unwrap().join("\n");
    assert!(
        left_out.contains("big") && left_out.contains("checkpoint_file_bytes"),
        "{left_out}"
    );
    let shown = played.agentctl(&["diff", id], 0).await;
    assert!(shown.contains("before.txt") && shown.contains("d/x"), "{shown}");
    assert!(shown.contains("big"), "it says what is left out: {shown}");
    let undone = played.agentctl(&["undo", id], 0).await;
    assert!(
        undone.contains("before.txt") && undone.contains("big: 5368709120 bytes"),
        "{undone}"
    );
    assert_eq!(played.file("before.txt").as_deref(), Some("before\n"));
    assert!(!played.workdir.join("d").exists());
    assert_eq!(
        std::fs::metadata(played.workdir.join("big")).unwrap().len(),
        5 << 30
    );
}
