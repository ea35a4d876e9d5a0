#![expect(clippy::needless_pass_by_value, reason = "json values read better by value")]

use super::*;
use crate::body::{EncodedHistory, RequestBody, ToolChoice, encode_prefix, encode_suffix};
use crate::decoder::{Decoder, MAX_BLOCKS};
use crate::error::ModelError;
use crate::reply::{ModelEvent, ModelReply};
use crate::script::Script;
use crate::secret::Secret;
use agentd_protocol::{Block, FailureClass, ImageSource, Reading, Role, StopReason, ThinkingLevel, Usage};
use agentd_settings::{Dialect, ThinkingForm};
use serde_json::{Value, json};
use std::sync::Arc;

fn spec(model: &str) -> ModelSpec {
    ModelSpec {
        dialect: Dialect::Gemini,
        base_url: "http://x".into(),
        model: model.into(),
        max_output: 4_000,
        ..ModelSpec::scripted("m", Arc::new(Script::builtin()))
    }
}

fn watched(frames: &[Value]) -> Result<(ModelReply, Vec<ModelEvent>), ModelError> {
    let stream: String = frames
        .iter()
        .map(|frame| format!("data: {frame}\r\n\r\n"))
        .collect();
    let mut decoder = Decoder::new(&spec("gemini-3-pro"), &[])?;
    let mut events = Vec::new();
    for chunk in stream.as_bytes().chunks(7) {
        decoder.feed(chunk, &mut events)?;
    }
    Ok((decoder.finish(&mut events)?, events))
}

fn decode(frames: &[Value]) -> Result<ModelReply, ModelError> {
    watched(frames).map(|(reply, _)| reply)
}

fn chunk(parts: Value) -> Value {
    json!({"candidates": [{"content": {"role": "model", "parts": parts}, "index": 0}], "modelVersion": "gemini-3-x", "responseId": "r1"})
}

fn last(parts: Value, reason: &str) -> Value {
    let mut chunk = chunk(parts);
    chunk["candidates"][0]["finishReason"] = json!(reason);
    chunk
}

fn closed(text: &str, raw: &str) -> Block {
    Block::Thinking {
        text: text.into(),
        raw: Some(raw.into()),
    }
}

fn used(id: &str, name: &str, input: Value) -> Block {
    Block::ToolUse {
        id: id.into(),
        name: name.into(),
        input,
    }
}

fn result(id: &str, content: &str, is_error: bool) -> Block {
    Block::ToolResult {
        tool_use_id: id.into(),
        content: content.into(),
        is_error,
    }
}

fn thought(block: u32, text: &str) -> ModelEvent {
    ModelEvent::ThinkingDelta {
        block,
        text: text.into(),
    }
}

fn words(block: u32, text: &str) -> ModelEvent {
    ModelEvent::TextDelta {
        block,
        text: text.into(),
    }
}

fn start(block: u32, name: &str) -> ModelEvent {
    ModelEvent::ToolStart {
        block,
        name: name.into(),
    }
}

fn input_of(block: u32, text: &str) -> ModelEvent {
    ModelEvent::ToolInputDelta {
        block,
        text: text.into(),
    }
}

fn image() -> Block {
    Block::Image {
        media_type: "image/png".into(),
        source: ImageSource::Data("aGk=".into()),
    }
}

fn class(result: Result<ModelReply, ModelError>) -> Option<FailureClass> {
    result.err().map(|error| error.class)
}

