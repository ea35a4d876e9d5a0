//! SemanticSearch through a daemon: the index is built while the session waits, and each hit is judged.

use crate::ASKING;
use crate::played::{daemon, model, results};
use agentd_client::Client;
use agentd_protocol::{Block, CreateParams, SendParams, ToolStatus};
use agentd_provider::Dialect;
use agentd_tests::fault_server::{FaultServer, Say, Speech, http};
use agentd_tests::{CANARY, Daemon, Follower, check_log, within};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

/// Turns that are played until the vectors exist.
const MAX_TURNS: usize = 10_000;

fn tree(daemon: &Daemon) -> PathBuf {
    let dir = PathBuf::from(daemon.workdir("project"));
    for (path, text) in [
        ("src/core.rs", "/// Opens.\npub fn open_session(name: &str) {}\n"),
        ("src/uses.rs", "fn main() {\n    open_session(\"a\");\n}\n"),
        ("src/private/notes.rs", "fn open_session_secretly() {}\n"),
        ("tls/server.pem", "open_session\n"),
        ("cats.txt", "The cat sleeps.\n"),
        ("dogs.txt", "The dog barks.\n"),
    ] {
        let path = dir.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    dir
}

async fn searched(daemon: &Daemon, client: &Client, rules: &[&str]) -> (ToolStatus, String) {
    let params = CreateParams {
        prompt: Some(vec![Block::text("find it")]),
        workdir: tree(daemon).to_string_lossy().into_owned(),
        rules: rules.iter().map(|rule| (*rule).to_owned()).collect(),
        ..CreateParams::default()
    };
    let session = client.create(&params).await.unwrap().session.to_string();
    let mut follower = Follower::attach(client, &session).await;
    follower.turn_finished(1).await;
    results(&check_log(client, &session).await).remove(0)
}

#[tokio::test(flavor = "multi_thread")]
async fn i7_a_definition_is_found_and_no_session_sees_what_it_may_not_read() {
    let server = model(|_, step| match step {
        0 => Say::call(
            "search_semantic",
            json!({ "query": "where is open_session defined", "limit": 10 }),
        ),
        _ => Say::text("Done."),
    })
    .await;
    // Else a slow machine would search what is indexed so far.
    let config = format!("{ASKING}[index]\nwait_ms = 30000\nshare = 100\n");
    let daemon = daemon(&server, &config).await;
    let client = daemon.client().await;
    let (status, text) = searched(&daemon, &client, &[]).await;
    assert_eq!(status, ToolStatus::Ok, "{text}");
    assert!(text.starts_with("src/core.rs:1-2\n"), "{text}");
    assert!(text.contains("2\tpub fn open_session(name: &str) {}"), "{text}");
    assert!(
        text.contains("src/uses.rs") && text.contains("src/private/notes.rs"),
        "{text}"
    );
    assert!(!text.contains("server.pem"), "a built-in rule forbids it: {text}");
    let (_, text) = searched(&daemon, &client, &["deny Read(src/private/**)"]).await;
    assert!(
        text.contains("src/core.rs") && !text.contains("private"),
        "{text}"
    );
    assert!(daemon.data_dir().join("index").is_dir());
}

#[tokio::test(flavor = "multi_thread")]
async fn without_an_index_the_tool_is_not_there() {
    let server = model(|body, step| match step {
        0 if !body.contains("SemanticSearch") => Say::call("SemanticSearch", json!({ "query": "x" })),
        _ => Say::text("Done."),
    })
    .await;
    let daemon = daemon(&server, &format!("{ASKING}[index]\nenabled = \"off\"\n")).await;
    let client = daemon.client().await;
    let (status, text) = searched(&daemon, &client, &[]).await;
    assert!(
        status == ToolStatus::Error && text.contains("Unknown tool"),
        "{text}"
    );
    assert!(!daemon.data_dir().join("index").exists());
}

/// Words that mean the same have the same direction.
fn vectors(body: &[u8]) -> String {
    let asked: Value = serde_json::from_slice(body).unwrap();
    let about =
        |text: &str, words: [&str; 2]| f64::from(u8::from(words.iter().any(|word| text.contains(word))));
    let texts = asked
        .get("input")
        .and_then(Value::as_array)
        .unwrap()
        .iter()
        .map(|text| text.as_str().unwrap());
    let rows: Vec<Value> = texts
        .enumerate()
        .map(|(at, text)| {
            let vector = [
                about(text, ["cat", "feline"]),
                about(text, ["dog", "canine"]),
                0.01,
            ];
            json!({ "index": at, "embedding": vector })
        })
        .collect();
    json!({ "data": rows }).to_string()
}

/// A model that searches for a feline in each turn, and computes vectors; with the headers of the requests for them.
async fn embedding() -> (FaultServer, Arc<Mutex<Vec<String>>>) {
    let heads = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&heads);
    let server = FaultServer::start(move |asked| {
        if asked.path().ends_with("/embeddings") {
            seen.lock().unwrap().push(asked.head.clone());
            let answer = vectors(&asked.body);
            return vec![http(200, &[("content-type", "application/json")], &answer)];
        }
        let body = String::from_utf8_lossy(&asked.body);
        let step = body.matches("\"role\":\"assistant\"").count();
        let say = if step.is_multiple_of(2) {
            Say::call("SemanticSearch", json!({ "query": "feline", "limit": 1 }))
        } else {
            Say::text("Done.")
        };
        Speech(Dialect::Anthropic).answer(&say)
    })
    .await;
    (server, heads)
}

#[tokio::test(flavor = "multi_thread")]
async fn i8_with_vectors_other_words_find_it_and_the_key_goes_to_the_provider_alone() {
    let (server, heads) = embedding().await;
    let config = format!("{ASKING}[index.embedding]\nprovider = \"test-openai\"\nmodel = \"m\"\n");
    let daemon = daemon(&server, &config).await;
    let client = daemon.client().await;
    let params = CreateParams {
        prompt: Some(vec![Block::text("find it")]),
        workdir: tree(&daemon).to_string_lossy().into_owned(),
        ..CreateParams::default()
    };
    let session = client.create(&params).await.unwrap().session.to_string();
    let mut follower = Follower::attach(&client, &session).await;
    // Words come first; a search does not wait for vectors.
    let text = within("the vectors are there", async {
        for turn in 1..MAX_TURNS {
            follower.turn_finished(turn).await;
            let (_, text) = results(&follower.events).pop().unwrap();
            if text.starts_with("cats.txt:1-1\n") {
                return text;
            }
            let again = SendParams {
                session: session.clone(),
                content: vec![Block::text("again")],
                ..SendParams::default()
            };
            client.send(&again).await.unwrap();
        }
        String::new()
    })
    .await;
    assert!(text.contains("1\tThe cat sleeps."), "{text}");
    let heads = heads.lock().unwrap().clone();
    assert!(
        heads.iter().all(|head| head.starts_with("POST /v1/embeddings ")),
        "{heads:?}"
    );
    assert!(
        heads
            .iter()
            .all(|head| head.contains(&format!("Bearer {CANARY}")))
    );
    assert!(!daemon.said().contains(CANARY));
}
