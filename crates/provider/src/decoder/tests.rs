#![expect(clippy::needless_pass_by_value, reason = "json values read better by value")]

use super::*;
use crate::script::Script;
use serde_json::json;
use std::sync::Arc;

fn spec(dialect: Dialect) -> ModelSpec {
    ModelSpec {
        dialect,
        ..ModelSpec::scripted("m", Arc::new(Script::builtin()))
    }
}

fn decode(dialect: Dialect, bytes: &[u8]) -> Result<ModelReply, ModelError> {
    let mut decoder = Decoder::new(&spec(dialect))?;
    let mut events = Vec::new();
    for chunk in bytes.chunks(7) {
        decoder.feed(chunk, &mut events)?;
    }
    decoder.finish(&mut events)
}

fn frames(frames: &[Value]) -> String {
    frames.iter().map(|frame| format!("data: {frame}\n\n")).collect()
}

fn anthropic(frames_: &[Value]) -> Result<ModelReply, ModelError> {
    decode(Dialect::Anthropic, frames(frames_).as_bytes())
}

fn chat(frames_: &[Value], tail: &str) -> Result<ModelReply, ModelError> {
    decode(Dialect::OpenaiChat, (frames(frames_) + tail).as_bytes())
}

fn start(id: &str) -> Value {
    json!({"type": "message_start", "message": {"id": id, "model": "claude", "usage": {"input_tokens": 10, "cache_read_input_tokens": 5, "output_tokens": 1}}})
}

fn begin(index: u64, block: Value) -> Value {
    json!({"type": "content_block_start", "index": index, "content_block": block})
}

fn grow(index: u64, delta: Value) -> Value {
    json!({"type": "content_block_delta", "index": index, "delta": delta})
}

fn stop(reason: &str) -> [Value; 2] {
    [
        json!({"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 20, "input_tokens": null}}),
        json!({"type": "message_stop"}),
    ]
}

fn transient(result: &Result<ModelReply, ModelError>) -> bool {
    result
        .as_ref()
        .is_err_and(|error| error.class == FailureClass::Transient)
}

#[test]
fn anthropic_blocks_are_put_together() {
    let tool = |id: &str, name: &str| json!({"type": "tool_use", "id": id, "name": name, "input": {}});
    let mut all = vec![
        start("msg_1"),
        json!({"type": "ping"}),
        json!({"type": "future_event", "x": 1}),
        begin(0, json!({"type": "thinking", "thinking": "", "signature": ""})),
        grow(0, json!({"type": "thinking_delta", "thinking": "hm"})),
        grow(0, json!({"type": "signature_delta", "signature": "sig"})),
        begin(1, json!({"type": "redacted_thinking", "data": "xyz"})),
        begin(2, json!({"type": "text", "text": ""})),
        grow(2, json!({"type": "text_delta", "text": "Hel"})),
        grow(2, json!({"type": "text_delta", "text": "lo"})),
        grow(2, json!({"type": "future_delta", "x": 1})),
        begin(3, tool("toolu_1", "Read")),
        grow(3, json!({"type": "input_json_delta", "partial_json": "{\"p\""})),
        grow(3, json!({"type": "input_json_delta", "partial_json": ":1}"})),
        begin(4, tool("toolu_2", "Ls")),
        grow(4, json!({"type": "input_json_delta", "partial_json": ""})),
    ];
    all.extend(stop("tool_use"));
    let raw = |value: Value| Some(value.to_string());
    let usage = Usage {
        input: 10,
        output: 20,
        cache_read: 5,
        ..Usage::default()
    };
    let reply = ModelReply {
        content: vec![
            Block::Thinking {
                text: "hm".into(),
                raw: raw(json!({"type": "thinking", "thinking": "hm", "signature": "sig"})),
            },
            Block::Thinking {
                text: String::new(),
                raw: raw(json!({"type": "redacted_thinking", "data": "xyz"})),
            },
            Block::text("Hello"),
            Block::ToolUse {
                id: "toolu_1".into(),
                name: "Read".into(),
                input: json!({"p": 1}),
            },
            Block::ToolUse {
                id: "toolu_2".into(),
                name: "Ls".into(),
                input: json!({}),
            },
        ],
        stop_reason: StopReason::ToolUse,
        usage,
        cost_usd: None,
        model: "claude".into(),
        request_id: Some("msg_1".into()),
    };
    assert_eq!(anthropic(&all), Ok(reply));
}

#[test]
fn i4_an_answer_without_its_end_is_a_failure() {
    let cut = [
        start("a"),
        begin(
            0,
            json!({"type": "tool_use", "id": "t", "name": "Bash", "input": {}}),
        ),
    ];
    assert!(transient(&anthropic(&cut)));
    let chunk =
        json!({"id": "c", "choices": [{"index": 0, "delta": {"content": "hi"}, "finish_reason": null}]});
    assert!(transient(&chat(&[chunk], "")));
    assert!(transient(&chat(&[], "data: [DONE]\n\n")));
    assert!(transient(&chat(&[], "")));
}

#[test]
fn two_spliced_answers_are_a_failure_and_a_repeated_start_is_not() {
    let two = [start("a"), start("b")];
    assert!(transient(&anthropic(&two)));
    let mut same = vec![start("a"), start("a")];
    same.extend(stop("end_turn"));
    assert!(anthropic(&same).is_ok());
    let chunk = |id: &str, finish: Value| json!({"id": id, "choices": [{"index": 0, "delta": {"content": "x"}, "finish_reason": finish}]});
    assert!(transient(&chat(
        &[chunk("a", json!("stop")), chunk("b", Value::Null)],
        "data: [DONE]\n\n"
    )));
}

#[test]
fn a_call_cut_off_by_the_output_limit_is_told_as_such() {
    let mut all = vec![
        start("a"),
        begin(
            0,
            json!({"type": "tool_use", "id": "t", "name": "Write", "input": {}}),
        ),
        grow(
            0,
            json!({"type": "input_json_delta", "partial_json": "{\"content\":\"ab"}),
        ),
    ];
    all.extend(stop("max_tokens"));
    let reply = anthropic(&all).unwrap();
    let cut = Block::ToolUse {
        id: "t".into(),
        name: "Write".into(),
        input: json!("{\"content\":\"ab"),
    };
    assert_eq!(
        (reply.stop_reason, reply.content),
        (StopReason::MaxTokens, vec![cut])
    );
}

#[test]
fn errors_inside_a_stream_end_it_with_their_class() {
    let overloaded = json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}});
    assert_eq!(
        anthropic(&[start("a"), overloaded]).unwrap_err().class,
        FailureClass::Overloaded
    );
    let quota = json!({"error": {"code": "insufficient_quota", "message": "pay"}});
    assert_eq!(
        chat(&[quota], "").unwrap_err().class,
        FailureClass::QuotaExhausted
    );
    assert!(transient(&chat(&[], "data: {\"choices\":[{\n\n")));
}

