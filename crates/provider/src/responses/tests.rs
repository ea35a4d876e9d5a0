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

const OPENAI: &str = "https://api.openai.com/v1";
const REASONING: &str = r#"{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"hm"}],"encrypted_content":"e/+="}"#;

fn spec(base_url: &str) -> ModelSpec {
    ModelSpec {
        dialect: Dialect::OpenaiResponses,
        base_url: base_url.into(),
        model: "m-1".into(),
        max_output: 100,
        ..ModelSpec::scripted("m", Arc::new(Script::builtin()))
    }
}

fn thinker(base_url: &str) -> ModelSpec {
    let mut spec = spec(base_url);
    spec.capabilities.thinking = ThinkingForm::Effort;
    spec.capabilities.thinking_levels = vec![ThinkingLevel::Low, ThinkingLevel::High, ThinkingLevel::Max];
    spec
}

fn watched(frames: &[Value]) -> Result<(ModelReply, Vec<ModelEvent>), ModelError> {
    let stream: String = frames.iter().map(|frame| format!("data: {frame}\n\n")).collect();
    let mut decoder = Decoder::new(&spec(""), &[])?;
    let mut events = Vec::new();
    for chunk in stream.as_bytes().chunks(7) {
        decoder.feed(chunk, &mut events)?;
    }
    Ok((decoder.finish(&mut events)?, events))
}

fn decode(frames: &[Value]) -> Result<ModelReply, ModelError> {
    watched(frames).map(|(reply, _)| reply)
}

fn whole(body: Value) -> Result<ModelReply, ModelError> {
    Decoder::new(&spec(""), &[])?.whole(body.to_string().as_bytes(), &mut Vec::new())
}

fn created(id: &str) -> Value {
    json!({"type": "response.created", "response": {"id": id, "model": "m-1-x", "status": "in_progress", "error": null, "output": []}})
}

fn on(kind: &str, index: u64, mut fields: Value) -> Value {
    fields["type"] = json!(format!("response.{kind}"));
    fields["output_index"] = json!(index);
    fields
}

fn added(index: u64, item: Value) -> Value {
    on("output_item.added", index, json!({ "item": item }))
}

fn done(index: u64, item: Value) -> Value {
    on("output_item.done", index, json!({ "item": item }))
}

fn end(kind: &str, mut fields: Value) -> Value {
    fields["id"] = json!("resp_1");
    fields["model"] = json!("m-1-x");
    json!({ "type": format!("response.{kind}"), "response": fields })
}

fn completed() -> Value {
    end("completed", json!({"status": "completed", "output": []}))
}

fn text(words: &str) -> Value {
    json!({"type": "message", "id": "msg_1", "role": "assistant", "content": [{"type": "output_text", "text": words}]})
}

fn call(id: &str, arguments: Value) -> Value {
    json!({"type": "function_call", "id": format!("fc_{id}"), "call_id": id, "name": "Read", "arguments": arguments})
}

fn used(id: &str, input: Value) -> Block {
    Block::ToolUse {
        id: id.into(),
        name: "Read".into(),
        input,
    }
}

