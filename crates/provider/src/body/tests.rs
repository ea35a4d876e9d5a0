use super::*;
use crate::script::Script;
use crate::spec::{Adjust, Compat};
use agentd_protocol::{ImageSource, RequestPart, ThinkingLevel};
use agentd_settings::{CompatConfig, Dialect, ThinkingForm, ThinkingSwitch};
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
        schema: json!({"type": "object"}).into(),
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

fn body(spec: &ModelSpec, messages: &[Arc<Message>], tools: &[ToolDef], params: Params<'_>) -> Value {
    let mut history = EncodedHistory::new();
    history.extend(spec, 0, messages);
    let prefix = encode_prefix(spec, &Prompt::of("Be good."), tools, &params);
    let body = RequestBody::new(prefix, &history, encode_suffix(spec, tools, &params));
    let bytes = body.to_bytes();
    assert_eq!(body.len(), bytes.len() as u64);
    serde_json::from_slice(&bytes).unwrap()
}

#[test]
fn a_prefix_shares_what_it_has_in_common_with_a_sample_and_is_the_same_bytes() {
    let sample = Bytes::from(vec![b'x'; 2 * WORTH_SHARING]);
    let history = EncodedHistory::new();
    for (same, own, shared) in [
        (WORTH_SHARING, "yz", true),
        (2 * WORTH_SHARING, "yz", true),
        (2 * WORTH_SHARING, "", true),
        (WORTH_SHARING - 1, "yz", false),
        (0, "", false),
    ] {
        let bytes = ["x".repeat(same), own.to_owned()].concat();
        let prefix = Prefix::sharing(bytes.as_bytes(), &sample);
        assert_eq!(prefix.len(), bytes.len());
        assert_eq!(prefix.common.len(), if shared { same } else { 0 });
        assert!(!shared || prefix.common.as_ptr() == sample.as_ptr());
        let body = RequestBody::new(prefix, &history, Bytes::from_static(b"]}"));
        assert_eq!(body.to_bytes(), [&bytes, "]}"].concat());
    }
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
    openai.compat = crate::spec::Compat::of(
        Dialect::OpenaiChat,
        "https://api.openai.com/v1",
        "gpt-5.2",
        &CompatConfig::default(),
    );
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
            tool_choice: ToolChoice::Off,
            ..Params::default()
        };
        assert_eq!(
            body(&spec, &conversation(), &[tool()], off).get("tool_choice"),
            Some(&choice)
        );
        assert_eq!(body(&spec, &conversation(), &[], off).get("tool_choice"), None);
        let prompt = Prompt::of("s");
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
    for dialect in [
        Dialect::Anthropic,
        Dialect::OpenaiChat,
        Dialect::OpenaiResponses,
        Dialect::Gemini,
        Dialect::Ollama,
        Dialect::LlamaCompletion,
    ] {
        let spec = spec(dialect);
        let mut grown = EncodedHistory::new();
        for end in 0..=messages.len() {
            let before = grown.fragments.clone();
            grown.extend(&spec, 0, &messages[..end]);
            let mut fresh = EncodedHistory::new();
            fresh.extend(&spec, 0, &messages[..end]);
            assert_eq!(grown.fragments.concat(), fresh.fragments.concat());
            // The cached prefix stays valid: only the end of an open text may be replaced.
            let kept = before.concat();
            let kept = kept.get(..kept.len().saturating_sub(TEXT_END)).unwrap();
            assert!(grown.fragments.concat().starts_with(kept));
        }
    }
}

