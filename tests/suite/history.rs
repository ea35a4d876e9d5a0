//! Files and history: a session's changes are shown, undone and rewound, also across a crash.

use crate::session;
use agentd_client::Client;
use agentd_protocol::{
    Block, Created, Diffed, EventBody, FaultClass, PutBackDone, SendParams, SessionParams, UndoParams,
};
use agentd_tests::{Daemon, DaemonOptions, Follower, check_log};
use std::path::{Path, PathBuf};

/// Two turns: the first makes and edits a file, the second edits it again, runs a command and makes another one.
const SCRIPT: &str = r#"
[[turn]]
text = "I write it."
calls = [{ name = "Write", input = { file_path = "a.txt", content = "one\ntwo\n" } }]
[[turn]]
calls = [{ name = "Edit", input = { file_path = "a.txt", old_string = "two", new_string = "TWO" } }]
[[turn]]
text = "First turn done."
[[turn]]
calls = [{ name = "Edit", input = { file_path = "a.txt", old_string = "one", new_string = "ONE" } }]
[[turn]]
calls = [{ name = "Bash", input = { command = "echo by a command > c.txt" } }]
[[turn]]
calls = [{ name = "Write", input = { file_path = "b/new.txt", content = "new\n" } }]
[[turn]]
text = "Second turn done."
[[turn]]
text = "Third turn done."
"#;

const FIRST: &str = "one\nTWO\n";
const SECOND: &str = "ONE\nTWO\n";

struct Played {
    daemon: Daemon,
    client: Client,
    id: String,
    workdir: PathBuf,
}

impl Played {
    /// A session that has played two turns.
    async fn two_turns() -> Self {
        let script = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(script.path(), SCRIPT).unwrap();
        let config = format!(
            "[model]\ndefault = \"played\"\n[models.played]\nprovider = \"scripted\"\nmodel = \"{}\"\n[permission]\nmode = \"yolo\"\n[workspace]\ncheckpoint = \"off\"\n",
            script.path().display()
        );
        let daemon = Daemon::start(DaemonOptions {
            config,
            ..DaemonOptions::default()
        })
        .await;
        let client = daemon.client().await;
        let workdir = PathBuf::from(daemon.workdir("project"));
        let id = session(&daemon, &client, "begin").await;
        // The daemon reads the script when it starts; after a restart it needs it again.
        let _ = script.keep().unwrap();
        let played = Self {
            daemon,
            client,
            id,
            workdir,
        };
        played.turn(1, "First turn done.").await;
        played.send("go on").await;
        played.turn(2, "Second turn done.").await;
        played
    }

    async fn send(&self, text: &str) {
        let params = SendParams {
            session: self.id.clone(),
            content: vec![Block::text(text)],
            ..SendParams::default()
        };
        self.client.send(&params).await.unwrap();
    }

    async fn turn(&self, n: usize, text: &str) {
        let mut follower = Follower::attach(&self.client, &self.id).await;
        assert_eq!(follower.turn_finished(n).await.text, text);
    }