fn closed(text: &str, raw: &str) -> Block {
    Block::Thinking {
        text: text.into(),
        raw: Some(raw.into()),
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

fn usage() -> Value {
    json!({
        "input_tokens": 100,
        "input_tokens_details": {"cached_tokens": 60, "cache_write_tokens": 10},
        "output_tokens": 50,
        "output_tokens_details": {"reasoning_tokens": 40},
        "cost_in_usd_ticks": 25_000_000_u64,
    })
}

fn reasoning() -> Value {
    serde_json::from_str(REASONING).unwrap()
}

fn said() -> Value {
    let mut message = text("Reading both.");
    message["phase"] = json!("commentary");
    message
}

/// An answer with every kind of item.
fn two_calls() -> Vec<Value> {
    let piece = |kind: &str, index: u64, delta: &str| on(kind, index, json!({ "delta": delta }));
    vec![
        created("resp_1"),
        json!({"type": "response.in_progress", "response": {"id": "resp_1"}}),
        added(
            0,
            json!({"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "half"}),
        ),
        on("reasoning_summary_part.added", 0, json!({})),
        piece("reasoning_summary_text.delta", 0, "hm"),
        done(0, reasoning()),
        added(1, json!({"type": "message", "id": "msg_1", "content": []})),
        piece("output_text.delta", 1, "Reading "),
        piece("output_text.delta", 1, "both."),
        on("output_text.done", 1, json!({"text": "Reading both."})),
        done(1, said()),
        added(2, call("a", json!(""))),
        added(3, call("b", json!(""))),
        piece("function_call_arguments.delta", 3, "{}"),
        piece("function_call_arguments.delta", 2, "{\"p\":1}"),
        on(
            "function_call_arguments.done",
            2,
            json!({"arguments": "{\"p\":1}"}),
        ),
        done(3, call("b", json!("{}"))),
        done(2, call("a", json!("{\"p\":1}"))),
        end(
            "completed",
            json!({"status": "completed", "usage": usage(), "output": [{}, {}, {}, {}]}),
        ),
    ]
}

#[test]
fn a_stream_becomes_the_items_that_it_finished_and_the_pieces_that_it_showed() {
    let (reply, events) = watched(&two_calls()).unwrap();
    let expected = ModelReply {
        content: vec![
            closed("hm", REASONING),
            closed("", r#"{"type":"message","phase":"commentary"}"#),
            Block::text("Reading both."),
            used("a", json!({"p": 1})),
            used("b", json!({})),
        ],
        stop_reason: StopReason::ToolUse,
        usage: Usage {
            input: 30,
            output: 50,
            cache_read: 60,
            cache_write: 10,
            cache_write_1h: 0,
            reasoning: 40,
        },
        cost_usd: Some(0.0025),
        model: "m-1-x".into(),
        request_id: Some("resp_1".into()),
        reading: Reading::default(),
    };
    assert_eq!(reply, expected);
    let seen = [
        thought(0, "hm"),
        words(1, "Reading "),
        words(1, "both."),
        start(2, "Read"),
        start(3, "Read"),
        input_of(3, "{}"),
        input_of(2, "{\"p\":1}"),
    ];
    assert_eq!(events, seen);
}

#[test]
fn a_whole_answer_is_the_same_as_its_stream() {
    let output = json!([
        reasoning(),
        said(),
        call("a", json!({"p": 1})),
        call("b", json!(""))
    ]);
    let body = json!({"id": "resp_1", "object": "response", "model": "m-1-x", "status": "completed", "error": null, "output": output, "usage": usage()});
    let mut events = Vec::new();
    let decoder = Decoder::new(&spec(""), &[]).unwrap();
    let reply = decoder.whole(body.to_string().as_bytes(), &mut events).unwrap();
    let content = [
        closed("hm", REASONING),
        closed("", r#"{"type":"message","phase":"commentary"}"#),
        Block::text("Reading both."),
        used("a", json!({"p": 1})),
        used("b", json!({})),
    ];
    assert_eq!(reply.content, content);
    assert_eq!((reply.stop_reason, reply.usage.input), (StopReason::ToolUse, 30));
    assert_eq!(
        events
            .iter()
            .filter(|event| matches!(event, ModelEvent::TextDelta { .. }))
            .count(),
        1
    );
    assert_eq!(
        class(whole(json!({"id": "resp_1"}))),
        Some(FailureClass::Transient)
    );
    assert_eq!(
        class(whole(json!({"status": "queued", "output": []}))),
        Some(FailureClass::Transient)
    );
    let failed = json!({"status": "failed", "output": [], "error": {"code": "rate_limit_exceeded", "message": "slow"}});
    assert_eq!(class(whole(failed)), Some(FailureClass::RateLimited));
}

#[test]
fn no_single_lost_or_repeated_event_but_the_last_changes_the_answer() {
    let mut frames = two_calls();
    let listed = json!([
        reasoning(),
        said(),
        call("a", json!("{\"p\":1}")),
        call("b", json!("{}"))
    ]);
    frames.last_mut().unwrap()["response"]["output"] = listed;
    let whole = decode(&frames);
    for at in 0..frames.len() - 1 {
        let (mut lost, mut repeated) = (frames.clone(), frames.clone());
        lost.remove(at);
        repeated.insert(at, frames[at].clone());
        assert_eq!(decode(&lost), whole, "without {}", frames[at]);
        assert_eq!(decode(&repeated), whole, "twice {}", frames[at]);
    }
}

#[test]
fn what_the_end_lists_counts_where_items_were_missed() {
    let listed = json!({"status": "completed", "output": [reasoning(), text("hi")]});
    let expected = [closed("hm", REASONING), Block::text("hi")];
    let only_end = decode(&[created("resp_1"), end("completed", listed.clone())]).unwrap();
    assert_eq!(only_end.content, expected);
    // Here the final list numbers the items differently.
    let shifted = decode(&[created("resp_1"), done(5, text("hi")), end("completed", listed)]).unwrap();
    assert_eq!(shifted.content, expected);
}

#[test]
fn an_item_that_is_never_done_is_what_was_shown_of_it() {
    let unnumbered = |kind: &str, mut fields: Value| {
        fields["type"] = json!(format!("response.{kind}"));
        fields
    };
    let frames = [
        unnumbered("output_text.delta", json!({"delta": "hi"})),
        unnumbered(
            "output_item.added",
            json!({"item": {"type": "function_call", "id": "fc_1", "name": "Read"}}),
        ),
        unnumbered(
            "function_call_arguments.delta",
            json!({"item_id": "fc_1", "delta": "{\"p\":1}"}),
        ),
        completed(),
    ];
    let reply = decode(&frames).unwrap();
    assert_eq!(reply.content, [Block::text("hi"), used("fc_1", json!({"p": 1}))]);
    let frames = [
        unnumbered("output_item.added", json!({"item": text("")})),
        unnumbered("output_item.done", json!({"item": text("hi")})),
        unnumbered("output_item.done", json!({"item": call("a", json!("{}"))})),
        completed(),
    ];
    assert_eq!(
        decode(&frames).unwrap().content,
        [Block::text("hi"), used("a", json!({}))]
    );
}

#[test]
fn reasoning_without_a_summary_is_shown_as_it_is_and_paragraphs_stay_apart() {
    let item = json!({"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": "one"}, {"type": "reasoning_text", "text": "two"}]});
    let reply = decode(&[created("resp_1"), done(0, item.clone()), completed()]).unwrap();
    assert_eq!(reply.content, [closed("one\n\ntwo", &item.to_string())]);
    let frames = [
        on("reasoning_summary_part.added", 0, json!({})),
        on("reasoning_summary_text.delta", 0, json!({"delta": "one"})),
        on("reasoning_summary_part.added", 0, json!({})),
        on("reasoning_summary_text.delta", 0, json!({"delta": "two"})),
        completed(),
    ];
    let shown = Block::Thinking {
        text: "one\n\ntwo".into(),
        raw: None,
    };
    assert_eq!(decode(&frames).unwrap().content, [shown]);
}

#[test]
fn an_answer_that_was_cut_says_why() {
    let check = |reason: Value, expected: StopReason| {
        let end = end(
            "incomplete",
            json!({"status": "incomplete", "incomplete_details": {"reason": reason}}),
        );
        let frames = [created("resp_1"), done(0, call("a", json!("{\"p\":"))), end];
        let reply = decode(&frames).unwrap();
        assert_eq!(
            (reply.content, reply.stop_reason),
            (vec![used("a", json!("{\"p\":"))], expected)
        );
    };
    check(json!("max_output_tokens"), StopReason::MaxTokens);
    check(json!("content_filter"), StopReason::ContentFilter);
    check(json!("something_new"), StopReason::Other);
}

#[test]
fn a_refusal_is_text_and_a_reason_to_stop() {
    let item = json!({"type": "message", "content": [{"type": "refusal", "refusal": "No."}]});
    let frames = [
        created("resp_1"),
        on("refusal.delta", 0, json!({"delta": "No."})),
        done(0, item),
        completed(),
    ];
    let (reply, events) = watched(&frames).unwrap();
    assert_eq!(
        (reply.content, reply.stop_reason),
        (vec![Block::text("No.")], StopReason::Refusal)
    );
    assert_eq!(events, [words(0, "No.")]);
}

#[test]
fn errors_inside_a_stream_are_understood_in_every_shape() {
    let check = |frame: Value, class: FailureClass, said: &str| {
        let error = decode(&[created("resp_1"), frame.clone()]).unwrap_err();
        assert_eq!((error.class, error.message.as_str()), (class, said), "{frame}");
    };
    let flat = json!({"type": "error", "code": "rate_limit_exceeded", "message": "try again in 1.3s", "param": null});
    check(flat, FailureClass::RateLimited, "try again in 1.3s");
    let nested = json!({"type": "error", "error": {"type": "insufficient_quota", "code": "insufficient_quota", "message": "no money"}});
    check(nested, FailureClass::QuotaExhausted, "no money");
    let failed = |error: Value| end("failed", json!({"status": "failed", "error": error}));
    check(
        failed(json!({"code": "context_length_exceeded", "message": "too long"})),
        FailureClass::ContextOverflow,
        "too long",
    );
    check(
        failed(json!({"code": "server_error", "message": "oops"})),
        FailureClass::Transient,
        "oops",
    );
    check(
        failed(Value::Null),
        FailureClass::Transient,
        "the provider ended the answer with an error",
    );
    check(
        created("resp_2"),
        FailureClass::Transient,
        "the stream contains two answers",
    );
    let wait =
        decode(&[json!({"type": "error", "code": "rate_limit_exceeded", "message": "try again in 1.3s"})]);
    assert_eq!(wait.unwrap_err().retry_after_ms, Some(1_300));
}

#[test]
fn what_a_failed_answer_cost_is_counted() {
    let failed = json!({
        "type": "response.failed",
        "response": { "id": "r", "error": null, "usage": { "input_tokens": 7, "output_tokens": 2 } },
    });
    let mut decoder = Decoder::new(&spec(""), &[]).unwrap();
    let fed = decoder.feed(format!("data: {failed}\n\n").as_bytes(), &mut Vec::new());
    assert!(fed.is_err());
    assert_eq!((decoder.usage().input, decoder.usage().output), (7, 2));
}

#[test]
fn i4_a_stream_without_its_end_is_no_answer() {
    let frames = [created("resp_1"), done(0, call("a", json!("{}")))];
    assert_eq!(class(decode(&frames)), Some(FailureClass::Transient));
    let mut decoder = Decoder::new(&spec(""), &[]).unwrap();
    decoder.feed(b"data: [DONE]\n\n", &mut Vec::new()).unwrap();
    assert_eq!(
        class(decoder.finish(&mut Vec::new())),
        Some(FailureClass::Transient)
    );
}

#[test]
fn an_answer_has_a_bound_on_its_items() {
    let items = |count: usize| {
        let mut frames: Vec<Value> = (0_u64..).take(count).map(|at| done(at, text("x"))).collect();
        frames.push(completed());
        decode(&frames).map(|reply| reply.content.len())
    };
    assert_eq!(items(MAX_BLOCKS), Ok(MAX_BLOCKS));
    assert_eq!(items(MAX_BLOCKS + 1).unwrap_err().class, FailureClass::Transient);
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

fn input(spec: &ModelSpec, content: Vec<Block>) -> Value {
    let mut body = body(
        spec,
        "",
        &[],
        &[message(Role::Assistant, content)],
        &Params::default(),
    );
    body["input"].take()
}

fn tool() -> ToolDef {
    ToolDef {
        name: "Read".into(),
        description: "Reads.".into(),
        schema: json!({"type": "object"}).into(),
    }
}

#[test]
fn a_request_has_everything_that_the_server_must_not_remember() {
    let result = Block::ToolResult {
        tool_use_id: "a".into(),
        content: "1".into(),
        is_error: false,
    };
    let messages = [
        message(Role::User, vec![Block::text("go"), image()]),
        message(
            Role::Assistant,
            vec![closed("hm", REASONING), used("a", json!({"p": 1}))],
        ),
        message(Role::User, vec![Block::text("and hurry"), result]),
    ];
    let schema = json!({"type": "object", "properties": {"x": {"type": "string"}}, "required": ["x"], "additionalProperties": false});
    let params = Params {
        tool_choice: ToolChoice::Only("Read"),
        parallel_tools: Some(false),
        max_output: Some(50),
        schema: Some(("answer", &schema)),
        cache_key: "s-1",
    };
    let spec = ModelSpec {
        temperature: Some(0.5),
        thinking: Some(ThinkingLevel::Medium),
        ..thinker(OPENAI)
    };
    let expected = json!({
        "model": "m-1",
        "store": false,
        "stream": true,
        "include": ["reasoning.encrypted_content"],
        "instructions": "Be kind.",
        "tools": [{"type": "function", "name": "Read", "description": "Reads.", "parameters": {"type": "object"}, "strict": false}],
        "input": [
            {"type": "message", "role": "user", "content": [
                {"type": "input_text", "text": "go"},
                {"type": "input_image", "detail": "auto", "image_url": "data:image/png;base64,aGk="},
            ]},
            reasoning(),
            {"type": "function_call", "call_id": "a", "name": "Read", "arguments": "{\"p\":1}"},
            {"type": "function_call_output", "call_id": "a", "output": "1"},
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "and hurry"}]},
        ],
        "max_output_tokens": 50,
        "temperature": 0.5,
        "reasoning": {"effort": "low", "summary": "auto"},
        "tool_choice": {"type": "function", "name": "Read"},
        "parallel_tool_calls": false,
        "text": {"format": {"type": "json_schema", "name": "answer", "schema": schema, "strict": true}},
        "prompt_cache_key": "s-1",
    });
    assert_eq!(body(&spec, "Be kind.", &[tool()], &messages, &params), expected);
}

#[test]
fn a_server_that_is_not_known_is_asked_for_nothing_special() {
    let mut spec = spec("http://127.0.0.1:8080/v1");
    spec.stream = false;
    spec.capabilities.images = false;
    spec.capabilities.structured_output = false;
    let schema = json!({});
    let params = Params {
        tool_choice: ToolChoice::Any,
        parallel_tools: Some(true),
        max_output: Some(1),
        schema: Some(("answer", &schema)),
        cache_key: "s-1",
    };
    let expected = json!({
        "model": "m-1",
        "store": false,
        "stream": false,
        "input": [
            {"type": "message", "role": "system", "content": [{"type": "input_text", "text": "Be kind."}]},
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "[image not available]"}]},
        ],
        "max_output_tokens": 16,
    });
    assert_eq!(
        body(
            &spec,
            "Be kind.",
            &[],
            &[message(Role::User, vec![image()])],
            &params
        ),
        expected
    );
}