#[test]
fn a_long_history_is_a_few_fragments() {
    let spec = spec(Dialect::Anthropic);
    let mut messages = Vec::new();
    let mut history = EncodedHistory::new();
    for n in 0..2_000 {
        let role = if n % 2 == 0 { Role::User } else { Role::Assistant };
        messages.push(message(role, vec![Block::text(format!("{n:0200}"))]));
        history.extend(&spec, 0, &messages);
        let bytes: usize = history.fragments.iter().map(Bytes::len).sum();
        // Full fragments, followed by fragments of less than half the length of their predecessor.
        let most = 2 * bytes / FRAGMENT + 12;
        assert!(
            history.fragments.len() <= most,
            "{n}: {}",
            history.fragments.len()
        );
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

fn anthropic() -> ModelSpec {
    ModelSpec {
        max_output: 8_000,
        ..spec(Dialect::Anthropic)
    }
}

/// The fields of a request after its messages, without those that every request has.
fn said(spec: &ModelSpec, params: Params<'_>) -> Value {
    let mut sent = body(spec, &[], &[tool()], params);
    let map = sent.as_object_mut().unwrap();
    for name in [
        "model",
        "max_tokens",
        "stream",
        "stream_options",
        "tools",
        "system",
        "messages",
    ] {
        map.remove(name);
    }
    sent
}

#[test]
fn anthropic_is_told_whom_to_call() {
    let check = |tool_choice: ToolChoice<'_>, parallel_tools: Option<bool>, expected: Value| {
        let params = Params {
            tool_choice,
            parallel_tools,
            ..Params::default()
        };
        assert_eq!(said(&anthropic(), params), expected);
    };
    check(ToolChoice::Unsaid, Some(true), json!({}));
    check(
        ToolChoice::Unsaid,
        Some(false),
        json!({"tool_choice": {"type": "auto", "disable_parallel_tool_use": true}}),
    );
    check(ToolChoice::Auto, None, json!({"tool_choice": {"type": "auto"}}));
    check(ToolChoice::Any, None, json!({"tool_choice": {"type": "any"}}));
    check(
        ToolChoice::Off,
        Some(false),
        json!({"tool_choice": {"type": "none"}}),
    );
    check(
        ToolChoice::Only("Read"),
        Some(false),
        json!({"tool_choice": {"type": "tool", "name": "Read", "disable_parallel_tool_use": true}}),
    );
    let params = Params {
        tool_choice: ToolChoice::Any,
        parallel_tools: Some(false),
        ..Params::default()
    };
    assert_eq!(
        body(&anthropic(), &[], &[], params).get("tool_choice"),
        None,
        "there is nothing to call"
    );
}

#[test]
fn anthropic_is_told_how_hard_to_think() {
    let check = |form: ThinkingForm, level: ThinkingLevel, expected: Value| {
        let mut spec = anthropic();
        spec.thinking = Some(level);
        spec.temperature = Some(0.5);
        spec.capabilities.thinking = form;
        spec.capabilities.thinking_levels = Vec::new();
        assert_eq!(said(&spec, Params::default()), expected, "{form:?} {level:?}");
    };
    let adaptive = json!({"type": "adaptive", "display": "summarized"});
    check(
        ThinkingForm::None,
        ThinkingLevel::High,
        json!({"temperature": 0.5}),
    );
    check(
        ThinkingForm::Adaptive,
        ThinkingLevel::High,
        json!({"thinking": adaptive, "output_config": {"effort": "high"}}),
    );
    check(
        ThinkingForm::Adaptive,
        ThinkingLevel::Minimal,
        json!({"thinking": adaptive, "output_config": {"effort": "low"}}),
    );
    check(
        ThinkingForm::Adaptive,
        ThinkingLevel::Off,
        json!({"thinking": {"type": "disabled"}, "temperature": 0.5}),
    );
    check(
        ThinkingForm::Budget,
        ThinkingLevel::Low,
        json!({"thinking": {"type": "enabled", "budget_tokens": 4_096}}),
    );
    check(
        ThinkingForm::Budget,
        ThinkingLevel::Max,
        json!({"thinking": {"type": "enabled", "budget_tokens": 6_000}}),
    );
    check(
        ThinkingForm::Budget,
        ThinkingLevel::Off,
        json!({"thinking": {"type": "disabled"}, "temperature": 0.5}),
    );
}

#[test]
fn a_budget_of_thinking_is_within_the_answer_or_not_asked_for() {
    let budget = |max_output: u32| {
        let mut spec = anthropic();
        spec.thinking = Some(ThinkingLevel::High);
        spec.capabilities.thinking = ThinkingForm::Budget;
        spec.capabilities.thinking_levels = Vec::new();
        let params = Params {
            max_output: Some(max_output),
            ..Params::default()
        };
        said(&spec, params).pointer("/thinking/budget_tokens").cloned()
    };
    assert_eq!(budget(1_024), None);
    assert_eq!(budget(1_025), Some(json!(1_024)));
    assert_eq!(budget(4_000), Some(json!(3_000)));
    let mut spec = anthropic();
    spec.thinking = Some(ThinkingLevel::High);
    spec.capabilities.thinking = ThinkingForm::Budget;
    let forced = Params {
        tool_choice: ToolChoice::Any,
        ..Params::default()
    };
    let expected = json!({"tool_choice": {"type": "any"}});
    assert_eq!(said(&spec, forced), expected, "a forced call cannot think first");
}

#[test]
fn an_answer_can_be_held_to_a_schema() {
    let open = json!({"type": "object", "properties": {"a": {"type": "string"}}});
    let closed = json!({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"], "additionalProperties": false});
    let with = |spec: &ModelSpec, schema: &Value| {
        let params = Params {
            schema: Some(("answer", schema)),
            ..Params::default()
        };
        said(spec, params)
    };
    let mut claude = anthropic();
    claude.capabilities.structured_output = true;
    let expected = json!({"output_config": {"format": {"type": "json_schema", "schema": open}}});
    assert_eq!(with(&claude, &open), expected);
    let mut gpt = spec(Dialect::OpenaiChat);
    gpt.capabilities.structured_output = true;
    for (schema, strict) in [(&open, false), (&closed, true)] {
        let format = json!({"name": "answer", "schema": schema, "strict": strict});
        let expected = json!({"response_format": {"type": "json_schema", "json_schema": format}});
        assert_eq!(with(&gpt, schema), expected);
    }
    gpt.capabilities.structured_output = false;
    assert_eq!(with(&gpt, &open), json!({}));
}

#[test]
fn chat_is_told_whom_to_call() {
    let mut gpt = spec(Dialect::OpenaiChat);
    let choose = |tool_choice: ToolChoice<'static>| Params {
        tool_choice,
        parallel_tools: Some(false),
        ..Params::default()
    };
    let only = json!({"type": "function", "function": {"name": "Read"}});
    for (choice, expected) in [
        (ToolChoice::Unsaid, json!({"parallel_tool_calls": false})),
        (
            ToolChoice::Auto,
            json!({"tool_choice": "auto", "parallel_tool_calls": false}),
        ),
        (
            ToolChoice::Any,
            json!({"tool_choice": "required", "parallel_tool_calls": false}),
        ),
        (
            ToolChoice::Only("Read"),
            json!({"tool_choice": only, "parallel_tool_calls": false}),
        ),
    ] {
        assert_eq!(said(&gpt, choose(choice)), expected);
    }
    gpt.compat.tool_choice = false;
    assert_eq!(said(&gpt, choose(ToolChoice::Any)), json!({}));
}

#[test]
fn chat_is_told_how_hard_to_think_in_the_servers_own_words() {
    let check = |switch: ThinkingSwitch, level: ThinkingLevel, expected: Value| {
        let mut spec = spec(Dialect::OpenaiChat);
        spec.thinking = Some(level);
        spec.temperature = Some(0.5);
        spec.capabilities.thinking = ThinkingForm::Effort;
        spec.capabilities.thinking_levels = vec![ThinkingLevel::Off, ThinkingLevel::Low, ThinkingLevel::High];
        spec.capabilities.temperature = false;
        spec.compat.thinking = switch;
        assert_eq!(said(&spec, Params::default()), expected, "{switch:?} {level:?}");
    };
    use ThinkingLevel::{Max, Off};
    check(ThinkingSwitch::None, Max, json!({}));
    check(
        ThinkingSwitch::ReasoningEffort,
        Max,
        json!({"reasoning_effort": "high"}),
    );
    check(
        ThinkingSwitch::ReasoningEffort,
        Off,
        json!({"reasoning_effort": "none"}),
    );
    check(
        ThinkingSwitch::Reasoning,
        Max,
        json!({"reasoning": {"effort": "high"}}),
    );
    check(
        ThinkingSwitch::Thinking,
        Max,
        json!({"thinking": {"type": "enabled"}}),
    );
    check(
        ThinkingSwitch::Thinking,
        Off,
        json!({"thinking": {"type": "disabled"}}),
    );
    check(
        ThinkingSwitch::EnableThinking,
        Off,
        json!({"enable_thinking": false}),
    );
    check(
        ThinkingSwitch::ChatTemplate,
        Max,
        json!({"chat_template_kwargs": {"enable_thinking": true}}),
    );
}

#[test]
fn a_server_is_asked_as_it_wants_to_be_asked() {
    let mut odd = spec(Dialect::OpenaiChat);
    odd.stream = false;
    odd.temperature = Some(0.5);
    odd.compat.developer_role = true;
    odd.base_url = "https://api.openai.com/v1".into();
    let params = Params {
        cache_key: "session-1",
        ..Params::default()
    };
    let expected = json!({"model": "m-1", "stream": false, "max_tokens": 100,
        "messages": [{"role": "developer", "content": "Be good."}], "temperature": 0.5, "prompt_cache_key": "session-1"});
    assert_eq!(body(&odd, &[], &[], params), expected);
    let mut silent = spec(Dialect::OpenaiChat);
    silent.compat.usage_in_stream = false;
    let expected = json!({"model": "m-1", "stream": true, "max_tokens": 100, "messages": [{"role": "system", "content": "Be good."}]});
    assert_eq!(body(&silent, &[], &[], params), expected);
}

#[test]
fn short_ids_are_the_same_for_a_call_and_its_result() {
    let mut mistral = spec(Dialect::OpenaiChat);
    mistral.compat.short_tool_ids = true;
    let sent = body(&mistral, &conversation(), &[], Params::default());
    let id = |pointer: &str| sent.pointer(pointer).and_then(Value::as_str).unwrap().to_owned();
    let called = [
        id("/messages/2/tool_calls/0/id"),
        id("/messages/2/tool_calls/1/id"),
    ];
    let answered = [id("/messages/3/tool_call_id"), id("/messages/4/tool_call_id")];
    assert_eq!(called, answered);
    assert_ne!(called[0], called[1]);
    for id in called {
        assert!(
            id.len() == 9 && id.bytes().all(|byte| byte.is_ascii_alphanumeric()),
            "{id}"
        );
    }
    let own = [message(
        Role::User,
        vec![Block::ToolResult {
            tool_use_id: "abcDEF123".into(),
            content: "x".into(),
            is_error: false,
        }],
    )];
    let sent = body(&mistral, &own, &[], Params::default());
    assert_eq!(
        sent.pointer("/messages/1/tool_call_id"),
        Some(&json!("abcDEF123"))
    );
}

#[test]
fn reasoning_goes_back_where_it_was_and_foreign_reasoning_nowhere() {
    let reply = |raw: &str| {
        let thought = Block::Thinking {
            text: "so".into(),
            raw: Some(raw.into()),
        };
        let messages = [message(Role::Assistant, vec![thought, Block::text("hi")])];
        let of = |dialect| body(&spec(dialect), &messages, &[], Params::default());
        let chat = of(Dialect::OpenaiChat).pointer("/messages/1").cloned().unwrap();
        let claude = of(Dialect::Anthropic)
            .pointer("/messages/0/content")
            .cloned()
            .unwrap();
        (chat, claude)
    };
    let plain = json!({"role": "assistant", "content": "hi"});
    let text = json!([{"type": "text", "text": "hi"}]);
    let details = json!([{"type": "reasoning.encrypted", "data": "xyz"}]);
    assert_eq!(
        reply(&json!({"reasoning_details": details, "reasoning": "so"}).to_string()),
        (
            json!({"role": "assistant", "content": "hi", "reasoning_details": details, "reasoning": "so"}),
            text.clone()
        )
    );
    let part = json!({"type": "thinking", "thinking": [{"type": "text", "text": "so"}]});
    assert_eq!(
        reply(&json!({"content": [part]}).to_string()),
        (
            json!({"role": "assistant", "content": [part, {"type": "text", "text": "hi"}]}),
            text.clone()
        )
    );
    let sealed = json!({"type": "redacted_thinking", "data": "xyz"});
    assert_eq!(
        reply(&sealed.to_string()),
        (plain.clone(), json!([sealed, {"type": "text", "text": "hi"}]))
    );
    for foreign in [
        json!({"type": "reasoning", "encrypted_content": "xyz"}),
        json!({"thought": true, "text": "so", "thoughtSignature": "s"}),
        json!({"thinking": "so"}),
    ] {
        assert_eq!(
            reply(&foreign.to_string()),
            (plain.clone(), text.clone()),
            "{foreign}"
        );
    }
}

#[test]
fn an_image_of_a_result_stands_where_the_server_looks_for_it() {
    let image = || Block::Image {
        media_type: "image/png".into(),
        source: ImageSource::Data("QUJD".into()),
    };
    let result = |id: &str, content: &str| Block::ToolResult {
        tool_use_id: id.into(),
        content: content.into(),
        is_error: false,
    };
    let messages = [message(
        Role::User,
        vec![
            result("a", "one"),
            image(),
            Block::text("look"),
            result("b", "two"),
        ],
    )];
    let sent = body(&spec(Dialect::Anthropic), &messages, &[], Params::default());
    let shown =
        json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "QUJD"}});
    assert_eq!(
        sent.pointer("/messages/0/content"),
        Some(&json!([
            {"type": "tool_result", "tool_use_id": "a", "content": [{"type": "text", "text": "one"}, shown], "is_error": false},
            {"type": "tool_result", "tool_use_id": "b", "content": "two", "is_error": false},
            {"type": "text", "text": "look"},
        ]))
    );
    let sent = body(&spec(Dialect::OpenaiChat), &messages, &[], Params::default());
    let picture = json!({"type": "image_url", "image_url": {"url": "data:image/png;base64,QUJD"}});
    let after: Vec<Value> = sent.pointer("/messages").and_then(Value::as_array).unwrap()[1..].to_vec();
    assert_eq!(
        after,
        [
            json!({"role": "tool", "tool_call_id": "a", "content": "one"}),
            json!({"role": "tool", "tool_call_id": "b", "content": "two"}),
            json!({"role": "user", "content": [picture, {"type": "text", "text": "look"}]}),
        ]
    );
    let mut blind = spec(Dialect::OpenaiChat);
    blind.capabilities.images = false;
    let sent = body(&blind, &messages, &[], Params::default());
    assert_eq!(
        sent.pointer("/messages/3/content"),
        Some(&json!("[image not available]\n\nlook"))
    );
}