    fn file(&self, name: &str) -> Option<String> {
        std::fs::read_to_string(self.workdir.join(name)).ok()
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

    /// The seq of the last event of the first turn.
    async fn end_of_first(&self) -> u64 {
        let log = check_log(&self.client, &self.id).await;
        let end = log
            .iter()
            .find(|event| matches!(event.body, EventBody::TurnFinished(_)));
        end.unwrap().seq
    }
}

fn paths(diffed: &Diffed) -> Vec<(&str, &str, u64, u64)> {
    let files = diffed.files.iter();
    files
        .map(|file| (file.path.as_str(), file.status.as_str(), file.added, file.removed))
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_session_changed_is_shown_and_undone_change_by_change() {
    let played = Played::two_turns().await;
    let id = played.id.as_str();
    assert_eq!(played.file("a.txt").as_deref(), Some(SECOND));
    let all: Diffed = played.json(&["diff", id, "-o", "json"]).await;
    assert_eq!(
        paths(&all),
        [("a.txt", "added", 2, 0), ("b/new.txt", "added", 1, 0)]
    );
    assert_eq!(all.stays.len(), 1, "the command is named: {:?}", all.stays);
    let last: Diffed = played.json(&["diff", id, "--turn", "last", "-o", "json"]).await;
    assert_eq!(
        paths(&last),
        [("a.txt", "modified", 1, 1), ("b/new.txt", "added", 1, 0)]
    );
    let text = played.agentctl(&["diff", id, "--turn", "last"], 0).await;
    assert!(text.contains("-one\n+ONE\n"), "{text}");
    let dry = played.agentctl(&["undo", id, "--dry-run"], 0).await;
    assert!(dry.contains("b/new.txt: would be restored"), "{dry}");
    assert_eq!(played.file("b/new.txt").as_deref(), Some("new\n"));
    // The last change, as a person types it; then the one before it.
    let said = played
        .agentctl(&["send", id, "/undo", "--commands", "--key", "k"], 0)
        .await;
    assert!(said.contains("undone: b/new.txt"), "{said}");
    let again = played
        .agentctl(&["send", id, "/undo", "--commands", "--key", "k"], 0)
        .await;
    assert_eq!(again, said, "the same key undoes once");
    assert_eq!(played.file("b/new.txt"), None);
    let undone: PutBackDone = played.json(&["undo", id, "-o", "json"]).await;
    assert_eq!(
        (undone.files, played.file("a.txt").as_deref()),
        (vec!["a.txt".to_owned()], Some(FIRST))
    );
    // An undo can be undone.
    played
        .agentctl(&["undo", id, "--change", &undone.undo_id], 0)
        .await;
    assert_eq!(played.file("a.txt").as_deref(), Some(SECOND));
    // A whole turn: only the changes that still stand.
    played.agentctl(&["undo", id, "--turn", "last"], 0).await;
    assert_eq!(played.file("a.txt").as_deref(), Some(FIRST));
    assert_eq!(
        played.file("c.txt").as_deref(),
        Some("by a command\n"),
        "what commands did stays"
    );
    // The next input informs the model.
    played.send("and now?").await;
    played.turn(3, "Third turn done.").await;
    let log = check_log(&played.client, id).await;
    let notes = log.iter().filter_map(|event| match &event.body {
        EventBody::NoteInjected(note) => Some(note.text.clone()),
        _ => None,
    });
    assert_eq!(notes.filter(|note| note.contains("undid changes")).count(), 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_somebody_changed_since_is_not_lost_unless_that_is_wanted() {
    let played = Played::two_turns().await;
    let id = played.id.as_str();
    std::fs::write(played.workdir.join("a.txt"), "mine\n").unwrap();
    let refused = played.agentctl(&["undo", id, "--turn", "last"], 5).await;
    assert!(
        refused.contains("these files have changed since: a.txt"),
        "{refused}"
    );
    assert_eq!(played.file("a.txt").as_deref(), Some("mine\n"));
    assert_eq!(
        played.file("b/new.txt").as_deref(),
        Some("new\n"),
        "all or nothing"
    );
    played
        .agentctl(&["undo", id, "--turn", "last", "--force"], 0)
        .await;
    assert_eq!(
        (played.file("a.txt").as_deref(), played.file("b/new.txt")),
        (Some(FIRST), None)
    );
    // Changes discarded by force are stored, too.
    played
        .agentctl(&["undo", id, "--change", "ffffffffffff"], 3)
        .await;
    let again = played.agentctl(&["undo", id, "--turn", "last"], 5).await;
    assert!(again.contains("no file change left to undo"), "{again}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_undoes_once_and_a_running_turn_not_at_all() {
    let played = Played::two_turns().await;
    let undo = UndoParams {
        session: played.id.clone(),
        key: Some("once".to_owned()),
        ..UndoParams::default()
    };
    let first = played.client.undo(&undo).await.unwrap();
    let second = played.client.undo(&undo).await.unwrap();
    assert_eq!(first, second);
    assert_eq!(
        played.file("a.txt").as_deref(),
        Some(SECOND),
        "only the last change"
    );
    let other = UndoParams { force: true, ..undo };
    let fault = agentd_protocol::Fault::from(played.client.undo(&other).await.unwrap_err());
    assert_eq!(fault.class, FaultClass::Conflict);
}

/// The messages of people in the window.
async fn said(played: &Played) -> usize {
    let params = SessionParams {
        session: played.id.clone(),
    };
    let shown = played.client.context(&params).await.unwrap();
    assert!(
        shown.largest.iter().all(|item| item.seq > 0 && item.tokens > 0),
        "{shown:?}"
    );
    let part = shown.parts.iter().find(|part| part.kind == "said");
    part.map_or(0, |part| part.items)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_goes_back_with_its_files_and_tells_what_stays() {
    let played = Played::two_turns().await;
    let id = played.id.as_str();
    assert_eq!(said(&played).await, 2);
    let at = played.end_of_first().await;
    let back: PutBackDone = played
        .json(&["rewind", id, "--at", &at.to_string(), "--files", "-o", "json"])
        .await;
    assert_eq!(back.rewound_to, Some(at));
    assert_eq!(back.stays.len(), 1, "{:?}", back.stays);
    assert_eq!(said(&played).await, 1, "the window has the first message only");
    assert_eq!(
        (played.file("a.txt").as_deref(), played.file("b/new.txt")),
        (Some(FIRST), None)
    );
    // The script depends on the answers in the conversation, so the second turn is played once more.
    played.send("again").await;
    played.turn(3, "Second turn done.").await;
    assert_eq!(played.file("a.txt").as_deref(), Some(SECOND));
    check_log(&played.client, id).await;
    let too_late = played.agentctl(&["rewind", id, "--at", "100000"], 2).await;
    assert!(too_late.contains("the log ends at"), "{too_late}");
}

#[tokio::test(flavor = "multi_thread")]
async fn i1_a_kill_leaves_the_session_where_it_went_back_to() {
    let mut played = Played::two_turns().await;
    let at = played.end_of_first().await;
    let id = played.id.clone();
    played
        .agentctl(&["rewind", &id, "--at", &at.to_string()], 0)
        .await;
    played.daemon.kill().await;
    played.daemon = played.daemon.restart(None).await;
    played.client = played.daemon.client().await;
    std::fs::write(played.workdir.join("a.txt"), FIRST).unwrap();
    played.send("again").await;
    played.turn(3, "Second turn done.").await;
    check_log(&played.client, &id).await;
}

/// Killed when the intent is durable, or when the files are restored but the log does not say so.
#[tokio::test(flavor = "multi_thread")]
async fn i4_a_kill_in_the_middle_of_an_undo_does_not_stop_it() {
    for fault in ["rework.before=kill@1", "rework.after=kill@1"] {
        let mut played = Played::two_turns().await;
        let id = played.id.clone();
        played.daemon.kill().await;
        played.daemon = played.daemon.restart(Some(fault)).await;
        let undone = played.daemon.agentctl(&["undo", &id, "--turn", "last"]).await;
        assert_ne!(undone.code, Some(0), "the daemon was killed: {}", undone.stdout);
        played.daemon.ended().await;
        played.daemon = played.daemon.restart(None).await;
        played.client = played.daemon.client().await;
        let mut follower = Follower::attach(&played.client, &id).await;
        follower
            .until("the undo is done", |body| {
                matches!(body, EventBody::UndoApplied(_))
            })
            .await;
        assert_eq!(
            (played.file("a.txt").as_deref(), played.file("b/new.txt")),
            (Some(FIRST), None),
            "{fault}"
        );
        // Only the session wrote these files: it continues to rewind without force.
        played.agentctl(&["rewind", &id, "--at", "1", "--files"], 0).await;
        assert_eq!(played.file("a.txt"), None, "{fault}");
        check_log(&played.client, &id).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fork_goes_its_own_way_from_a_point_of_the_log() {
    let played = Played::two_turns().await;
    let at = played.end_of_first().await;
    let created: Created = played
        .json(&[
            "fork",
            &played.id,
            "--at",
            &(at + 3).to_string(),
            "--name",
            "other way",
            "-o",
            "json",
        ])
        .await;
    let fork = created.session.to_string();
    assert_eq!((created.name.as_str(), created.seq), ("other way", at + 2));
    let log = check_log(&played.client, &fork).await;
    assert!(
        log.iter()
            .any(|event| matches!(&event.body, EventBody::SessionForked(forked) if forked.at_seq == at))
    );
    let steps = async |id: &str| {
        let shown: serde_json::Value = played.json(&["show", id, "-o", "json"]).await;
        shown.pointer("/steps").cloned()
    };
    assert_ne!(steps(&played.id).await, Some(0.into()), "positive control");
    assert_eq!(steps(&fork).await, Some(0.into()), "it has spent nothing yet");
    let born = async |id: &str| played.client.get(id).await.unwrap().created_at;
    assert!(
        born(&fork).await > born(&played.id).await,
        "a fork is as old as itself"
    );
    let unnamed: Created = played.json(&["fork", &played.id, "-o", "json"]).await;
    let first = played.client.get(&played.id).await.unwrap().name;
    assert_eq!(unnamed.name, format!("{first}-fork"));
    // The fork can also undo changes whose contents the first session stored, even after the first one is deleted.
    played.agentctl(&["rm", &played.id], 0).await;
    std::fs::write(played.workdir.join("a.txt"), FIRST).unwrap();
    played.agentctl(&["undo", &fork], 0).await;
    assert_eq!(played.file("a.txt").as_deref(), Some("one\ntwo\n"));
    let params = SessionParams { session: fork };
    let _: serde_json::Value = played
        .client
        .call("session.get", &params, std::time::Duration::from_secs(60))
        .await
        .unwrap();
    assert!(Path::new(&played.workdir).is_dir());
}
