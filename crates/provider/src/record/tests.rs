use super::*;
use crate::body::RequestBody;
use crate::call::{Request, Sink};
use crate::reply::ModelEvent;
use crate::scripted;
use crate::spec::ModelSpec;
use agentd_protocol::Usage;
use serde_json::json;
use std::path::PathBuf;

struct Nowhere;

impl Sink for Nowhere {
    async fn send(&mut self, _: ModelEvent) {}
}

/// A unique path, whose file is removed at the end.
struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Self {
        let name = format!("agentd-record-{name}-{}.toml", std::process::id());
        let path = std::env::temp_dir().join(name);
        // A killed run with the same process id may have left a file.
        let _ = std::fs::remove_file(&path);
        Self(path)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn message(role: Role, content: Vec<Block>) -> Arc<Message> {
    Arc::new(Message { role, content })
}

fn asks(text: &str) -> Arc<Message> {
    message(Role::User, vec![Block::text(text)])
}

fn reply(content: Vec<Block>, stop_reason: StopReason) -> ModelReply {
    ModelReply {
        content,
        stop_reason,
        usage: Usage {
            input: 7,
            output: 3,
            ..Usage::default()
        },
        cost_usd: None,
        model: "m".into(),
        request_id: None,
        reading: agentd_protocol::Reading::default(),
    }
}

/// Plays the script in the file for this conversation.
async fn play(place: &Place, messages: &[Arc<Message>]) -> ModelReply {
    let text = std::fs::read_to_string(&place.0).unwrap();
    let script = Script::parse("recorded", &text).unwrap();
    let spec = ModelSpec::scripted("m", Arc::new(script));
    let request = Request {
        spec: &spec,
        credential: None,
        tools: &[],
        body: RequestBody::default(),
        messages,
        attempt: 1,
    };
    scripted::call(&request, &mut Nowhere).await.unwrap().0
}

fn calls(step: usize) -> Vec<Block> {
    let call = |number: u32, input: Value| Block::ToolUse {
        id: format!("scripted_{step}_{number}"),
        name: "Read".into(),
        input,
    };
    vec![
        Block::Thinking {
            text: "line\nand \"quote\" '''".into(),
            raw: None,
        },
        Block::text("I read {{last_result}} \u{1F600}\\."),
        call(
            1,
            json!({"file_path": "a.txt", "deep": {"list": [1, {"x": 2.5}], "flag": true}}),
        ),
        call(2, json!({"limit": null, "big": u64::MAX})),
        call(3, json!("{\"half\":")),
        call(4, json!({})),
    ]
}

#[tokio::test]
async fn what_was_recorded_plays_back_the_same() {
    let place = Place::new("same");
    let first = reply(calls(1), StopReason::ToolUse);
    record(&place.0, &[asks("go")], &first).unwrap();
    let result = Block::ToolResult {
        tool_use_id: "t".into(),
        content: "42".into(),
        is_error: false,
    };
    let then = [
        asks("go"),
        message(Role::Assistant, calls(1)),
        message(Role::User, vec![result]),
    ];
    let second = reply(vec![Block::text("Half a wor")], StopReason::MaxTokens);
    record(&place.0, &then, &second).unwrap();
    let other = reply(vec![Block::text("Else.")], StopReason::EndTurn);
    record(&place.0, &[asks("go on")], &other).unwrap();
    assert_eq!(play(&place, &[asks("go")]).await, first);
    assert_eq!(play(&place, &then).await, second);
    assert_eq!(play(&place, &[asks("go on")]).await, other);
}

#[tokio::test]
async fn a_recording_that_begins_late_knows_what_came_before() {
    let place = Place::new("late");
    let then = [
        asks("go"),
        message(Role::Assistant, vec![Block::text("First.")]),
        asks("and?"),
    ];
    record(
        &place.0,
        &then,
        &reply(vec![Block::text("Second.")], StopReason::EndTurn),
    )
    .unwrap();
    assert_eq!(play(&place, &then[..1]).await.content, [Block::text("First.")]);
    assert_eq!(play(&place, &then).await.content, [Block::text("Second.")]);
}

#[tokio::test]
async fn a_step_that_is_taken_again_is_replaced() {
    let place = Place::new("again");
    for said in ["One.", "Two."] {
        record(
            &place.0,
            &[asks("go")],
            &reply(vec![Block::text(said)], StopReason::EndTurn),
        )
        .unwrap();
    }
    assert_eq!(play(&place, &[asks("go")]).await.content, [Block::text("Two.")]);
}

#[tokio::test]
async fn i8_no_secret_is_recorded_and_the_conversation_is_found_all_the_same() {
    let place = Place::new("secret");
    let key = format!("sk-{}", "a1B2".repeat(8));
    let opening = [asks(&format!("use {key}"))];
    let content = vec![
        Block::Thinking {
            text: format!("the key is {key}"),
            raw: Some(key.clone()),
        },
        Block::text(format!("I use {key}.")),
        Block::ToolUse {
            id: "t".into(),
            name: "Bash".into(),
            input: json!({"command": [format!("curl -u {key}")]}),
        },
    ];
    record(&place.0, &opening, &reply(content, StopReason::ToolUse)).unwrap();
    let text = std::fs::read_to_string(&place.0).unwrap();
    assert!(!text.contains(&key), "{text}");
    let said = play(&place, &opening).await.content;
    assert_eq!(said.get(1), Some(&Block::text("I use [redacted].")));
}

#[test]
fn a_file_that_is_no_script_is_left_alone() {
    let place = Place::new("foreign");
    std::fs::write(&place.0, "[server]\nport = 1\n").unwrap();
    let error = record(&place.0, &[asks("go")], &reply(Vec::new(), StopReason::EndTurn)).unwrap_err();
    assert!(error.to_string().contains("unknown field `server`"), "{error}");
    assert_eq!(std::fs::read_to_string(&place.0).unwrap(), "[server]\nport = 1\n");
}

#[test]
fn a_file_does_not_grow_over_its_bound() {
    let place = Place::new("long");
    let long = reply(vec![Block::text("x".repeat(9 << 20))], StopReason::EndTurn);
    record(&place.0, &[asks("a")], &long).unwrap();
    let error = record(&place.0, &[asks("b")], &long).unwrap_err();
    assert!(error.to_string().contains("longer than"), "{error}");
    assert_eq!(
        std::fs::read_to_string(&place.0)
            .unwrap()
            .matches("[[conversation]]")
            .count(),
        1
    );
}

#[test]
fn answers_that_come_at_the_same_time_are_all_recorded() {
    let place = Place::new("many");
    std::thread::scope(|scope| {
        for number in 0..8 {
            let path = &place.0;
            scope.spawn(move || {
                let said = reply(vec![Block::text("x")], StopReason::EndTurn);
                record(path, &[asks(&format!("go {number}"))], &said).unwrap();
            });
        }
    });
    assert_eq!(read(&place.0).unwrap().conversations.len(), 8);
}