fn step(calls: usize) -> [Arc<Message>; 2] {
    let call = |n: usize| Block::ToolUse {
        id: n.to_string(),
        name: "Read".into(),
        input: json!({}),
    };
    let result = |n: usize| Block::ToolResult {
        tool_use_id: n.to_string(),
        content: "x".into(),
        is_error: false,
    };
    [
        message(Role::Assistant, (0..calls).map(call).collect()),
        message(Role::User, (0..calls).map(result).collect()),
    ]
}

#[test]
fn the_cache_marks_are_four_at_most_where_this_request_and_the_one_before_it_end() {
    let mut spec = anthropic();
    spec.compat.prompt_cache = true;
    let params = Params::default();
    let prompt = Prompt {
        system: "shared",
        own: "own",
    };
    let prefix = encode_prefix(&spec, &prompt, &[tool()], &params);
    let mut messages = vec![message(Role::User, vec![Block::text("go")])];
    let mut history = EncodedHistory::new();
    let mut marks = Vec::new();
    for calls in [2, 12, 1, 40] {
        messages.extend(step(calls));
        let before = history.fragments.concat();
        history.extend(&spec, 0, &messages);
        assert!(
            history.fragments.concat().starts_with(&before),
            "bytes once sent stay"
        );
        let body = RequestBody::new(prefix.clone(), &history, encode_suffix(&spec, &[tool()], &params));
        let bytes = body.to_bytes();
        assert_eq!(body.len(), bytes.len() as u64);
        let sent: Value = serde_json::from_slice(&bytes).unwrap();
        let marked: Vec<String> = sent["messages"]
            .as_array()
            .unwrap()
            .iter()
            .zip(0..)
            .flat_map(|(message, at)| {
                let blocks = message["content"].as_array().unwrap().iter().zip(0..);
                let own: Vec<String> = blocks
                    .filter(|(block, _)| block.get("cache_control").is_some())
                    .map(|(_, block)| format!("{at}.{block}"))
                    .collect();
                own
            })
            .collect();
        assert_eq!(
            String::from_utf8_lossy(&bytes).matches("cache_control").count(),
            4
        );
        // A restart encodes everything at once and must send the same bytes.
        let mut restarted = EncodedHistory::new();
        restarted.extend(&spec, 0, &messages);
        assert_eq!(restarted.pieces().concat(), history.pieces().concat());
        marks.push(marked.join(" "));
        // A repeated attempt must send the same request.
        history.extend(&spec, 0, &messages);
        let again = RequestBody::new(prefix.clone(), &history, encode_suffix(&spec, &[tool()], &params));
        assert_eq!(again.to_bytes(), bytes);
    }
    assert_eq!(marks, ["0.0 2.1", "2.1 4.11", "4.11 6.0", "6.0 8.39"]);
}

