use super::*;
use crate::body::RequestBody;
use crate::spec::ModelSpec;
use serde_json::json;

#[derive(Default)]
struct Collected(Vec<ModelEvent>);

impl Sink for Collected {
    async fn send(&mut self, event: ModelEvent) {
        self.0.push(event);
    }
}

fn user(text: &str) -> Arc<Message> {
    Arc::new(Message {
        role: Role::User,
        content: vec![Block::text(text)],
    })
}

fn assistant() -> Arc<Message> {
    Arc::new(Message {
        role: Role::Assistant,
        content: vec![Block::text("x")],
    })
}

fn result(content: &str) -> Arc<Message> {
    let content = Block::ToolResult {
        tool_use_id: "t".into(),
        content: content.into(),
        is_error: false,
    };
    Arc::new(Message {
        role: Role::User,
        content: vec![content],
    })
}

const SCRIPT: &str = r#"
after = "all said"
[[turn]]
thinking = "hm"
text = "I read."
calls = [{ name = "Read", input = { file_path = "a.txt" } }]
usage = { input = 9, output = 3 }
fail = { class = "overloaded", message = "later", retry_after_ms = 50, attempts = 2 }
[[turn]]
text = "It says {{last_result}}."
delay_ms = 1000
[[conversation]]
when = "deploy"
[[conversation.turn]]
text = "Not on Fridays."
"#;

async fn play(
    messages: &[Arc<Message>],
    attempt: u32,
) -> (Result<(ModelReply, Latency), ModelError>, Vec<ModelEvent>) {
    let spec = ModelSpec::scripted("s", Arc::new(Script::parse("test", SCRIPT).unwrap()));
    let request = Request {
        spec: &spec,
        credential: None,
        tools: &[],
        body: RequestBody::default(),
        messages,
        attempt,
    };
    let mut sink = Collected::default();
    let answer = call(&request, &mut sink).await;
    (answer, sink.0)
}

fn says(answer: Result<(ModelReply, Latency), ModelError>) -> Vec<Block> {
    answer.unwrap().0.content
}

#[tokio::test(start_paused = true)]
async fn the_first_attempts_fail_as_the_script_says() {
    let failure = ModelError {
        retry_after_ms: Some(50),
        ..ModelError::new(FailureClass::Overloaded, "later")
    };
    for attempt in [1, 2] {
        assert_eq!(play(&[user("go")], attempt).await.0, Err(failure.clone()));
    }
    let (answer, events) = play(&[user("go")], 3).await;
    let reply = ModelReply {
        content: vec![
            Block::Thinking {
                text: "hm".into(),
                raw: None,
            },
            Block::text("I read."),
            Block::ToolUse {
                id: "scripted_1_1".into(),
                name: "Read".into(),
                input: json!({"file_path": "a.txt"}),
            },
        ],
        stop_reason: StopReason::ToolUse,
        usage: Usage {
            input: 9,
            output: 3,
            ..Usage::default()
        },
        cost_usd: None,
        model: "s".into(),
        request_id: None,
        reading: Reading::default(),
    };
    assert_eq!(answer, Ok((reply, Latency::default())));
    assert_eq!(
        events.first(),
        Some(&ModelEvent::ThinkingDelta {
            block: 0,
            text: "hm".into()
        })
    );
}

#[tokio::test(start_paused = true)]
async fn the_conversation_alone_decides_which_turn_is_played() {
    let (answer, _) = play(&[user("go"), assistant(), result("42\n")], 1).await;
    let (reply, latency) = answer.unwrap();
    assert_eq!(reply.content, [Block::text("It says 42.")]);
    assert_eq!(
        latency,
        Latency {
            first_ms: 1_000,
            total_ms: 1_000
        }
    );
    assert_eq!(
        says(play(&[user("go"), assistant(), assistant()], 1).await.0),
        [Block::text("all said")]
    );
    assert_eq!(
        says(play(&[user("please deploy")], 1).await.0),
        [Block::text("Not on Fridays.")]
    );
}

#[tokio::test]
async fn the_builtin_model_says_how_to_get_a_real_one() {
    let spec = ModelSpec::scripted("scripted", Arc::new(Script::builtin()));
    let messages = [user("hi")];
    let request = Request {
        spec: &spec,
        credential: None,
        tools: &[],
        body: RequestBody::default(),
        messages: &messages,
        attempt: 1,
    };
    let (reply, _) = call(&request, &mut Collected::default()).await.unwrap();
    let text = words(&Message {
        role: Role::Assistant,
        content: reply.content,
    });
    assert!(
        text.contains("ANTHROPIC_API_KEY") && text.contains("Ollama"),
        "{text}"
    );
}

#[test]
fn a_misspelt_word_of_a_script_is_refused_with_the_words_that_there_are() {
    let refused = |text: &str| Script::parse("x.toml", text).unwrap_err().to_string();
    let error = refused("[[turn]]\nfail = { class = \"overlaoded\" }\n");
    assert!(
        error.contains("line 2") && error.contains("\"overlaoded\" is not one of rate_limited, overloaded,"),
        "{error}"
    );
    let error = refused("[[turn]]\nstop_reason = \"endturn\"\n");
    assert!(error.contains("\"endturn\" is not one of end_turn,"), "{error}");
    let good = "[[turn]]\nstop_reason = \"max_tokens\"\nfail = { class = \"cancelled\" }\n[[turn]]\n";
    let script = Script::parse("x.toml", good).unwrap();
    assert_eq!(
        script
            .turns
            .iter()
            .map(|turn| turn.stop_reason)
            .collect::<Vec<_>>(),
        [Some(StopReason::MaxTokens), None]
    );
}

#[test]
fn a_bad_script_names_the_place() {
    let error = Script::parse("x.toml", "[[turn]]\ntxet = 1\n")
        .unwrap_err()
        .to_string();
    assert!(
        error.starts_with("script x.toml: TOML parse error at line 2"),
        "{error}"
    );
}
