use super::*;
use crate::script::Script;
use agentd_protocol::{Block, ImageSource, Role};
use serde_json::json;

fn spec(dialect: Dialect) -> ModelSpec {
    let scripted = ModelSpec::scripted("m", Arc::new(Script::builtin()));
    ModelSpec {
        dialect,
        model: "m-1".into(),
        max_output: 100,
        ..scripted
    }
}

fn message(role: Role, content: Vec<Block>) -> Arc<Message> {
    Arc::new(Message { role, content })
}

fn tool() -> ToolDef {
    ToolDef {
        name: "Read".into(),
        description: "Reads.".into(),
        schema: json!({"type": "object"}),
    }
}

fn conversation() -> Vec<Arc<Message>> {
    let raw = r#"{"type":"thinking","thinking":"hm","signature":"s/+=="}"#;
    vec![
        message(Role::User, vec![Block::text("go")]),
        message(
            Role::Assistant,
            vec![
                Block::Thinking {
                    text: "hm".into(),
                    raw: Some(raw.into()),
                },
                Block::Thinking {
                    text: "so".into(),
                    raw: Some(r#"{"reasoning_content":"so"}"#.into()),
                },
                Block::text("I read."),
                Block::ToolUse {
                    id: "a".into(),
                    name: "Read".into(),
                    input: json!({"p": 1}),
                },
                Block::ToolUse {
                    id: "b".into(),
                    name: "Read".into(),
                    input: json!("{\"p\":"),
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
                Block::ToolResult {
                    tool_use_id: "b".into(),
                    content: "two".into(),
                    is_error: true,
                },
                Block::text("and hurry"),
            ],
        ),
    ]
}

fn body(spec: &ModelSpec, messages: &[Arc<Message>], tools: &[ToolDef], params: Params) -> Value {
    let mut history = EncodedHistory::new();
    history.extend(spec, 0, messages);
    let prefix = encode_prefix(spec, &Prompt { system: "Be good." }, tools, &params);
    let body = RequestBody::new(prefix, &history, encode_suffix(spec, tools, &params));
    let bytes = body.to_bytes();
    assert_eq!(body.len(), bytes.len() as u64);
    serde_json::from_slice(&bytes).unwrap()
}

#[test]
fn anthropic_gets_blocks_and_its_own_thinking() {
    let expected = json!({
        "model": "m-1", "max_tokens": 100, "stream": true,
        "tools": [{"name": "Read", "description": "Reads.", "input_schema": {"type": "object"}}],
        "system": [{"type": "text", "text": "Be good."}],
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "go"}]},
            {"role": "assistant", "content": [
                {"type": "thinking", "thinking": "hm", "signature": "s/+=="},
                {"type": "text", "text": "I read."},
                {"type": "tool_use", "id": "a", "name": "Read", "input": {"p": 1}},
                {"type": "tool_use", "id": "b", "name": "Read", "input": {"unparsed": "{\"p\":"}},
            ]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "a", "content": "one", "is_error": false},
                {"type": "tool_result", "tool_use_id": "b", "content": "two", "is_error": true},
                {"type": "text", "text": "and hurry"},
            ]},
        ],
    });
    assert_eq!(
        body(
            &spec(Dialect::Anthropic),
            &conversation(),
            &[tool()],
            Params::default()
        ),
        expected
    );
}

