//! The interface for scripts: JSON shapes, exit codes and texts of `agentctl`.

use crate::{ASKING, YOLO, daemon};
use agentd_bench::model_server::ModelServer;
use agentd_client::Client;
use agentd_protocol::{Event, ExportParams};
use agentd_tests::{Daemon, within};
use serde_json::Value;
use std::collections::BTreeSet;
use std::process::Stdio;
use tokio::io::{AsyncBufReadExt as _, BufReader};

const ROW: &str = "session name state reason since model workdir labels seq steps usage cost_usd created_at updated_at parent";
const DETAIL: &str = "turn open_approvals queue budget limits last_error";
const APPROVAL: &str = "approval kind session tool title detail bytes sha256 rule reason risks directory watches likeness choices asked_at expires_at scopes";
const USAGE: &str = "input output cache_read cache_write reasoning";
const RESULT: &str = "session turn success reason text steps tool_calls denied_calls usage cost_usd";

/// Runs `agentctl`; its exit code must be `code`.
pub(crate) async fn ctl(daemon: &Daemon, args: &[&str], code: i32) -> String {
    let done = daemon.agentctl(args).await;
    assert_eq!(done.code, Some(code), "{args:?}: {}{}", done.stdout, done.stderr);
    done.stdout
}

pub(crate) async fn json(daemon: &Daemon, args: &[&str]) -> Value {
    let text = ctl(daemon, &[args, &["-o", "json"]].concat(), 0).await;
    serde_json::from_str(&text).unwrap_or_else(|error| unreachable!("{args:?} prints JSON: {error}: {text}"))
}

fn keys(value: &Value) -> BTreeSet<&str> {
    value
        .as_object()
        .map(|object| object.keys().map(String::as_str).collect())
        .unwrap_or_default()
}

fn names(list: &str) -> BTreeSet<&str> {
    list.split(' ').collect()
}

/// The exact stored lines, through the protocol.
async fn stored(client: &Client, session: &str) -> Vec<String> {
    let params = ExportParams {
        session: session.to_owned(),
        ..ExportParams::default()
    };
    client.export(&params).await.unwrap().lines
}