#[test]
fn a_cache_mark_is_put_in_whichever_fragment_it_belongs_to() {
    let mut spec = anthropic();
    spec.compat.prompt_cache = true;
    let mut messages = vec![message(Role::User, vec![Block::text("x".repeat(2 * FRAGMENT))])];
    let mut history = EncodedHistory::new();
    history.extend(&spec, 0, &messages);
    messages.push(message(Role::Assistant, vec![Block::text("y".repeat(FRAGMENT))]));
    messages.extend(step(10));
    history.extend(&spec, 0, &messages);
    let bytes = history.pieces().concat();
    let sent: Value = serde_json::from_slice(&[b"[".as_slice(), &bytes, b"]"].concat()).unwrap();
    assert_eq!(
        sent.pointer("/0/content/0/cache_control"),
        Some(&json!({"type": "ephemeral"}))
    );
    assert_eq!(
        String::from_utf8_lossy(&bytes).matches("cache_control").count(),
        2
    );
}

#[test]
fn claude_behind_a_chat_gateway_gets_marks_on_parts() {
    let mut claude = spec(Dialect::OpenaiChat);
    claude.compat = crate::spec::Compat::of(
        Dialect::OpenaiChat,
        "https://gateway.example/v1",
        "anthropic/claude-sonnet-5-5",
        &CompatConfig::default(),
    );
    let mut messages = vec![message(Role::User, vec![Block::text("go")])];
    messages.extend(step(2));
    let sent = body(&claude, &messages, &[tool()], Params::default());
    let mark = json!({"type": "ephemeral"});
    let part = |text: &str| json!({"type": "text", "text": text, "cache_control": mark});
    let plain = json!({"type": "text", "text": "x"});
    assert_eq!(
        sent.get("messages"),
        Some(&json!([
            {"role": "system", "content": [part("Be good.")]},
            {"role": "user", "content": [part("go")]},
            sent["messages"][2],
            {"role": "tool", "tool_call_id": "0", "content": [plain]},
            {"role": "tool", "tool_call_id": "1", "content": [part("x")]},
        ]))
    );
    // Later requests omit everything that the server refused, and keep the plain form of the messages.
    let taught = claude.adjusted(&Adjust {
        without: vec![agentd_protocol::RequestPart::CacheMarks],
        ..Adjust::default()
    });
    let sent = body(&taught, &messages, &[tool()], Params::default());
    assert!(!sent.to_string().contains("cache_control"));
    assert_eq!(sent.pointer("/messages/1/content"), Some(&json!("go")));
}