#[test]
fn an_answer_goes_back_item_by_item_as_it_came() {
    let search = r#"{"type":"web_search_call","id":"ws_1","status":"completed"}"#;
    let content = vec![
        closed("hm", REASONING),
        closed("", search),
        closed("", r#"{"type":"message","phase":"commentary"}"#),
        Block::text("Reading."),
        used("a", json!("{\"p\":")),
        Block::text("Done."),
    ];
    let says = |words: &str| json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": words}]});
    let mut first = says("Reading.");
    first["phase"] = json!("commentary");
    let expected = json!([
        reasoning(),
        {"type": "web_search_call", "id": "ws_1", "status": "completed"},
        first,
        {"type": "function_call", "call_id": "a", "name": "Read", "arguments": r#"{"unparsed":"{\"p\":"}"#},
        says("Done."),
    ]);
    assert_eq!(input(&thinker(OPENAI), content.clone()), expected);
    let bytes = Responses
        .message(
            &thinker(OPENAI),
            &Message {
                role: Role::Assistant,
                content,
            },
            false,
        )
        .bytes;
    assert!(
        String::from_utf8(bytes).unwrap().starts_with(REASONING),
        "reasoning goes back byte for byte"
    );
}

#[test]
fn reasoning_goes_back_only_where_it_is_of_use() {
    let unkept = r#"{"type":"reasoning","id":"rs_1","summary":[]}"#;
    let count = |spec: &ModelSpec, raw: &str, tail: &[Block]| {
        let content = [&[closed("hm", raw)], tail].concat();
        input(spec, content).as_array().unwrap().len()
    };
    let text = [Block::text("hi")];
    assert_eq!(count(&thinker(OPENAI), REASONING, &text), 2);
    assert_eq!(count(&thinker(OPENAI), REASONING, &[]), 0);
    assert_eq!(count(&thinker(OPENAI), unkept, &text), 1);
    assert_eq!(count(&thinker("http://127.0.0.1/v1"), unkept, &text), 2);
    let mut without = thinker(OPENAI);
    without.compat.replay_reasoning = false;
    assert_eq!(count(&without, REASONING, &text), 1);
    // Opaque blocks of other dialects are left out.
    for foreign in [
        r#"{"type":"thinking","thinking":"hm","signature":"s"}"#,
        r#"{"type":"redacted_thinking","data":"x"}"#,
        r#"{"type":"server_tool_use","id":"x"}"#,
        r#"{"reasoning_content":"hm"}"#,
        r#"{"text":"hm","thought":true}"#,
        "no json",
    ] {
        assert_eq!(
            count(&thinker("http://127.0.0.1/v1"), foreign, &text),
            1,
            "{foreign}"
        );
    }
}

#[test]
fn a_thinking_level_becomes_the_nearest_that_the_model_takes() {
    let check = |level: ThinkingLevel, levels: &[ThinkingLevel], expected: Value| {
        let mut spec = thinker(OPENAI);
        spec.thinking = Some(level);
        spec.capabilities.thinking_levels = levels.to_vec();
        let body = body(&spec, "", &[], &[], &Params::default());
        assert_eq!(body["reasoning"], expected, "{level:?}");
    };
    let with = |effort: &str| json!({ "effort": effort, "summary": "auto" });
    check(ThinkingLevel::Off, &[], json!({"effort": "none"}));
    check(
        ThinkingLevel::Off,
        &[ThinkingLevel::Minimal, ThinkingLevel::High],
        with("minimal"),
    );
    check(
        ThinkingLevel::Max,
        &[ThinkingLevel::Low, ThinkingLevel::High],
        with("high"),
    );
    check(ThinkingLevel::Max, &[], with("xhigh"));
    let mut plain = spec(OPENAI);
    plain.thinking = Some(ThinkingLevel::High);
    assert_eq!(
        body(&plain, "", &[], &[], &Params::default()).get("reasoning"),
        None
    );
}

#[test]
fn a_schema_is_strict_only_when_it_says_everything() {
    let strict = |schema: Value| {
        let params = Params {
            schema: Some(("answer", &schema)),
            ..Params::default()
        };
        body(&spec(OPENAI), "", &[], &[], &params)["text"]["format"]["strict"].take()
    };
    let closed = json!({"type": "object", "properties": {"a": {"type": "array", "items": {"type": "string"}}}, "required": ["a"], "additionalProperties": false});
    assert_eq!(strict(closed.clone()), json!(true));
    let mut open = closed.clone();
    open["additionalProperties"] = json!(true);
    assert_eq!(strict(open), json!(false));
    let mut optional = closed.clone();
    optional["required"] = json!([]);
    assert_eq!(strict(optional), json!(false));
    let mut nested = closed;
    nested["properties"]["a"]["items"] = json!({"type": "object"});
    assert_eq!(strict(nested), json!(false));
}

#[test]
fn the_address_and_the_key_are_those_of_the_protocol() {
    let credential = crate::spec::Credential {
        name: "main".into(),
        found_in: "A_KEY".into(),
        secret: Secret::new("abc-1"),
    };
    assert_eq!(Responses.url(&spec("http://x/v1/")), "http://x/v1/responses");
    let headers = Responses.headers(&spec(OPENAI), Some(&credential));
    assert_eq!(headers, [("authorization", "Bearer abc-1".to_owned())]);
    assert_eq!(Responses.headers(&spec(OPENAI), None), []);
}
