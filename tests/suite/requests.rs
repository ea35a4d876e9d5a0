//! Exactly what is sent, in ten situations. A change of these snapshots is a change of what every model reads; it voids
//! prompt caches and deserves a second look. `INSTA_UPDATE=always cargo test -p agentd-tests --test suite requests::`
//! rewrites them.
#![expect(
    clippy::indexing_slicing,
    reason = "helpers of tests fail by panicking, as tests do"
)]

use agentd_client::Client;
use agentd_protocol::{Block, CreateParams, EventBody, SendParams};
use agentd_tests::fault_server::Say;
use agentd_tests::window_server::{Counting, Plan, WindowServer};
use agentd_tests::{Daemon, DaemonOptions, Follower};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Longer texts are shown by their two ends.
const SHOWN: usize = 400;

/// A session on a server that follows a plan.
struct Talk {
    server: WindowServer,
    daemon: Daemon,
    client: Client,
    session: String,
    follower: Follower,
    turns: usize,
}

impl Talk {
    async fn begin(steps: u64, says: fn(u64) -> Say, config: &str) -> Self {
        let plan = Plan {
            window: 32_768,
            steps,
            says,
            summarises: true,
            counting: Counting::Never,
        };
        let server = WindowServer::start(plan, true).await;
        let url = server.url();
        let daemon = Daemon::start(DaemonOptions {
            config: format!(
                "[model]\ndefault = \"local\"\n[permission]\nmode = \"yolo\"\n\
                 [sandbox]\nlevel = \"none\"\nrequire = \"none\"\n\
                 [providers.local]\ndialect = \"openai-chat\"\nbase_url = \"{url}/v1\"\n\
                 [models.local]\nprovider = \"local\"\nmodel = \"m\"\ncontext_window = 32768\nmax_output = 4096\n{config}"
            ),
            ..DaemonOptions::default()
        })
        .await;
        let dir = daemon.workdir("project");
        let lines: String = (1..=600)
            .map(|n| format!("{n}: a line of the long file, with some words in it\n"))
            .collect();
        std::fs::write(format!("{dir}/long.txt"), lines).unwrap();
        std::fs::write(format!("{dir}/short.txt"), "one\ntwo\n").unwrap();
        let client = daemon.client().await;
        let params = CreateParams {
            prompt: Some(vec![Block::text("Read both files.")]),
            workdir: dir,
            ..CreateParams::default()
        };
        let session = client.create(&params).await.unwrap().session.to_string();
        let follower = Follower::attach(&client, &session).await;
        Self {
            server,
            daemon,
            client,
            session,
            follower,
            turns: 0,
        }
    }

    async fn turn(&mut self) {
        self.turns += 1;
        let end = self.follower.turn_finished(self.turns).await;
        assert_eq!(
            end.reason,
            agentd_protocol::EndReason::Completed,
            "{:?}",
            end.error
        );
    }

    async fn say(&mut self, text: &str) {
        let params = SendParams {
            session: self.session.clone(),
            content: vec![Block::text(text)],
            ..SendParams::default()
        };
        self.client.send(&params).await.unwrap();
        self.turn().await;
    }

    /// The nth request of the agent, from 1.
    fn request(&self, n: usize) -> String {
        self.shown(&self.server.log().bodies[n - 1])
    }

    fn last(&self) -> String {
        self.request(self.server.log().bodies.len())
    }

    /// A request without the parts that differ between runs: ids become letters, our directory a name. The prompt and the
    /// tools have their own snapshots in their crates.
    fn shown(&self, body: &[u8]) -> String {
        let mut body: Value = serde_json::from_slice(body).unwrap();
        if let Some(tools) = body.get_mut("tools") {
            let names = tools
                .as_array()
                .unwrap()
                .iter()
                .map(|tool| tool["function"]["name"].clone());
            *tools = Value::Array(names.filter(|name| name == "Read" || name == "Bash").collect());
        }
        for (key, shown) in [("prompt_cache_key", "[session]"), ("user", "[session]")] {
            if body.get(key).is_some() {
                body[key] = json!(shown);
            }
        }
        let system = &mut body["messages"][0]["content"];
        if system.as_str().is_some_and(|text| text.contains("agentd")) {
            *system = json!("[system prompt]");
        }
        let mut ids = BTreeMap::new();
        letters(&mut body, &mut ids);
        let dir = self.daemon.workdir("project");
        serde_json::to_string_pretty(&body)
            .unwrap()
            .replace(&dir, "[dir]")
    }
}

