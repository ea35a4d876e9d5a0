#![expect(clippy::needless_pass_by_value, reason = "json values read better by value")]

use crate::body::{EncodedHistory, Params, Prompt, RequestBody, ToolDef, encode_prefix, encode_suffix};
use crate::classify::classify;
use crate::decoder::Decoder;
use crate::dialect::codec;
use crate::error::ModelError;
use crate::reply::{ModelEvent, ModelReply};
use crate::script::Script;
use crate::spec::ModelSpec;
use agentd_protocol::{
    Block, FailureClass, ImageSource, Message, Reading, Role, StopReason, ThinkingLevel, Usage,
};
use agentd_settings::{Dialect, ThinkingForm};
use reqwest::header::HeaderMap;
use serde_json::{Value, json};
use std::sync::Arc;

fn spec() -> ModelSpec {
    ModelSpec {
        dialect: Dialect::Ollama,
        base_url: "http://127.0.0.1:11434/v1".into(),
        context_window: 1_000,
        max_output: 100,
        ..ModelSpec::scripted("m", Arc::new(Script::builtin()))
    }
}

fn decode(lines: &[Value]) -> Result<(ModelReply, Vec<ModelEvent>), ModelError> {
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let mut events = Vec::new();
    let mut decoder = Decoder::new(&spec(), &[])?;
    for piece in text.as_bytes().chunks(7) {
        decoder.feed(piece, &mut events)?;
    }
    Ok((decoder.finish(&mut events)?, events))
}

fn says(message: Value) -> Value {
    json!({"model": "qwen", "message": message, "done": false})
}

fn done(reason: &str, prompt: u64, output: u64) -> Value {
    json!({"model": "qwen", "message": {"role": "assistant", "content": ""}, "done": true, "done_reason": reason,
        "prompt_eval_count": prompt, "eval_count": output})
}

fn body(spec: &ModelSpec, messages: &[Message], tools: &[ToolDef], params: &Params<'_>) -> Value {
    let messages: Vec<Arc<Message>> = messages.iter().cloned().map(Arc::new).collect();
    let mut history = EncodedHistory::new();
    history.extend(spec, 0, &messages);
    let prefix = encode_prefix(spec, &Prompt::of("Be good."), tools, params);
    let body = RequestBody::new(prefix, &history, encode_suffix(spec, tools, params));
    serde_json::from_slice(&body.to_bytes()).unwrap()
}

fn message(role: Role, content: Vec<Block>) -> Message {
    Message { role, content }
}

#[test]
fn the_address_is_the_servers_own_whatever_protocol_is_configured() {
    let url = |base_url: &str| {
        let spec = ModelSpec {
            base_url: base_url.into(),
            ..spec()
        };
        codec(Dialect::Ollama).unwrap().url(&spec)
    };
    let expected = "http://h:11434/api/chat";
    assert_eq!(
        [
            url("http://h:11434/v1"),
            url("http://h:11434/api/"),
            url("http://h:11434")
        ],
        [expected; 3]
    );
}