#[test]
fn all_marks_of_a_request_ask_for_an_hour_or_none_does() {
    let [asked, results] = step(2);
    let messages = [message(Role::User, vec![Block::text("go")]), asked, results];
    let marks = |hour, without: &[agentd_protocol::RequestPart], spec: &ModelSpec| {
        let adjusted = spec.adjusted(&Adjust {
            cache_hour: hour,
            without: without.to_vec(),
            ..Adjust::default()
        });
        let sent = body(&adjusted, &messages, &[tool()], Params::default()).to_string();
        let hours = sent.matches(r#""ttl":"1h""#).count();
        (sent.matches("cache_control").count(), hours)
    };
    let own = ModelSpec {
        compat: Compat {
            prompt_cache: true,
            prompt_cache_1h: true,
            ..anthropic().compat
        },
        ..anthropic()
    };
    let refused = [agentd_protocol::RequestPart::CacheHour];
    assert_eq!(marks(true, &[], &own), (3, 3));
    assert_eq!(marks(false, &[], &own), (3, 0));
    assert_eq!(marks(true, &refused, &own), (3, 0));
    assert_eq!(
        marks(true, &[agentd_protocol::RequestPart::CacheMarks], &own),
        (0, 0)
    );
    let gateway = ModelSpec {
        compat: Compat {
            prompt_cache_1h: false,
            ..own.compat
        },
        ..own
    };
    assert_eq!(marks(true, &[], &gateway), (3, 0));
}

#[test]
fn a_token_of_a_login_is_no_key() {
    let headers = |found_in: &str, secret: &str| {
        let credential = crate::spec::Credential {
            name: "main".into(),
            found_in: found_in.into(),
            secret: crate::secret::Secret::new(secret),
        };
        let headers = codec(Dialect::Anthropic)
            .unwrap()
            .headers(&anthropic(), Some(&credential));
        headers.last().cloned().unwrap()
    };
    let key = ("x-api-key", "k".to_owned());
    assert_eq!(headers("ANTHROPIC_API_KEY", "k"), key);
    assert_eq!(
        headers("ANTHROPIC_AUTH_TOKEN", "t"),
        ("authorization", "Bearer t".to_owned())
    );
}

#[test]
fn what_a_model_made_up_does_not_spoil_the_requests_that_follow() {
    let messages = [
        message(
            Role::Assistant,
            vec![Block::ToolUse {
                id: "a".into(),
                name: "functions.Read file".into(),
                input: json!(null),
            }],
        ),
        message(
            Role::User,
            vec![Block::ToolResult {
                tool_use_id: "a".into(),
                content: String::new(),
                is_error: true,
            }],
        ),
    ];
    let of = |dialect, pointer: &str| {
        body(&spec(dialect), &messages, &[], Params::default())
            .pointer(pointer)
            .cloned()
    };
    let name = Some(json!("functions_Read_file"));
    assert_eq!(of(Dialect::Anthropic, "/messages/0/content/0/name"), name);
    assert_eq!(
        of(Dialect::OpenaiChat, "/messages/1/tool_calls/0/function/name"),
        name
    );
    assert_eq!(
        of(Dialect::Ollama, "/messages/1/tool_calls/0/function/name"),
        name
    );
    assert_eq!(of(Dialect::Ollama, "/messages/2/tool_name"), name);
    let said = Some(json!("[failed without a message]"));
    assert_eq!(of(Dialect::Anthropic, "/messages/1/content/0/content"), said);
}

#[test]
fn what_a_server_refused_is_sent_otherwise() {
    let spec = spec(Dialect::OpenaiChat);
    let prefix = |spec: &ModelSpec| {
        let prefix = encode_prefix(spec, &Prompt::of("s"), &[], &Params::default());
        String::from_utf8(prefix.to_vec()).unwrap()
    };
    let without = |part| {
        prefix(&spec.adjusted(&Adjust {
            without: vec![part],
            ..Adjust::default()
        }))
    };
    let whole = prefix(&spec);
    assert!(
        whole.contains("stream_options") && whole.contains(r#""max_tokens""#),
        "{whole}"
    );
    assert!(!without(RequestPart::StreamOptions).contains("stream_options"));
    assert!(without(RequestPart::LimitName).contains(r#""max_completion_tokens""#));
    let mut openai = spec.clone();
    openai.compat.max_completion_tokens = true;
    let other = openai.adjusted(&Adjust {
        without: vec![RequestPart::LimitName],
        ..Adjust::default()
    });
    assert!(prefix(&other).contains(r#""max_tokens""#));
}