/// Runs a session to its end; returns its id.
async fn ran(daemon: &Daemon, name: &str, plan: &str) -> String {
    let id = ctl(daemon, &["run", "-d", "-q", "--name", name, plan], 0).await;
    ctl(daemon, &["wait", name], 0).await;
    id.trim().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn ps_show_and_approvals_have_exactly_the_fields_of_the_contract() {
    let server = ModelServer::start(false).await.unwrap();
    let daemon = daemon(&server, ASKING).await;
    let plan = "plan:s steps=1 command=echo_hi;";
    let id = ctl(
        &daemon,
        &["run", "-dq", "--name", "shapes", "-l", "team=a", plan],
        0,
    )
    .await;
    let id = id.strip_suffix('\n').expect("one line");
    assert!(
        id.parse::<agentd_protocol::SessionId>().is_ok(),
        "the id alone: {id:?}"
    );
    ctl(&daemon, &["wait", "--for", "approval", "shapes"], 0).await;

    let rows = json(&daemon, &["ps"]).await;
    assert_eq!(rows.as_array().map(Vec::len), Some(1));
    let row = &rows[0];
    assert_eq!(keys(row), names(ROW));
    assert_eq!(keys(&row["usage"]), names(USAGE));
    assert_eq!(
        (
            &row["session"],
            &row["name"],
            &row["state"],
            &row["labels"]["team"]
        ),
        (
            &id.into(),
            &"shapes".into(),
            &"waiting(approval)".into(),
            &"a".into()
        )
    );
    assert_eq!(
        json(&daemon, &["ps", "-l", "team=b"]).await,
        Value::Array(Vec::new())
    );

    let shown = json(&daemon, &["show", id]).await;
    assert_eq!(keys(&shown), names(&format!("{ROW} {DETAIL}")));
    assert_eq!(keys(&shown["budget"]), names("tokens usd time_ms steps"));

    let inbox = json(&daemon, &["approvals"]).await;
    assert_eq!(keys(&inbox[0]), names(APPROVAL));
    assert_eq!(shown["open_approvals"], inbox);
    assert_eq!(
        (&inbox[0]["session"], &inbox[0]["tool"], &inbox[0]["kind"]),
        (&id.into(), &"Bash".into(), &"tool".into())
    );
    assert!(inbox[0]["detail"].as_str().unwrap().contains("echo hi"));

    assert!(
        ctl(&daemon, &["wait", id], 7).await.is_empty(),
        "it waits for a person"
    );
    ctl(&daemon, &["approve", id], 0).await;
    ctl(&daemon, &["wait", id], 0).await;
    assert_eq!(json(&daemon, &["approvals"]).await, Value::Array(Vec::new()));
    ctl(&daemon, &["approve", id], 5).await;
    ctl(&daemon, &["approve", "nobody"], 3).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn run_prints_one_result_object_and_errors_have_their_shape() {
    let server = ModelServer::start(false).await.unwrap();
    let daemon = daemon(&server, YOLO).await;
    let result = json(&daemon, &["run", "plan:r steps=1 command=echo_hi text=Fine.;"]).await;
    assert_eq!(keys(&result), names(RESULT));
    assert_eq!(
        (
            &result["success"],
            &result["reason"],
            &result["text"],
            &result["steps"]
        ),
        (&true.into(), &"completed".into(), &"Fine.".into(), &2.into())
    );
    assert_eq!(keys(&result["tool_calls"][0]), names("name input result status"));
    let missing = daemon.agentctl(&["show", "nobody", "-o", "json"]).await;
    assert_eq!((missing.code, missing.stdout.as_str()), (Some(3), ""));
    let fault: Value = serde_json::from_str(&missing.stderr).unwrap();
    assert_eq!(keys(&fault), names("class code message hint"));
    let people = daemon.agentctl(&["show", "nobody"]).await;
    let lines: Vec<&str> = people.stderr.lines().collect();
    assert!(
        matches!(lines[..], [what, how] if what.starts_with("error: ") && how.starts_with("hint: ")),
        "{lines:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn logs_are_a_transcript_for_people_and_the_stored_lines_for_programs() {
    let server = ModelServer::start(false).await.unwrap();
    let daemon = daemon(&server, YOLO).await;
    let id = ran(
        &daemon,
        "logged",
        "plan:l steps=1 command=echo_marvellous text=Finished.;",
    )
    .await;
    let text = ctl(&daemon, &["logs", "logged"], 0).await;
    for wanted in [
        "> plan:l",
        "tool     Bash echo marvellous",
        "| marvellous",
        "Finished.",
        "turn     completed",
    ] {
        assert!(text.contains(wanted), "{wanted:?} is missing in:\n{text}");
    }
    let client = daemon.client().await;
    let lines = stored(&client, &id).await;
    for format in ["json", "jsonl"] {
        let printed = ctl(&daemon, &["logs", "logged", "-n", "3", "-o", format], 0).await;
        assert_eq!(printed.lines().collect::<Vec<_>>(), lines[lines.len() - 3..]);
    }
    let calls = ctl(&daemon, &["logs", &id, "--kind", "tool", "-o", "jsonl"], 0).await;
    let kinds: Vec<String> = calls
        .lines()
        .map(|line| {
            serde_json::from_str::<Event>(line)
                .unwrap()
                .body
                .kind()
                .to_owned()
        })
        .collect();
    assert_eq!(kinds, ["tool.proposed", "tool.started", "tool.finished"]);
    let after = lines.len().to_string();
    assert_eq!(
        ctl(&daemon, &["logs", &id, "--after", &after, "-o", "jsonl"], 0).await,
        ""
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_exported_log_is_byte_exact_and_is_history_on_another_daemon() {
    let server = ModelServer::start(false).await.unwrap();
    let (one, two) = (daemon(&server, YOLO).await, daemon(&server, YOLO).await);
    let id = ran(&one, "travels", "plan:e steps=2 command=echo_hi;").await;
    let lines = stored(&one.client().await, &id).await;
    let exported = ctl(&one, &["export", "travels", "--jsonl"], 0).await;
    assert_eq!(exported, format!("{}\n", lines.join("\n")));

    let file = one.dir.path().join("travels.jsonl");
    std::fs::write(&file, &exported).unwrap();
    let file = file.to_string_lossy().into_owned();
    let there = ctl(&two, &["import", &file], 0).await;
    let there = there.trim();
    assert_ne!(there, id, "a file does not choose the id");
    let client = two.client().await;
    let copy = stored(&client, there).await;
    let quoted = copy.get(2..).unwrap();
    assert_eq!(quoted.len(), lines.len());
    for (quoted, line) in quoted.iter().zip(&lines) {
        assert!(
            quoted.ends_with(&format!(r#""event":{line}}}"#)),
            "byte for byte: {quoted}"
        );
    }
    let imported = json(&two, &["show", there]).await;
    assert_eq!(
        (&imported["steps"], &imported["cost_usd"]),
        (&0.into(), &0.0.into())
    );
    // It continues like any other session, and knows the imported conversation.
    ctl(&two, &["run", "--session", there, "plan:more text=more;"], 0).await;
    std::fs::write(&file, exported.lines().skip(1).collect::<Vec<_>>().join("\n")).unwrap();
    ctl(&two, &["import", &file], 2).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn events_follow_the_fleet_and_go_on_behind_a_cursor() {
    let server = ModelServer::start(false).await.unwrap();
    let daemon = daemon(&server, YOLO).await;
    let before = ran(&daemon, "before", "plan:one;").await;
    let mut follow = daemon
        .agentctl_command(&["events", "-f", "--after", "0", "-o", "jsonl"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(follow.stdout.take().unwrap()).lines();
    let now = ran(&daemon, "now", "plan:two;").await;
    let mut seen = Vec::new();
    loop {
        let line = within("the next event", lines.next_line())
            .await
            .unwrap()
            .expect("it follows");
        let event: Event = serde_json::from_str(&line).unwrap();
        let last = event.session.to_string() == now && event.body.kind() == "turn.finished";
        seen.push(line);
        if last {
            break;
        }
    }
    follow.kill().await.unwrap();
    let client = daemon.client().await;
    let all = [stored(&client, &before).await, stored(&client, &now).await].concat();
    assert_eq!(seen, all);
    let once = daemon.agentctl(&["events", "-o", "jsonl"]).await;
    assert_eq!(once.stdout.lines().collect::<Vec<_>>(), all);
    let cursor = once
        .stderr
        .trim()
        .strip_prefix("cursor: ")
        .expect("the cursor is said")
        .to_owned();
    let rest = daemon
        .agentctl(&["events", "--after", &cursor, "-o", "jsonl"])
        .await;
    assert_eq!((rest.code, rest.stdout.as_str()), (Some(0), ""));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_closed_session_takes_no_input_and_a_removed_one_is_gone_also_after_a_restart() {
    let server = ModelServer::start(false).await.unwrap();
    let mut first = daemon(&server, YOLO).await;
    let id = ran(&first, "old", "plan:o;").await;
    ctl(&first, &["close", "old", "--reason", "no need"], 0).await;
    ctl(&first, &["send", "old", "more"], 5).await;
    ctl(&first, &["wait", "--for", "closed", "old"], 0).await;
    assert_eq!(json(&first, &["ps"]).await, Value::Array(Vec::new()));
    assert_eq!(json(&first, &["ps", "-a"]).await[0]["state"], "closed");
    let busy = ctl(&first, &["run", "-dq", "--name", "busy", "plan:b hang=0;"], 0).await;
    for verb in ["rm", "close"] {
        let refused = first.agentctl(&[verb, "busy"]).await;
        assert_eq!(refused.code, Some(5), "{}", refused.stderr);
        assert!(
            refused.stderr.contains(&format!("agentctl {verb} -f busy")),
            "{}",
            refused.stderr
        );
    }
    let spent = json(&first, &["usage"]).await[0].take();
    assert!(spent["usage"]["output"].as_u64().unwrap() > 0, "{spent}");
    let done = first.agentctl(&["rm", "-f", "busy", "old", "-o", "json"]).await;
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    let rows: Value = serde_json::from_str(&done.stdout).unwrap();
    assert_eq!(
        (&rows[0]["session"], &rows[1]["session"]),
        (&busy.trim().into(), &id.as_str().into())
    );
    within("the calls are over", server.until(|seen| seen.open == 0)).await;
    first.kill().await;
    let second = first.restart(None).await;
    for session in [id.as_str(), busy.trim()] {
        ctl(&second, &["show", session], 3).await;
        ctl(&second, &["rm", session], 3).await;
    }
    assert_eq!(json(&second, &["ps", "-a"]).await, Value::Array(Vec::new()));
    // Their spending still counts.
    let still = json(&second, &["usage"]).await[0].take();
    assert_eq!(still["group"], spent["group"]);
    for count in ["/steps", "/usage/output"] {
        let of = |row: &Value| row.pointer(count).and_then(Value::as_u64).unwrap();
        assert!(of(&still) >= of(&spent), "{still} after {spent}");
    }
    let removed = json(&second, &["usage", "--by", "session"]).await;
    assert_eq!(removed[0]["group"], "(removed)");
}