#[test]
fn chat_chunks_are_put_together() {
    let delta = |delta: Value| json!({"id": "c-1", "model": "gpt", "choices": [{"index": 0, "delta": delta, "finish_reason": null}]});
    let all = [
        delta(json!({"role": "assistant", "content": "", "reasoning_content": "so"})),
        delta(json!({"content": "Hel"})),
        delta(json!({"content": "lo"})),
        delta(
            json!({"tool_calls": [{"index": 0, "id": "x", "function": {"name": "Read", "arguments": ""}}]}),
        ),
        delta(json!({"tool_calls": [{"index": 0, "function": {"arguments": "{\"p\":1}"}}]})),
        json!({"id": "c-1", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}),
        json!({"id": "c-1", "choices": [], "usage": {"prompt_tokens": 30, "completion_tokens": 9, "total_tokens": 39,
            "prompt_tokens_details": {"cached_tokens": 10}, "completion_tokens_details": {"reasoning_tokens": 4}}}),
    ];
    let reply = ModelReply {
        content: vec![
            Block::Thinking {
                text: "so".into(),
                raw: Some(r#"{"reasoning_content":"so"}"#.into()),
            },
            Block::text("Hello"),
            Block::ToolUse {
                id: "x".into(),
                name: "Read".into(),
                input: json!({"p": 1}),
            },
        ],
        stop_reason: StopReason::ToolUse,
        usage: Usage {
            input: 20,
            output: 9,
            cache_read: 10,
            cache_write: 0,
            reasoning: 4,
        },
        cost_usd: None,
        model: "gpt".into(),
        request_id: Some("c-1".into()),
    };
    assert_eq!(chat(&all, ": done\n\ndata: [DONE]\n\n"), Ok(reply.clone()));
    assert_eq!(chat(&all, ""), Ok(reply), "the finish reason is enough");
}

#[test]
fn finish_reasons_have_their_meaning() {
    let check = |reason: &str, expected: StopReason| {
        let chunk = json!({"choices": [{"delta": {"content": "x"}, "finish_reason": reason}]});
        assert_eq!(
            chat(&[chunk], "").map(|reply| reply.stop_reason),
            Ok(expected),
            "{reason}"
        );
    };
    check("stop", StopReason::EndTurn);
    check("length", StopReason::MaxTokens);
    check("tool_calls", StopReason::EndTurn);
    check("content_filter", StopReason::ContentFilter);
    check("model_context_window_exceeded", StopReason::ContextWindow);
    check("something_new", StopReason::Other);
    let cut = json!({"choices": [{"delta": {"content": "x"}, "finish_reason": "tool_calls", "native_finish_reason": "MAX_TOKENS"}]});
    assert_eq!(
        chat(&[cut], "").map(|reply| reply.stop_reason),
        Ok(StopReason::MaxTokens)
    );
    let starved = json!({"choices": [{"delta": {}, "finish_reason": "insufficient_system_resource"}]});
    assert_eq!(chat(&[starved], "").unwrap_err().class, FailureClass::Overloaded);
}

#[test]
fn content_parts_and_refusals_are_words_too() {
    let parts = json!([{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}, {"type": "text", "text": "hi"}]);
    let chunk = json!({"choices": [{"delta": {"content": parts}, "finish_reason": "stop"}]});
    let content = vec![
        Block::Thinking {
            text: "hm".into(),
            raw: None,
        },
        Block::text("hi"),
    ];
    assert_eq!(chat(&[chunk], "").unwrap().content, content);
    let refusal = json!({"choices": [{"delta": {"refusal": "no"}, "finish_reason": "stop"}]});
    let reply = chat(&[refusal], "").unwrap();
    assert_eq!(
        (reply.stop_reason, reply.content),
        (StopReason::Refusal, vec![Block::text("no")])
    );
}

#[test]
fn pieces_carry_the_number_of_their_block() {
    let mut decoder = Decoder::new(&spec(Dialect::OpenaiChat)).unwrap();
    let mut events = Vec::new();
    let chunk = json!({"choices": [{"delta": {"reasoning": "hm", "content": "hi", "tool_calls": [
        {"index": 0, "id": "x", "function": {"name": "Ls", "arguments": "{}"}}]}}]});
    let progress = decoder.feed(frames(&[chunk]).as_bytes(), &mut events);
    assert_eq!(progress, Ok(Progress::Moved));
    assert_eq!(
        events,
        [
            ModelEvent::ThinkingDelta {
                block: 0,
                text: "hm".into()
            },
            ModelEvent::TextDelta {
                block: 1,
                text: "hi".into()
            },
            ModelEvent::ToolStart {
                block: 2,
                name: "Ls".into()
            },
            ModelEvent::ToolInputDelta {
                block: 2,
                text: "{}".into()
            },
        ]
    );
}

#[test]
fn comments_and_pings_are_life_but_no_progress() {
    let mut decoder = Decoder::new(&spec(Dialect::Anthropic)).unwrap();
    let mut events = Vec::new();
    assert_eq!(decoder.feed(b"data: {\"ty", &mut events), Ok(Progress::Nothing));
    assert_eq!(
        decoder.feed(b"pe\":\"ping\"}\n\n: x\n", &mut events),
        Ok(Progress::Alive)
    );
    assert_eq!(
        decoder.feed(frames(&[start("a")]).as_bytes(), &mut events),
        Ok(Progress::Moved)
    );
}

#[test]
fn the_price_gives_the_cost() {
    let price = Price {
        input: 1.0,
        output: 10.0,
        cache_read: 0.0,
        cache_write: 0.0,
    };
    let spec = ModelSpec {
        price: Some(price),
        ..spec(Dialect::OpenaiChat)
    };
    let mut decoder = Decoder::new(&spec).unwrap();
    let chunk = json!({"choices": [{"delta": {"content": "x"}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 1000, "completion_tokens": 100}});
    decoder
        .feed(frames(&[chunk]).as_bytes(), &mut Vec::new())
        .unwrap();
    assert_eq!(decoder.finish(&mut Vec::new()).unwrap().cost_usd, Some(0.002));
}
