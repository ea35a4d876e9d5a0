//! Who is notified of a question, and many answers at once.

use crate::{ASKING, daemon};
use agentd_bench::model_server::ModelServer;
use agentd_protocol::{Block, CreateParams, EventBody};
use agentd_tests::{Follower, check_log, eventually, within};
use std::path::Path;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::sync::mpsc;

/// A program that receives questions: its address, and the requests that it received, headers first.
pub(crate) async fn receiver() -> (String, mpsc::UnboundedReceiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/asked", listener.local_addr().unwrap());
    let (told, heard) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let (mut seen, mut chunk) = (Vec::new(), [0; 4096]);
            // The note is one JSON object, so its end is a brace.
            while !seen.ends_with(b"}") {
                match stream.read(&mut chunk).await {
                    Ok(read) if read > 0 => seen.extend_from_slice(chunk.get(..read).unwrap_or_default()),
                    _ => break,
                }
            }
            drop(stream.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").await);
            if told.send(String::from_utf8_lossy(&seen).into_owned()).is_err() {
                return;
            }
        }
    });
    (url, heard)
}

#[tokio::test(flavor = "multi_thread")]
async fn i7_a_question_that_nobody_answers_goes_up_the_levels_and_is_denied_after_the_last() {
    let server = ModelServer::start(false).await.unwrap();
    let (all, mut hears_all) = receiver().await;
    let (first, mut hears_first) = receiver().await;
    let config = format!(
        "{ASKING}[permission]\nask_timeout = \"1s\"\non_expiry = \"escalate\"\nescalate_to = [\"{first}\"]\n\
         [permission.webhook]\nurl = \"{all}\"\n"
    );
    let daemon = daemon(&server, &config).await;
    let client = daemon.client().await;
    let session = crate::session(&daemon, &client, "plan:late steps=1 command=touch_M;").await;
    let asked = within("the question", hears_all.recv()).await.unwrap();
    assert!(
        asked.contains("\"type\":\"approval.asked\"") && asked.contains("touch M"),
        "{asked}"
    );
    let mine = within("the level", hears_first.recv()).await.unwrap();
    assert!(
        mine.contains("\"type\":\"approval.escalated\"") && mine.contains("\"level\":1"),
        "{mine}"
    );
    let mut follower = Follower::attach(&client, &session).await;
    follower
        .until("its end", |body| matches!(body, EventBody::ApprovalDecided(_)))
        .await;
    follower.turn_finished(1).await;
    assert!(!Path::new(&daemon.workdir("project")).join("M").exists());
    check_log(&client, &session).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn equal_questions_are_answered_at_once_and_others_stay_open() {
    let server = ModelServer::start(false).await.unwrap();
    let daemon = daemon(&server, ASKING).await;
    let client = daemon.client().await;
    let mut sessions = Vec::new();
    // The same call in another directory is another question.
    for (label, dir, command) in [
        ("a", "a", "touch_M"),
        ("b", "a", "touch_M"),
        ("c", "b", "touch_M"),
    ] {
        let params = CreateParams {
            prompt: Some(vec![Block::text(format!(
                "plan:{label} steps=1 command={command};"
            ))]),
            workdir: daemon.workdir(dir),
            ..CreateParams::default()
        };
        let session = client.create(&params).await.unwrap().session.to_string();
        Follower::attach(&client, &session)
            .await
            .until("the question", |body| matches!(body, EventBody::ApprovalAsked(_)))
            .await;
        sessions.push(session);
    }
    let like = sessions.first().unwrap().as_str();
    let done = daemon
        .agentctl(&["approve", "--like", like, "--yes", "-o", "json"])
        .await;
    assert_eq!(done.code, Some(0), "{}{}", done.stdout, done.stderr);
    let decided: Vec<serde_json::Value> = serde_json::from_str(&done.stdout).unwrap();
    assert_eq!(decided.len(), 2, "{}", done.stdout);
    let there = |dir: &str, name: &str| Path::new(&daemon.workdir(dir)).join(name).exists();
    eventually("they ran", || there("a", "M")).await;
    let open = daemon.agentctl(&["approvals", "-o", "name"]).await;
    assert_eq!(
        open.stdout.lines().count(),
        1,
        "the other one is still open: {}",
        open.stdout
    );
    let again = daemon.agentctl(&["deny", "--all", "--yes"]).await;
    assert_eq!(again.code, Some(0), "{}", again.stderr);
    let none = daemon.agentctl(&["deny", "--all", "--yes"]).await;
    assert_eq!(
        none.code,
        Some(0),
        "nothing is open, and that is no failure: {}",
        none.stderr
    );
    assert!(!there("b", "M"));
}