#[test]
fn a_stream_becomes_blocks_and_the_pieces_that_it_showed() {
    let mut end = last(json!([{"functionCall": {"name": "Ls", "args": {}}}]), "STOP");
    end["usageMetadata"] = json!({"promptTokenCount": 100, "cachedContentTokenCount": 60, "toolUsePromptTokenCount": 5, "candidatesTokenCount": 20, "thoughtsTokenCount": 30});
    let mut early = chunk(json!([{"text": "so", "thought": true}]));
    early["usageMetadata"] = json!({"promptTokenCount": 100, "thoughtsTokenCount": 10});
    let frames = [
        chunk(json!([{"text": "hm, ", "thought": true}])),
        early,
        chunk(json!([{"text": "Read"}])),
        chunk(json!([{"text": "ing."}])),
        chunk(
            json!([{"functionCall": {"id": "f1", "name": "Read", "args": {"p": 1}}, "thoughtSignature": "s/+="}]),
        ),
        end,
    ];
    let (reply, events) = watched(&frames).unwrap();
    let expected = ModelReply {
        content: vec![
            closed("hm, so", r#"{"text":"hm, so","thought":true}"#),
            Block::text("Reading."),
            closed("", r#"{"functionCall":{"id":"f1"},"thoughtSignature":"s/+="}"#),
            used("f1", "Read", json!({"p": 1})),
            used("call_4", "Ls", json!({})),
        ],
        stop_reason: StopReason::ToolUse,
        usage: Usage {
            input: 45,
            output: 50,
            cache_read: 60,
            cache_write: 0,
            cache_write_1h: 0,
            reasoning: 30,
        },
        cost_usd: None,
        model: "gemini-3-x".into(),
        request_id: Some("r1".into()),
        reading: Reading::default(),
    };
    assert_eq!(reply, expected);
    let seen = [
        thought(0, "hm, "),
        thought(0, "so"),
        words(1, "Read"),
        words(1, "ing."),
        start(2, "Read"),
        input_of(2, "{\"p\":1}"),
        start(3, "Ls"),
        input_of(3, "{}"),
    ];
    assert_eq!(events, seen);
}

#[test]
fn a_whole_answer_is_one_chunk_or_a_list_of_chunks() {
    let whole = |body: Value| {
        let decoder = Decoder::new(&spec("gemini-3-pro"), &[]).unwrap();
        decoder.whole(body.to_string().as_bytes(), &mut Vec::new())
    };
    let one = whole(last(json!([{"text": "hi"}]), "STOP")).unwrap();
    assert_eq!(
        (one.content, one.stop_reason),
        (vec![Block::text("hi")], StopReason::EndTurn)
    );
    let list = whole(json!([
        chunk(json!([{"text": "h"}])),
        last(json!([{"text": "i"}]), "STOP")
    ]))
    .unwrap();
    assert_eq!(list.content, [Block::text("hi")]);
    let error = json!([{"error": {"code": 503, "status": "UNAVAILABLE", "message": "busy"}}]);
    assert_eq!(class(whole(error)), Some(FailureClass::Overloaded));
    assert_eq!(class(whole(json!({}))), Some(FailureClass::Transient));
}

#[test]
fn text_after_the_first_reason_to_finish_belongs_to_the_answer() {
    let frames = [
        last(json!([{"text": "one "}]), "STOP"),
        last(json!([{"text": "two"}]), "MAX_TOKENS"),
    ];
    let reply = decode(&frames).unwrap();
    assert_eq!(
        (reply.content, reply.stop_reason),
        (vec![Block::text("one two")], StopReason::MaxTokens)
    );
}

#[test]
fn every_reason_to_finish_has_its_meaning() {
    let check = |reason: &str, expected: StopReason| {
        let reply = decode(&[last(json!([{"text": "hi"}]), reason)]).unwrap();
        assert_eq!(reply.stop_reason, expected, "{reason}");
    };
    check("STOP", StopReason::EndTurn);
    check("MAX_TOKENS", StopReason::MaxTokens);
    for filter in [
        "SAFETY",
        "RECITATION",
        "LANGUAGE",
        "BLOCKLIST",
        "PROHIBITED_CONTENT",
        "SPII",
        "IMAGE_SAFETY",
    ] {
        check(filter, StopReason::ContentFilter);
    }
    check("SOMETHING_NEW", StopReason::Other);
    for stumble in [
        "MALFORMED_FUNCTION_CALL",
        "UNEXPECTED_TOOL_CALL",
        "TOO_MANY_TOOL_CALLS",
    ] {
        let mut end = last(json!([]), stumble);
        end["candidates"][0]["finishMessage"] = json!("bad call");
        let error = decode(&[chunk(json!([{"text": "hi"}])), end]).unwrap_err();
        let advice = crate::Advice::Miscalled {
            name: "unknown".into(),
            said: "bad call".into(),
        };
        let expected = ModelError {
            advice: Some(advice),
            ..ModelError::new(
                FailureClass::InvalidRequest,
                format!("the model produced an invalid answer: {stumble} bad call"),
            )
        };
        assert_eq!(error, expected);
    }
}

#[test]
fn a_blocked_prompt_is_a_content_filter() {
    let error =
        decode(&[json!({"promptFeedback": {"blockReason": "SAFETY"}, "responseId": "r1"})]).unwrap_err();
    let expected = ModelError::new(
        FailureClass::ContentFilter,
        "the provider blocked the prompt: SAFETY",
    );
    assert_eq!(error, expected);
}

#[test]
fn two_answers_in_one_stream_are_refused() {
    let mut other = last(json!([{"text": "b"}]), "STOP");
    other["responseId"] = json!("r2");
    assert_eq!(
        class(decode(&[chunk(json!([{"text": "a"}])), other])),
        Some(FailureClass::Transient)
    );
}

#[test]
fn i4_a_stream_without_a_reason_to_finish_is_no_answer() {
    let frames = [chunk(json!([{"functionCall": {"name": "Ls", "args": {}}}]))];
    assert_eq!(class(decode(&frames)), Some(FailureClass::Transient));
    let pieces = [last(
        json!([{"functionCall": {"name": "Ls", "partialArgs": [{"jsonPath": "$.p"}]}}]),
        "STOP",
    )];
    assert_eq!(class(decode(&pieces)), Some(FailureClass::Transient));
}

#[test]
fn an_error_in_a_stream_is_classified() {
    let error = json!({"error": {"code": 429, "status": "RESOURCE_EXHAUSTED", "message": "slow", "details": [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34s"}]}});
    let error = decode(&[chunk(json!([{"text": "a"}])), error]).unwrap_err();
    assert_eq!(
        (error.class, error.retry_after_ms),
        (FailureClass::RateLimited, Some(34_000))
    );
}

#[test]
fn an_answer_has_a_bound_on_its_parts() {
    let parts = |count: usize| {
        let part = json!({"functionCall": {"name": "Ls", "args": {}}});
        decode(&[last(vec![part; count].into(), "STOP")]).map(|reply| reply.content.len())
    };
    assert_eq!(parts(MAX_BLOCKS), Ok(MAX_BLOCKS));
    assert_eq!(parts(MAX_BLOCKS + 1).unwrap_err().class, FailureClass::Transient);
}

fn message(role: Role, content: Vec<Block>) -> Arc<Message> {
    Arc::new(Message { role, content })
}

fn body(
    spec: &ModelSpec,
    system: &str,
    tools: &[ToolDef],
    messages: &[Arc<Message>],
    params: &Params<'_>,
) -> Value {
    let mut history = EncodedHistory::new();
    history.extend(spec, 0, messages);
    let prefix = encode_prefix(spec, &Prompt::of(system), tools, params);
    let body = RequestBody::new(prefix, &history, encode_suffix(spec, tools, params));
    serde_json::from_slice(&body.to_bytes()).unwrap()
}

fn replayed(spec: &ModelSpec, content: Vec<Block>) -> Value {
    let mut body = body(
        spec,
        "",
        &[],
        &[message(Role::Assistant, content)],
        &Params::default(),
    );
    body["contents"][0]["parts"].take()
}

fn tool() -> ToolDef {
    ToolDef {
        name: "Read".into(),
        description: "Reads.".into(),
        schema: json!({"type": "object"}).into(),
    }
}

#[test]
fn each_part_goes_back_with_its_own_signature() {
    let parts = json!([
        {"text": "hm", "thought": true, "thoughtSignature": "s0"},
        {"text": "plain"},
        {"text": "signed", "thoughtSignature": "s1"},
        {"text": "after"},
        {"executableCode": {"language": "PYTHON", "code": "1"}},
        {"functionCall": {"name": "Read", "args": {"p": 1}, "id": "f1"}, "thoughtSignature": "s2"},
        {"functionCall": {"name": "Ls", "args": {}}},
        {"text": "", "thoughtSignature": "s3"},
    ]);
    let reply = decode(&[last(parts.clone(), "STOP")]).unwrap();
    let shown: Vec<Block> = reply
        .content
        .iter()
        .filter(|block| !matches!(block, Block::Thinking { .. }))
        .cloned()
        .collect();
    let expected = [
        Block::text("plain"),
        Block::text("signed"),
        Block::text("after"),
        used("f1", "Read", json!({"p": 1})),
        used("call_7", "Ls", json!({})),
    ];
    assert_eq!(shown, expected);
    assert_eq!(replayed(&spec("gemini-3-pro"), reply.content), parts);
}

#[test]
fn a_signature_may_come_without_any_text() {
    let reply = decode(&[last(
        json!([{"text": "hi"}, {"thoughtSignature": "s"}, {"text": ""}]),
        "STOP",
    )])
    .unwrap();
    let expected = json!([{"text": "hi"}, {"thoughtSignature": "s", "text": ""}]);
    assert_eq!(replayed(&spec("gemini-3-pro"), reply.content), expected);
    // The text of the signed part has been removed since.
    let lost = vec![
        closed("", r#"{"thoughtSignature":"s"}"#),
        used("a", "Ls", json!({})),
    ];
    let expected = json!([
        {"functionCall": {"name": "Ls", "args": {}}, "thoughtSignature": "s"},
    ]);
    assert_eq!(replayed(&spec("gemini-3-pro"), lost), expected);
}

#[test]
fn the_first_call_that_another_model_made_is_signed_as_such() {
    let foreign = vec![
        closed("hm", r#"{"type":"thinking","thinking":"hm","signature":"x"}"#),
        closed("hm", r#"{"reasoning_content":"hm"}"#),
        closed("hm", r#"{"type":"reasoning","encrypted_content":"x"}"#),
        used("a", "Read", json!({})),
        used("b", "Ls", json!("{\"p\":")),
    ];
    let call = |name: &str, args: Value| json!({"functionCall": {"name": name, "args": args}});
    let mut first = call("Read", json!({}));
    let second = call("Ls", json!({"unparsed": "{\"p\":"}));
    assert_eq!(
        replayed(&spec("gemini-2.5-flash"), foreign.clone()),
        json!([first, second])
    );
    first["thoughtSignature"] = json!("skip_thought_signature_validator");
    for model in ["gemini-3-pro", "models/gemini-flash-latest", "gemini-10"] {
        assert_eq!(
            replayed(&spec(model), foreign.clone()),
            json!([first, second]),
            "{model}"
        );
    }
}

#[test]
fn signatures_that_were_refused_stay_away_and_ids_do_not() {
    let mut spec = spec("gemini-2.5-pro");
    spec.compat.replay_reasoning = false;
    let content = vec![
        closed("hm", r#"{"text":"hm","thought":true}"#),
        closed("", r#"{"thoughtSignature":"s1"}"#),
        Block::text("hi"),
        closed("", r#"{"functionCall":{"id":"f1"},"thoughtSignature":"s2"}"#),
        used("a", "Ls", json!({})),
    ];
    let expected = json!([{"text": "hi"}, {"functionCall": {"name": "Ls", "args": {}, "id": "f1"}}]);
    assert_eq!(replayed(&spec, content), expected);
}

#[test]
fn a_request_names_the_calls_that_it_answers() {
    let messages = [
        message(Role::User, vec![Block::text("go"), image()]),
        message(
            Role::Assistant,
            vec![
                closed("", r#"{"functionCall":{"id":"f1"},"thoughtSignature":"s"}"#),
                used("a", "Read", json!({"p": 1})),
                used("b", "Ls", json!({})),
            ],
        ),
        message(
            Role::User,
            vec![
                Block::text("hurry"),
                result("a", "1", false),
                result("b", "no", true),
                result("c", "?", true),
            ],
        ),
    ];
    let schema = json!({"type": "object"});
    let params = Params {
        tool_choice: ToolChoice::Only("Read"),
        parallel_tools: Some(true),
        max_output: Some(50),
        schema: Some(("answer", &schema)),
        cache_key: "s-1",
    };
    let spec = ModelSpec {
        temperature: Some(0.5),
        ..spec("gemini-3-pro")
    };
    let answered = |response: Value| json!({ "functionResponse": response });
    let expected = json!({
        "systemInstruction": {"parts": [{"text": "Be kind."}]},
        "tools": [{"functionDeclarations": [{"name": "Read", "description": "Reads.", "parametersJsonSchema": {"type": "object"}}]}],
        "contents": [
            {"role": "user", "parts": [{"text": "go"}, {"inlineData": {"mimeType": "image/png", "data": "aGk="}}]},
            {"role": "model", "parts": [
                {"functionCall": {"name": "Read", "args": {"p": 1}, "id": "f1"}, "thoughtSignature": "s"},
                {"functionCall": {"name": "Ls", "args": {}}},
            ]},
            {"role": "user", "parts": [
                answered(json!({"name": "Read", "response": {"output": "1"}, "id": "f1"})),
                answered(json!({"name": "Ls", "response": {"error": "no"}})),
                answered(json!({"name": "unknown", "response": {"error": "?"}})),
                {"text": "hurry"},
            ]},
        ],
        "toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["Read"]}},
        "generationConfig": {
            "maxOutputTokens": 50,
            "temperature": 0.5,
            "responseMimeType": "application/json",
            "responseJsonSchema": {"type": "object"},
        },
    });
    assert_eq!(body(&spec, "Be kind.", &[tool()], &messages, &params), expected);
}

#[test]
fn a_bare_request_is_a_conversation_with_a_limit() {
    let messages = [message(Role::User, vec![Block::text("go"), Block::text(" ")])];
    let expected = json!({
        "contents": [{"role": "user", "parts": [{"text": "go"}]}],
        "generationConfig": {"maxOutputTokens": 4_000},
    });
    assert_eq!(
        body(&spec("gemini-2.5-pro"), "", &[], &messages, &Params::default()),
        expected
    );
}

#[test]
fn older_models_are_not_held_to_a_schema_while_they_have_tools() {
    let schema = json!({"type": "object"});
    let params = Params {
        schema: Some(("answer", &schema)),
        ..Params::default()
    };
    let held = |tools: &[ToolDef]| {
        let body = body(&spec("gemini-2.5-pro"), "", tools, &[], &params);
        body["generationConfig"].get("responseJsonSchema").cloned()
    };
    assert_eq!((held(&[]), held(&[tool()])), (Some(schema.clone()), None));
}

#[test]
fn a_thinking_level_is_a_word_or_a_number_of_tokens() {
    let check = |form: ThinkingForm, level: ThinkingLevel, max_output: u32, expected: Value| {
        let mut spec = spec("gemini-3-pro");
        spec.capabilities.thinking = form;
        spec.thinking = Some(level);
        spec.max_output = max_output;
        let body = body(&spec, "", &[], &[], &Params::default());
        assert_eq!(
            body["generationConfig"]["thinkingConfig"], expected,
            "{form:?} {level:?}"
        );
    };
    let word = |shown: bool, level: &str| json!({ "includeThoughts": shown, "thinkingLevel": level });
    let tokens = |shown: bool, count: i64| json!({ "includeThoughts": shown, "thinkingBudget": count });
    check(
        ThinkingForm::Effort,
        ThinkingLevel::Off,
        4_000,
        word(false, "minimal"),
    );
    check(
        ThinkingForm::Effort,
        ThinkingLevel::Medium,
        4_000,
        word(true, "medium"),
    );
    check(
        ThinkingForm::Effort,
        ThinkingLevel::Max,
        4_000,
        word(true, "high"),
    );
    check(ThinkingForm::Budget, ThinkingLevel::Off, 65_536, tokens(false, 0));
    check(
        ThinkingForm::Budget,
        ThinkingLevel::High,
        65_536,
        tokens(true, 16_384),
    );
    check(
        ThinkingForm::Budget,
        ThinkingLevel::Max,
        65_536,
        tokens(true, 24_576),
    );
    check(
        ThinkingForm::Budget,
        ThinkingLevel::Max,
        4_000,
        tokens(true, 2_000),
    );
    check(ThinkingForm::Budget, ThinkingLevel::Low, 100, tokens(true, 512));
    check(ThinkingForm::Switch, ThinkingLevel::High, 4_000, tokens(true, -1));
    check(ThinkingForm::None, ThinkingLevel::High, 4_000, Value::Null);
}

#[test]
fn the_address_names_version_model_and_method() {
    let check = |base_url: &str, model: &str, stream: bool, expected: &str| {
        let spec = ModelSpec {
            base_url: base_url.into(),
            stream,
            ..spec(model)
        };
        assert_eq!(Gemini.url(&spec), expected);
    };
    check(
        "http://x/",
        "g",
        true,
        "http://x/v1beta/models/g:streamGenerateContent?alt=sse",
    );
    check(
        "http://x/v1beta",
        "g",
        false,
        "http://x/v1beta/models/g:generateContent",
    );
    check(
        "http://x/proxy/v1/",
        "tunedModels/g",
        false,
        "http://x/proxy/v1/tunedModels/g:generateContent",
    );
    check(
        "http://vx",
        "g",
        false,
        "http://vx/v1beta/models/g:generateContent",
    );
    let credential = Credential {
        name: "main".into(),
        found_in: "A_KEY".into(),
        secret: Secret::new("abc-1"),
    };
    let headers = Gemini.headers(&spec("g"), Some(&credential));
    assert_eq!(headers, [("x-goog-api-key", "abc-1".to_owned())]);
}