/// Ids of calls by the order in which they come, and long texts by their ends.
fn letters(value: &mut Value, ids: &mut BTreeMap<String, String>) {
    match value {
        Value::Object(fields) => {
            for (key, field) in fields {
                if let (true, Value::String(id)) = (key == "id" || key == "tool_call_id", &mut *field) {
                    let next = format!("call-{}", ids.len() + 1);
                    *id = ids.entry(id.clone()).or_insert(next).clone();
                } else {
                    letters(field, ids);
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| letters(item, ids)),
        Value::String(text) if text.len() > SHOWN => {
            let half = SHOWN / 2;
            let (head, tail) = (
                text.floor_char_boundary(half),
                text.ceil_char_boundary(text.len() - half),
            );
            *text = format!("{} [… {} bytes …] {}", &text[..head], tail - head, &text[tail..]);
        }
        _ => {}
    }
}

fn read(file: &str) -> (String, Value) {
    ("Read".to_owned(), json!({"file_path": file}))
}

fn calls(calls: Vec<(String, Value)>) -> Say {
    Say {
        calls,
        ..Say::text("")
    }
}

fn reads(step: u64) -> Say {
    match step {
        1 => calls(vec![read("short.txt")]),
        2 => calls(vec![read("long.txt"), read("missing.txt")]),
        _ => Say::text("Both are read."),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_to_six_a_conversation_and_its_compaction() {
    let mut talk = Talk::begin(5, reads, "").await;
    talk.turn().await;
    insta::assert_snapshot!("1_the_first_request", talk.request(1));
    insta::assert_snapshot!("2_a_result", talk.request(2));
    insta::assert_snapshot!("3_two_results_one_an_error", talk.request(3));
    talk.say("And what is in them?").await;
    insta::assert_snapshot!("4_the_next_turn", talk.last());
    let done = talk.daemon.agentctl(&["compact", &talk.session]).await;
    assert!(
        done.stdout.starts_with("compacted (manual)"),
        "{} {}",
        done.stdout,
        done.stderr
    );
    insta::assert_snapshot!(
        "5_the_request_for_a_summary",
        talk.shown(&talk.server.log().retold)
    );
    talk.say("Go on.").await;
    insta::assert_snapshot!("6_after_the_compaction", talk.last());
}

#[tokio::test(flavor = "multi_thread")]
async fn seven_old_results_are_cleared() {
    let says = |step| match step {
        1 => calls(vec![read("long.txt")]),
        2 => calls(vec![read("short.txt")]),
        _ => Say::text("Both are read."),
    };
    let config = "price = { input = 1.0, output = 1.0 }\n[context]\ncompact_at = 0.5\nprune_protect_tokens = 5\nprune_min_tokens = 1000\n";
    let mut talk = Talk::begin(3, says, config).await;
    talk.turn().await;
    talk.say("Once more.").await;
    talk.follower
        .until("it is pruned", |body| matches!(body, EventBody::ContextPruned(_)))
        .await;
    insta::assert_snapshot!("7_after_pruning", talk.last());
}

#[tokio::test(flavor = "multi_thread")]
async fn eight_messages_are_left_out() {
    let says = |step| match step {
        1..=5 => Say::call(
            "Read",
            json!({"file_path": "long.txt", "offset": step, "limit": 1}),
        ),
        _ => Say::text("Both are read."),
    };
    let mut talk = Talk::begin(6, says, "[context]\nmax_messages = 8\n").await;
    talk.turn().await;
    talk.follower
        .until("it is trimmed", |body| {
            matches!(body, EventBody::ContextTrimmed(_))
        })
        .await;
    insta::assert_snapshot!("8_after_trimming", talk.last());
}

#[tokio::test(flavor = "multi_thread")]
async fn nine_a_result_that_is_too_long_for_the_window() {
    let says = |step| match step {
        1 => calls(vec![read("long.txt")]),
        _ => Say::text("Both are read."),
    };
    let mut talk = Talk::begin(2, says, "").await;
    talk.turn().await;
    talk.follower
        .until("it is cut", |body| matches!(body, EventBody::ContextTruncated(_)))
        .await;
    insta::assert_snapshot!("9_a_result_is_capped", talk.last());
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_a_call_that_a_crash_interrupted() {
    let says = |step| match step {
        1 => Say::call("Bash", json!({"command": "sleep 600"})),
        _ => Say::text("It was cut off."),
    };
    let mut talk = Talk::begin(2, says, "").await;
    talk.follower
        .until("the command runs", |body| {
            matches!(body, EventBody::ToolStarted(_))
        })
        .await;
    talk.daemon.kill().await;
    talk.daemon = talk.daemon.restart(None).await;
    talk.client = talk.daemon.client().await;
    talk.follower = Follower::attach(&talk.client, &talk.session).await;
    talk.turn().await;
    insta::assert_snapshot!("10_after_a_crash", talk.last());
}