#[test]
fn the_lines_of_an_answer_are_put_together() {
    let call = |name: &str| json!({"function": {"name": name, "arguments": {"p": 1}}});
    let lines = [
        says(json!({"role": "assistant", "content": "", "thinking": "h"})),
        says(json!({"role": "assistant", "content": "", "thinking": "m"})),
        says(json!({"role": "assistant", "content": "I "})),
        says(json!({"role": "assistant", "content": "read."})),
        says(json!({"role": "assistant", "content": "", "tool_calls": [call("Read"), call("Ls")]})),
        done("stop", 30, 9),
    ];
    let (reply, events) = decode(&lines).unwrap();
    let tool = |id: &str, name: &str| Block::ToolUse {
        id: id.into(),
        name: name.into(),
        input: json!({"p": 1}),
    };
    let expected = ModelReply {
        content: vec![
            Block::Thinking {
                text: "hm".into(),
                raw: Some(r#"{"thinking":"hm"}"#.into()),
            },
            Block::text("I read."),
            tool("call_1", "Read"),
            tool("call_2", "Ls"),
        ],
        stop_reason: StopReason::ToolUse,
        usage: Usage {
            input: 30,
            output: 9,
            ..Usage::default()
        },
        cost_usd: None,
        model: "qwen".into(),
        request_id: None,
        reading: Reading::default(),
    };
    assert_eq!(reply, expected);
    assert_eq!(
        events.iter().map(ModelEvent::block).collect::<Vec<_>>(),
        [0, 0, 1, 1, 2, 2, 3, 3]
    );
}

#[test]
fn a_whole_answer_is_one_line() {
    let mut events = Vec::new();
    let mut line = done("stop", 3, 2);
    line["message"]["content"] = json!("hi");
    let reply = Decoder::new(&spec(), &[])
        .unwrap()
        .whole(line.to_string().as_bytes(), &mut events)
        .unwrap();
    assert_eq!(
        (reply.content, reply.stop_reason),
        (vec![Block::text("hi")], StopReason::EndTurn)
    );
    let none = Decoder::new(&spec(), &[]).unwrap().whole(b"{}", &mut events);
    assert_eq!(none.unwrap_err().class, FailureClass::Transient);
}

#[test]
fn an_answer_ends_for_a_reason() {
    let stop = |reason: &str, prompt: u64| {
        let said = says(json!({"content": "x"}));
        decode(&[said, done(reason, prompt, 100)]).map(|(reply, _)| reply.stop_reason)
    };
    assert_eq!(stop("stop", 30), Ok(StopReason::EndTurn));
    assert_eq!(stop("length", 30), Ok(StopReason::MaxTokens));
    assert_eq!(
        stop("length", 900),
        Ok(StopReason::ContextWindow),
        "the window of 1000 tokens is full"
    );
    let loaded = decode(&[done("load", 0, 0)]).unwrap_err();
    assert_eq!(
        loaded,
        ModelError::transient("the server loaded the model and did not answer")
    );
}

#[test]
fn a_prompt_that_the_server_may_not_cut_is_too_long() {
    let body = br#"{"error":"the input length exceeds the context length"}"#;
    let error = classify(400, &HeaderMap::new(), body);
    assert_eq!(error.class, FailureClass::ContextOverflow);
}

#[test]
fn i4_an_answer_without_its_last_line_is_a_failure() {
    let call = json!({"function": {"name": "Bash", "arguments": {}}});
    let cut = decode(&[says(json!({"tool_calls": [call]}))]).unwrap_err();
    assert_eq!(
        cut,
        ModelError::transient("the stream ended before the end of the answer")
    );
    let error = decode(&[
        says(json!({"content": "x"})),
        json!({"error": "model runner has stopped"}),
    ])
    .unwrap_err();
    assert_eq!(error, ModelError::transient("model runner has stopped"));
}

fn conversation() -> Vec<Message> {
    let image = Block::Image {
        media_type: "image/png".into(),
        source: ImageSource::Data("QUJD".into()),
    };
    vec![
        message(Role::User, vec![Block::text("see"), image]),
        message(
            Role::Assistant,
            vec![
                Block::Thinking {
                    text: "hm".into(),
                    raw: Some(r#"{"thinking":"hm"}"#.into()),
                },
                Block::ToolUse {
                    id: "a".into(),
                    name: "Read".into(),
                    input: json!({"p": 1}),
                },
            ],
        ),
        message(
            Role::User,
            vec![
                Block::ToolResult {
                    tool_use_id: "a".into(),
                    content: "one".into(),
                    is_error: false,
                },
                Block::text("go"),
            ],
        ),
        message(Role::User, vec![Block::text("on")]),
    ]
}

#[test]
fn a_request_has_its_window_its_names_and_its_images() {
    let messages = conversation();
    let tool = ToolDef {
        name: "Read".into(),
        description: "Reads.".into(),
        schema: json!({"type": "object"}).into(),
    };
    let schema = json!({"type": "object"});
    let params = Params {
        schema: Some(("answer", &schema)),
        ..Params::default()
    };
    let mut spec = spec();
    spec.temperature = Some(0.5);
    spec.thinking = Some(ThinkingLevel::Max);
    spec.capabilities.thinking = ThinkingForm::Effort;
    let expected = json!({
        "model": "m", "stream": true,
        "options": {"num_ctx": 1000, "num_predict": 100, "temperature": 0.5},
        "truncate": false, "shift": false,
        "tools": [{"type": "function", "function": {"name": "Read", "description": "Reads.", "parameters": {"type": "object"}}}],
        "messages": [
            {"role": "system", "content": "Be good."},
            {"role": "user", "content": "see", "images": ["QUJD"]},
            {"role": "assistant", "content": "", "thinking": "hm",
             "tool_calls": [{"id": "a", "function": {"name": "Read", "arguments": {"p": 1}}}]},
            {"role": "tool", "content": "one", "tool_call_id": "a", "tool_name": "Read"},
            {"role": "user", "content": "go\n\non"},
        ],
        "think": "high", "format": {"type": "object"},
    });
    assert_eq!(body(&spec, &messages, &[tool], &params), expected);
    spec.capabilities.thinking = ThinkingForm::Switch;
    assert_eq!(body(&spec, &messages, &[], &params)["think"], json!(true));
    spec.thinking = Some(ThinkingLevel::Off);
    assert_eq!(body(&spec, &messages, &[], &params)["think"], json!(false));
}