#[test]
fn chat_gets_tool_messages_and_reasoning_under_its_field() {
    let call = |id: &str, arguments: &str| json!({"id": id, "type": "function", "function": {"name": "Read", "arguments": arguments}});
    let expected = json!({
        "model": "m-1", "stream": true, "stream_options": {"include_usage": true}, "max_tokens": 100,
        "tools": [{"type": "function", "function": {"name": "Read", "description": "Reads.", "parameters": {"type": "object"}}}],
        "messages": [
            {"role": "system", "content": "Be good."},
            {"role": "user", "content": "go"},
            {"role": "assistant", "content": "I read.", "reasoning_content": "so",
             "tool_calls": [call("a", r#"{"p":1}"#), call("b", r#"{"unparsed":"{\"p\":"}"#)]},
            {"role": "tool", "tool_call_id": "a", "content": "one"},
            {"role": "tool", "tool_call_id": "b", "content": "two"},
            {"role": "user", "content": "and hurry"},
        ],
    });
    assert_eq!(
        body(
            &spec(Dialect::OpenaiChat),
            &conversation(),
            &[tool()],
            Params::default()
        ),
        expected
    );
}

#[test]
fn openai_itself_gets_its_own_names_and_no_foreign_fields() {
    let mut openai = spec(Dialect::OpenaiChat);
    openai.compat = crate::spec::Compat::of(Dialect::OpenaiChat, "https://api.openai.com/v1");
    let sent = body(
        &openai,
        &conversation(),
        &[],
        Params {
            max_output: Some(7),
            ..Params::default()
        },
    );
    assert_eq!(sent.get("max_completion_tokens"), Some(&json!(7)));
    assert_eq!(sent.get("max_tokens"), None);
    assert_eq!(sent.pointer("/messages/2/reasoning_content"), None);
}

#[test]
fn a_call_without_tools_keeps_the_same_prefix() {
    for (dialect, choice) in [
        (Dialect::Anthropic, json!({"type": "none"})),
        (Dialect::OpenaiChat, json!("none")),
    ] {
        let spec = spec(dialect);
        let off = Params {
            tools_off: true,
            ..Params::default()
        };
        assert_eq!(
            body(&spec, &conversation(), &[tool()], off).get("tool_choice"),
            Some(&choice)
        );
        assert_eq!(body(&spec, &conversation(), &[], off).get("tool_choice"), None);
        let prompt = Prompt { system: "s" };
        assert_eq!(
            encode_prefix(&spec, &prompt, &[tool()], &off),
            encode_prefix(&spec, &prompt, &[tool()], &Params::default())
        );
    }
}

#[test]
fn chat_joins_the_texts_of_consecutive_user_messages() {
    let messages = [
        message(Role::User, vec![Block::text("one \"quoted\"")]),
        message(Role::User, vec![Block::text("two\nlines")]),
        message(Role::User, vec![Block::text(" ")]),
        message(Role::User, vec![Block::text("three")]),
    ];
    let sent = body(&spec(Dialect::OpenaiChat), &messages, &[], Params::default());
    assert_eq!(
        sent.get("messages"),
        Some(&json!([
            {"role": "system", "content": "Be good."},
            {"role": "user", "content": "one \"quoted\"\n\ntwo\nlines\n\nthree"},
        ]))
    );
    let sent = body(&spec(Dialect::Anthropic), &messages, &[], Params::default());
    assert_eq!(
        sent.pointer("/messages").and_then(Value::as_array).map(Vec::len),
        Some(3)
    );
}

#[test]
fn images_go_inline() {
    let image = Block::Image {
        media_type: "image/png".into(),
        source: ImageSource::Data("QUJD".into()),
    };
    let messages = [message(Role::User, vec![Block::text("see"), image])];
    let sent = body(&spec(Dialect::OpenaiChat), &messages, &[], Params::default());
    assert_eq!(
        sent.pointer("/messages/1/content"),
        Some(&json!([
            {"type": "text", "text": "see"},
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,QUJD"}},
        ]))
    );
    let sent = body(&spec(Dialect::Anthropic), &messages, &[], Params::default());
    assert_eq!(
        sent.pointer("/messages/0/content/1"),
        Some(
            &json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "QUJD"}})
        )
    );
}

#[test]
fn a_growing_history_gives_the_same_bytes_as_a_fresh_one() {
    let mut messages = conversation();
    messages.push(message(Role::User, vec![Block::text("more")]));
    messages.push(message(Role::User, vec![Block::text("and more")]));
    messages.push(message(Role::Assistant, vec![Block::text("done")]));
    for dialect in [Dialect::Anthropic, Dialect::OpenaiChat] {
        let spec = spec(dialect);
        let mut grown = EncodedHistory::new();
        for end in 0..=messages.len() {
            let before = grown.fragments.clone();
            grown.extend(&spec, 0, &messages[..end]);
            let mut fresh = EncodedHistory::new();
            fresh.extend(&spec, 0, &messages[..end]);
            assert_eq!(grown.fragments.concat(), fresh.fragments.concat());
            // The cache prefix holds: only the end of an open text may be cut.
            let kept = before.concat();
            let kept = kept.get(..kept.len().saturating_sub(TEXT_END)).unwrap();
            assert!(grown.fragments.concat().starts_with(kept));
        }
    }
}

#[test]
fn another_generation_or_model_starts_over() {
    let mut history = EncodedHistory::new();
    let spec = spec(Dialect::Anthropic);
    history.extend(&spec, 0, &conversation());
    history.extend(&spec, 1, &conversation()[..1]);
    assert_eq!(history.messages(), 1);
    let other = ModelSpec {
        name: "other".into(),
        ..spec
    };
    history.extend(&other, 1, &conversation()[..2]);
    let mut fresh = EncodedHistory::new();
    fresh.extend(&other, 1, &conversation()[..2]);
    assert_eq!(history.fragments, fresh.fragments);
}
