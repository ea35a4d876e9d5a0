#![expect(clippy::needless_pass_by_value, reason = "json values read better by value")]

mod repairs;

use super::*;
use crate::script::Script;
use agentd_settings::Dialect;
use proptest::collection;
use proptest::prelude::{BoxedStrategy, Just, Strategy as _, any, prop_assert_eq, proptest};
use serde_json::json;
use std::sync::Arc;

fn spec(dialect: Dialect) -> ModelSpec {
    ModelSpec {
        dialect,
        ..ModelSpec::scripted("m", Arc::new(Script::builtin()))
    }
}

fn decode(dialect: Dialect, bytes: &[u8]) -> Result<ModelReply, ModelError> {
    let mut decoder = Decoder::new(&spec(dialect), &[])?;
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
        reading: agentd_protocol::Reading::default(),
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
            cache_write_1h: 0,
            reasoning: 4,
        },
        cost_usd: None,
        model: "gpt".into(),
        request_id: Some("c-1".into()),
        reading: agentd_protocol::Reading::default(),
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
            raw: Some(r#"{"content":[{"type":"thinking","thinking":[{"type":"text","text":"hm"}]}]}"#.into()),
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
    let mut decoder = Decoder::new(&spec(Dialect::OpenaiChat), &[]).unwrap();
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
    let mut decoder = Decoder::new(&spec(Dialect::Anthropic), &[]).unwrap();
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
fn an_empty_piece_is_life_but_no_progress() {
    let progress = |dialect: Dialect, text: String| {
        let mut decoder = Decoder::new(&spec(dialect), &[]).unwrap();
        decoder.feed(text.as_bytes(), &mut Vec::new())
    };
    let delta = |delta: Value| json!({"choices": [{"index": 0, "delta": delta, "finish_reason": null}]});
    let chat = |frame: Value| progress(Dialect::OpenaiChat, frames(&[frame]));
    assert_eq!(
        chat(delta(json!({"role": "assistant", "content": ""}))),
        Ok(Progress::Alive)
    );
    assert_eq!(chat(delta(json!({"content": "x"}))), Ok(Progress::Moved));
    let sealed = json!({"reasoning_details": [{"type": "reasoning.encrypted", "data": "x"}]});
    assert_eq!(chat(delta(sealed)), Ok(Progress::Moved));
    let ollama = |content: &str| {
        let line = json!({"message": {"content": content}, "done": false});
        progress(Dialect::Ollama, format!("{line}\n"))
    };
    assert_eq!(
        [ollama(""), ollama("x")],
        [Ok(Progress::Alive), Ok(Progress::Moved)]
    );
    let completion = |frame: Value| progress(Dialect::LlamaCompletion, frames(&[frame]));
    assert_eq!(
        completion(json!({"content": "", "stop": false})),
        Ok(Progress::Alive)
    );
    let reading = json!({"content": "", "stop": false, "prompt_progress": {"total": 9, "processed": 4}});
    assert_eq!(completion(reading), Ok(Progress::Moved));
}

#[test]
fn a_call_in_the_old_form_is_a_call() {
    let piece = |name: &str, arguments: &str| json!({"choices": [{"delta": {"function_call": {"name": name, "arguments": arguments}}}]});
    let end = json!({"choices": [{"delta": {}, "finish_reason": "function_call"}]});
    let reply = chat(&[piece("Read", "{\"p\""), piece("", ":1}"), end], "").unwrap();
    let call = Block::ToolUse {
        id: "call_1".into(),
        name: "Read".into(),
        input: json!({"p": 1}),
    };
    assert_eq!(
        (reply.stop_reason, reply.content),
        (StopReason::ToolUse, vec![call])
    );
}

proptest! {
    #[test]
    fn no_bytes_break_a_decoder_and_no_cut_changes_what_they_mean(
        pieces in collection::vec(any::<u8>().prop_flat_map(fragment), 0..12),
        cut in 1_usize..9,
    ) {
        let bytes = pieces.concat();
        for dialect in [Dialect::Anthropic, Dialect::OpenaiChat, Dialect::Ollama, Dialect::LlamaCompletion] {
            let decode = |cut: usize| {
                let mut decoder = Decoder::new(&spec(dialect), &[])?;
                for chunk in bytes.chunks(cut) {
                    decoder.feed(chunk, &mut Vec::new())?;
                }
                decoder.finish(&mut Vec::new())
            };
            prop_assert_eq!(decode(cut), decode(usize::MAX));
            let whole = Decoder::new(&spec(dialect), &[]).unwrap();
            let _ = whole.whole(&bytes, &mut Vec::new());
        }
    }
}

/// Frames and broken frames of all dialects.
fn fragment(kind: u8) -> BoxedStrategy<Vec<u8>> {
    let frame = |value: Value| Just(format!("data: {value}\n\n").into_bytes()).boxed();
    match kind % 12 {
        0 => frame(start("a")),
        1 => frame(begin(
            0,
            json!({"type": "tool_use", "id": "t", "name": "Ls", "input": {}}),
        )),
        2 => frame(grow(0, json!({"type": "input_json_delta", "partial_json": "{"}))),
        3 => frame(
            json!({"choices": [{"delta": {"content": [{"type": "thinking", "thinking": ["x", null]}]}}]}),
        ),
        4 => frame(
            json!({"choices": [{"delta": {"tool_calls": [{"index": 0, "function": {"arguments": "{}"}}]}, "finish_reason": "stop"}]}),
        ),
        5 => frame(json!({"content": "<thi", "stop": false})),
        6 => frame(json!({"content": "nk>x</think>", "stop": true, "tokens_evaluated": 1})),
        7 => Just(b"{\"message\":{\"content\":\"x\",\"tool_calls\":[{}]},\"done\":true}\n".to_vec()).boxed(),
        8 => frame(json!({"type": "message_stop"})),
        9 => Just(b"data: [DONE]\n\n: x\r\r\n".to_vec()).boxed(),
        10 => collection::vec(any::<u8>(), 0..20).boxed(),
        _ => frame(
            json!({"usage": {"prompt_tokens": -1, "completion_tokens": "x"}, "choices": [null, {"delta": 1}]}),
        ),
    }
}

#[test]
fn the_price_gives_the_cost() {
    let price = Price {
        input: 1.0,
        output: 10.0,
        cache_read: 0.0,
        cache_write: 0.0,
        cache_write_1h: 0.0,
    };
    let spec = ModelSpec {
        price: Some(price),
        ..spec(Dialect::OpenaiChat)
    };
    let mut decoder = Decoder::new(&spec, &[]).unwrap();
    let chunk = json!({"choices": [{"delta": {"content": "x"}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 1000, "completion_tokens": 100}});
    decoder
        .feed(frames(&[chunk]).as_bytes(), &mut Vec::new())
        .unwrap();
    assert_eq!(decoder.finish(&mut Vec::new()).unwrap().cost_usd, Some(0.002));
}

fn whole(dialect: Dialect, body: Value) -> Result<ModelReply, ModelError> {
    let decoder = Decoder::new(&spec(dialect), &[])?;
    decoder.whole(body.to_string().as_bytes(), &mut Vec::new())
}

#[test]
fn a_whole_anthropic_answer_is_the_streamed_one() {
    let mut all = vec![
        start("msg_1"),
        begin(0, json!({"type": "thinking", "thinking": "", "signature": ""})),
        grow(0, json!({"type": "thinking_delta", "thinking": "hm"})),
        grow(0, json!({"type": "signature_delta", "signature": "sig"})),
        begin(1, json!({"type": "text", "text": ""})),
        grow(1, json!({"type": "text_delta", "text": "Hello"})),
        begin(
            2,
            json!({"type": "tool_use", "id": "t", "name": "Read", "input": {}}),
        ),
        grow(
            2,
            json!({"type": "input_json_delta", "partial_json": "{\"p\":1}"}),
        ),
    ];
    all.extend(stop("tool_use"));
    let body = json!({"type": "message", "id": "msg_1", "model": "claude", "stop_reason": "tool_use",
        "content": [
            {"type": "thinking", "thinking": "hm", "signature": "sig"},
            {"type": "text", "text": "Hello"},
            {"type": "tool_use", "id": "t", "name": "Read", "input": {"p": 1}},
        ],
        "usage": {"input_tokens": 10, "cache_read_input_tokens": 5, "output_tokens": 20}});
    assert_eq!(whole(Dialect::Anthropic, body), anthropic(&all));
    assert!(transient(&whole(Dialect::Anthropic, json!({"type": "message"}))));
}

#[test]
fn a_whole_chat_answer_has_everything() {
    let details = json!([{"type": "reasoning.text", "text": "a"}, {"type": "reasoning.text", "text": "b"}]);
    let call = json!({"id": "x", "type": "function", "function": {"name": "Read", "arguments": "{\"p\":1}"}});
    let body = json!({"id": "c-1", "model": "gpt", "choices": [{"index": 0, "finish_reason": "tool_calls",
        "message": {"role": "assistant", "content": "Hello", "reasoning": "ab", "reasoning_details": details, "tool_calls": [call]}}],
        "usage": {"prompt_tokens": 30, "completion_tokens": 9}});
    let raw = json!({"reasoning_details": details, "reasoning": "ab"});
    let expected = ModelReply {
        content: vec![
            Block::Thinking {
                text: "ab".into(),
                raw: Some(raw.to_string()),
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
            input: 30,
            output: 9,
            ..Usage::default()
        },
        cost_usd: None,
        model: "gpt".into(),
        request_id: Some("c-1".into()),
        reading: agentd_protocol::Reading::default(),
    };
    assert_eq!(whole(Dialect::OpenaiChat, body), Ok(expected));
    assert!(transient(&whole(Dialect::OpenaiChat, json!({"choices": []}))));
}

#[test]
fn the_splinters_of_a_reasoning_detail_are_joined_until_it_is_signed() {
    let piece = |detail: Value| json!({"choices": [{"index": 0, "delta": {"reasoning_details": [detail]}}]});
    let text =
        |text: &str| piece(json!({"type": "reasoning.text", "text": text, "index": 0, "signature": null}));
    let sealed = json!({"type": "reasoning.encrypted", "data": "xyz", "index": 1});
    let all = [
        text("so "),
        text("it"),
        piece(json!({"type": "reasoning.text", "index": 0, "signature": "sig", "format": "f"})),
        text("next"),
        piece(sealed.clone()),
        piece(sealed.clone()),
        json!({"choices": [{"index": 0, "delta": {"content": "x"}, "finish_reason": "stop"}]}),
    ];
    let raw = json!({"reasoning_details": [
        {"type": "reasoning.text", "text": "so it", "index": 0, "signature": "sig", "format": "f"},
        {"type": "reasoning.text", "text": "next", "index": 0, "signature": null},
        sealed, sealed]});
    let thought = Block::Thinking {
        text: String::new(),
        raw: Some(raw.to_string()),
    };
    assert_eq!(chat(&all, "").unwrap().content, [thought, Block::text("x")]);
}

#[test]
fn an_answer_has_a_greatest_number_of_blocks() {
    let calls = |count: usize| {
        let call = |index: usize| json!({"choices": [{"delta": {"tool_calls": [{"index": index, "id": format!("c{index}"), "function": {"name": "Ls", "arguments": ""}}]}}]});
        let last = json!({"choices": [{"delta": {}, "finish_reason": "tool_calls"}]});
        let all: Vec<Value> = (0..count).map(call).chain([last]).collect();
        chat(&all, "").map(|reply| reply.content.len())
    };
    let error = || ModelError::transient("the answer has more than 4096 blocks");
    assert_eq!(calls(MAX_BLOCKS), Ok(MAX_BLOCKS));
    assert_eq!(calls(MAX_BLOCKS + 1), Err(error()));
    let blocks = |count: u64| {
        let mut all = vec![start("a")];
        all.extend((0..count).map(|index| begin(index, json!({"type": "redacted_thinking", "data": ""}))));
        all.extend(stop("end_turn"));
        anthropic(&all).map(|reply| reply.content.len())
    };
    assert_eq!(blocks(4_096), Ok(4_096));
    assert_eq!(blocks(4_097), Err(error()));
}

#[test]
fn more_calls_in_one_frame_than_anybody_could_run_are_refused() {
    let call = r#"{"function":{"name":"Ls","arguments":{}}}"#;
    let calls = vec![call; 50_000].join(",");
    let frame = format!("data: {{\"choices\":[{{\"delta\":{{\"tool_calls\":[{calls}]}}}}]}}\n\n");
    let answer = decode(Dialect::OpenaiChat, frame.as_bytes());
    assert_eq!(
        answer,
        Err(ModelError::transient("the answer has more than 4096 blocks"))
    );
}

#[test]
fn a_line_without_end_is_refused() {
    let mut decoder = Decoder::new(&spec(Dialect::OpenaiChat), &[]).unwrap();
    let (piece, mut fed) = (vec![b'x'; 1 << 20], Ok(Progress::Nothing));
    let mut taken = 0;
    while fed.is_ok() && taken < 1_000 {
        fed = decoder.feed(&piece, &mut Vec::new());
        taken += 1;
    }
    let error = ModelError::transient("a line or an event of the stream is longer than 8 MiB");
    assert_eq!((fed, taken), (Err(error), 9));
}

#[test]
fn an_answer_without_end_is_refused() {
    let mut decoder = Decoder::new(&spec(Dialect::OpenaiChat), &[]).unwrap();
    let (piece, mut fed, mut taken) = (
        format!(":{}\n", "x".repeat(1_022)).repeat(1 << 10),
        Ok(Progress::Nothing),
        0,
    );
    while fed.is_ok() && taken < 100 {
        fed = decoder.feed(piece.as_bytes(), &mut Vec::new());
        taken += 1;
    }
    assert_eq!(
        (fed, taken),
        (Err(ModelError::transient("the answer is longer than 64 MiB")), 65)
    );
}

#[test]
fn long_arguments_cost_no_more_than_their_length() {
    let begun = json!({"choices": [{"delta": {"tool_calls": [{"index": 0, "function": {"name": "Write", "arguments": "{\"c\":\""}}]}}]});
    let piece = json!({"choices": [{"delta": {"tool_calls": [{"index": 0, "function": {"arguments": "0123456789"}}]}}]});
    let end = json!({"choices": [{"delta": {"tool_calls": [{"index": 0, "function": {"arguments": "\"}"}}]}, "finish_reason": "stop"}]});
    let mut all = vec![begun];
    all.extend(vec![piece; 20_000]);
    all.push(end);
    let reply = chat(&all, "").unwrap();
    let Some(Block::ToolUse { input, .. }) = reply.content.first() else {
        panic!("{:?}", reply.content)
    };
    assert_eq!(
        input.pointer("/c").and_then(Value::as_str).map(str::len),
        Some(200_000)
    );
}

#[test]
fn an_error_after_a_good_beginning_voids_the_answer() {
    let said = json!({"choices": [{"delta": {"content": "x"}, "finish_reason": "stop"}]});
    for (error, class) in [
        (json!({"error": "Internal server error"}), FailureClass::Transient),
        (
            json!({"error": {"message": "slow", "code": 429}}),
            FailureClass::RateLimited,
        ),
        (
            json!({"error": {"message": "busy", "type": "overloaded_error"}}),
            FailureClass::Overloaded,
        ),
    ] {
        assert_eq!(chat(&[said.clone(), error], "").unwrap_err().class, class);
    }
    let late = [
        start("a"),
        json!({"type": "error", "error": {"type": "api_error", "message": "broke"}}),
    ];
    assert!(transient(&anthropic(&late)));
}

/// A finished answer of each dialect, and whether its last frame is a terminal marker.
fn finished_answers() -> [(Dialect, String, bool); 6] {
    let mut anthropic = vec![
        start("a"),
        begin(0, json!({"type": "text", "text": ""})),
        grow(0, json!({"type": "text_delta", "text": "hi"})),
    ];
    anthropic.extend(stop("end_turn"));
    let chat = [
        json!({"id": "c", "choices": [{"index": 0, "delta": {"content": "hi"}, "finish_reason": "stop"}]}),
        json!({"id": "c", "choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 1}}),
    ];
    let item = json!({"type": "message", "content": [{"type": "output_text", "text": "hi"}]});
    let responses = [
        json!({"type": "response.created", "response": {"id": "r"}}),
        json!({"type": "response.output_item.done", "output_index": 0, "item": item}),
        json!({"type": "response.completed", "response": {"id": "r", "status": "completed", "output": [item]}}),
    ];
    let gemini = [
        json!({"responseId": "g", "candidates": [{"content": {"parts": [{"text": "hi"}]}, "finishReason": "STOP"}]}),
    ];
    let completion = [
        json!({"content": "hi", "stop": false}),
        json!({"content": "", "stop": true, "stop_type": "eos"}),
    ];
    let ollama = [
        json!({"message": {"content": "hi"}, "done": false}),
        json!({"message": {"content": ""}, "done": true, "done_reason": "stop"}),
    ];
    let lines = ollama.iter().map(|line| format!("{line}\n")).collect();
    [
        (Dialect::Anthropic, frames(&anthropic), true),
        (Dialect::OpenaiChat, frames(&chat), false),
        (Dialect::OpenaiResponses, frames(&responses), true),
        (Dialect::Gemini, frames(&gemini), false),
        (Dialect::LlamaCompletion, frames(&completion), true),
        (Dialect::Ollama, lines, true),
    ]
}

fn decode_cut(dialect: Dialect, bytes: &[u8], at: usize) -> Result<ModelReply, ModelError> {
    let mut decoder = Decoder::new(&spec(dialect), &[])?;
    let mut events = Vec::new();
    for chunk in bytes.chunks(at) {
        decoder.feed(chunk, &mut events)?;
    }
    decoder.finish(&mut events)
}

#[test]
fn what_follows_the_end_is_ignored_in_every_dialect_however_it_is_cut() {
    let done = "data: [DONE]\n\n";
    for (dialect, answer, ends_itself) in finished_answers() {
        let plain = decode(dialect, answer.as_bytes()).unwrap();
        assert_eq!(plain.content, [Block::text("hi")], "{dialect:?}");
        let line = if dialect == Dialect::Ollama {
            "[DONE]\n"
        } else {
            done
        };
        let tails = [
            line.to_owned(),
            format!("{line}{line}"),
            format!("{line}event: error\ndata: {{\"error\": {{\"message\": \"late\"}}}}\n\n"),
            format!("{line}{{\"error\": \"late\"}}\n"),
            format!("{line}data: no json\n\n{answer}"),
        ];
        for tail in tails {
            let all = format!("{answer}{tail}");
            for at in [1, 7, 64, all.len()] {
                assert_eq!(
                    decode_cut(dialect, all.as_bytes(), at).as_ref(),
                    Ok(&plain),
                    "{dialect:?} {tail}"
                );
            }
        }
        // A dialect with its own terminal marker ignores `[DONE]`.
        let cut = &answer[..answer.len() - 2];
        let cut = &cut[..cut.rfind('\n').unwrap_or_default()];
        let early = format!("{cut}\n\n{line}{}", &answer[cut.len()..]);
        if ends_itself {
            assert_eq!(decode(dialect, early.as_bytes()), Ok(plain), "{dialect:?}");
            assert!(
                transient(&decode(dialect, format!("{cut}\n\n{line}").as_bytes())),
                "{dialect:?}"
            );
        }
    }
}

#[test]
fn a_call_without_name_and_arguments_is_no_call() {
    let function = json!({"name": "", "arguments": ""});
    let whole = |message: Value| {
        let body = json!({"id": "c", "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]});
        let decoder = Decoder::new(&spec(Dialect::OpenaiChat), &[]).unwrap();
        decoder
            .whole(body.to_string().as_bytes(), &mut Vec::new())
            .unwrap()
    };
    let delta = json!({"id": "c", "choices": [{"index": 0, "delta": {"content": "hi", "function_call": function}, "finish_reason": "tool_calls"}]});
    let mut tool_use = vec![
        start("a"),
        begin(0, json!({"type": "text", "text": "hi"})),
        begin(1, json!({"type": "tool_use", "id": "t", "name": "", "input": {}})),
    ];
    tool_use.extend(stop("tool_use"));
    let gemini = [json!({"candidates": [{"content": {"parts": [
        {"text": "hi"}, {"functionCall": {}, "thoughtSignature": "s"}, {"functionCall": {"name": "", "args": {}}},
    ]}, "finishReason": "STOP"}]})];
    let ollama = json!({"message": {"content": "hi", "tool_calls": [{"function": {"name": "", "arguments": {}}}]}, "done": true, "done_reason": "stop"});
    let call = json!({"type": "function_call", "call_id": "c", "name": "", "arguments": ""});
    let words = json!({"type": "message", "content": [{"type": "output_text", "text": "hi"}]});
    let responses = [json!({"type": "response.completed", "response": {"id": "r", "output": [words, call]}})];
    for reply in [
        whole(json!({"content": "hi", "function_call": function})),
        whole(json!({"content": "hi", "tool_calls": [{"id": "c1", "function": function}]})),
        chat(&[delta], "data: [DONE]\n\n").unwrap(),
        anthropic(&tool_use).unwrap(),
        decode(Dialect::Gemini, frames(&gemini).as_bytes()).unwrap(),
        decode(Dialect::Ollama, ollama.to_string().as_bytes()).unwrap(),
        decode(Dialect::OpenaiResponses, frames(&responses).as_bytes()).unwrap(),
    ] {
        assert_eq!(reply.content, [Block::text("hi")]);
        assert_eq!(reply.stop_reason, StopReason::EndTurn);
    }
    // A call with a name or arguments is a real call: the model is told what is wrong with it.
    let named = whole(json!({"tool_calls": [{"id": "c1", "function": {"name": "Ls", "arguments": ""}}]}));
    assert_eq!(named.stop_reason, StopReason::ToolUse);
    let nameless =
        whole(json!({"tool_calls": [{"id": "c1", "function": {"name": "", "arguments": "{\"a\":1}"}}]}));
    assert_eq!(nameless.stop_reason, StopReason::ToolUse);
}

#[test]
fn an_answer_inside_the_first_event_is_kept() {
    let mut first = start("a");
    first["message"]["content"] = json!([
        {"type": "text", "text": "Hel"},
        {"type": "tool_use", "id": "t", "name": "Ls", "input": {"path": "."}},
    ]);
    first["message"]["stop_reason"] = json!("tool_use");
    let end = json!({"type": "message_stop"});
    let reply = anthropic(&[
        first.clone(),
        first.clone(),
        grow(0, json!({"type": "text_delta", "text": "lo"})),
        end,
    ])
    .unwrap();
    let call = Block::ToolUse {
        id: "t".into(),
        name: "Ls".into(),
        input: json!({"path": "."}),
    };
    assert_eq!(reply.content, [Block::text("Hello"), call]);
    assert_eq!(reply.stop_reason, StopReason::ToolUse);
}

#[test]
fn a_servers_own_compaction_is_kept_and_goes_back() {
    let mut all = vec![
        start("a"),
        begin(0, json!({"type": "compaction", "content": null})),
        grow(
            0,
            json!({"type": "compaction_delta", "content": "so far: ", "encrypted_content": null}),
        ),
        grow(
            0,
            json!({"type": "compaction_delta", "content": "all", "encrypted_content": "xyz"}),
        ),
        begin(1, json!({"type": "text", "text": "hi"})),
    ];
    all.extend(stop("end_turn"));
    let reply = anthropic(&all).unwrap();
    let raw = json!({"type": "compaction", "content": "so far: all", "encrypted_content": "xyz"});
    let Some(Block::Thinking { raw: Some(kept), .. }) = reply.content.first() else {
        panic!("{:?}", reply.content)
    };
    assert_eq!(serde_json::from_str::<Value>(kept).unwrap(), raw);
    let message = agentd_protocol::Message {
        role: agentd_protocol::Role::Assistant,
        content: reply.content,
    };
    let sent = |dialect| {
        let bytes = crate::body::encode_message(&spec(dialect), &message);
        String::from_utf8(bytes.to_vec()).unwrap()
    };
    assert!(sent(Dialect::Anthropic).contains("so far: all"));
    assert!(!sent(Dialect::OpenaiResponses).contains("so far: all"));
}

#[test]
fn groqs_own_place_for_the_usage_counts_where_there_is_no_other() {
    let usage = |input: u64| json!({"prompt_tokens": input, "completion_tokens": 2});
    let end = |own: Value, plain: Value| json!({"id": "c", "choices": [{"index": 0, "delta": {"content": "x"}, "finish_reason": "stop"}], "x_groq": {"id": "r", "usage": own}, "usage": plain});
    let counted = |frame: Value| chat(&[frame], "data: [DONE]\n\n").unwrap().usage.input;
    assert_eq!(counted(end(usage(3), Value::Null)), 3);
    assert_eq!(counted(end(usage(3), usage(4))), 4);
}

#[test]
fn i6_a_large_answer_that_finds_no_room_beside_others_fails_alone_and_as_transient() {
    static ROOM: crate::room::Room = crate::room::Room::new(64 * 1024);
    let free = usize::try_from(crate::room::FREE).unwrap();
    let decoder = || {
        Decoder::new(&spec(Dialect::Anthropic), &[])
            .unwrap()
            .within(&ROOM)
    };
    let comment = |bytes: usize| [b":".repeat(bytes - 1), b"\n".to_vec()].concat();
    let mut events = Vec::new();
    let mut first = decoder();
    first.feed(&comment(free), &mut events).unwrap();
    first.feed(&comment(64 * 1024), &mut events).unwrap();
    let mut second = decoder();
    second.feed(&comment(free), &mut events).unwrap();
    let refused = second.feed(b":\n", &mut events).unwrap_err();
    assert_eq!(refused.class, FailureClass::Transient);
    assert!(refused.message.contains("limits.answers_bytes"), "{refused:?}");
    drop(first);
    second.feed(b":\n", &mut events).unwrap();
}

#[test]
fn a_filtered_answer_without_content_is_a_refusal_and_not_worth_a_retry() {
    use Dialect::{Anthropic, Gemini, OpenaiChat};
    let usage = json!({"prompt_tokens": 7, "completion_tokens": 0, "total_tokens": 7});
    for (dialect, body, expected) in [
        (
            OpenaiChat,
            json!({"choices": [{"finish_reason": "content_filter"}], "usage": usage}),
            StopReason::ContentFilter,
        ),
        (
            OpenaiChat,
            json!({"choices": [{"finish_reason": "content_filter", "message": null}]}),
            StopReason::ContentFilter,
        ),
        (
            OpenaiChat,
            json!({"choices": [{"finish_reason": "content_filter", "message": {}}]}),
            StopReason::ContentFilter,
        ),
        (
            OpenaiChat,
            json!({"choices": [{"finish_reason": "SAFETY"}]}),
            StopReason::ContentFilter,
        ),
        (
            OpenaiChat,
            json!({"choices": [{"finish_reason": "guardrail_intervened", "message": null}]}),
            StopReason::ContentFilter,
        ),
        (
            OpenaiChat,
            json!({"choices": [{"finish_reason": "stop", "message": {"content": null, "refusal": "I cannot."}}]}),
            StopReason::Refusal,
        ),
        (
            Anthropic,
            json!({"type": "message", "content": null, "stop_reason": "refusal", "usage": {"input_tokens": 7}}),
            StopReason::Refusal,
        ),
        (
            Anthropic,
            json!({"type": "message", "content": [], "stop_reason": "refusal"}),
            StopReason::Refusal,
        ),
        (
            Gemini,
            json!({"candidates": [{"finishReason": "SAFETY"}]}),
            StopReason::ContentFilter,
        ),
        (
            Gemini,
            json!({"candidates": [{"finishReason": "PROHIBITED_CONTENT", "content": {}}]}),
            StopReason::ContentFilter,
        ),
    ] {
        let reply = whole(dialect, body.clone()).unwrap_or_else(|error| panic!("{body}: {error}"));
        assert_eq!(reply.stop_reason, expected, "{body}");
    }
}

#[test]
fn a_blocked_prompt_is_a_refusal_and_a_missing_answer_is_not() {
    use Dialect::{Gemini, OpenaiChat};
    for body in [
        json!({"promptFeedback": {"blockReason": "SAFETY"}}),
        json!({"candidates": [], "promptFeedback": {"blockReason": "OTHER"}}),
    ] {
        let error = whole(Gemini, body.clone()).unwrap_err();
        assert_eq!(error.class, FailureClass::ContentFilter, "{body}");
    }
    for body in [
        json!({"choices": [{"finish_reason": "stop"}]}),
        json!({"choices": []}),
        json!({"choices": [{"message": null}]}),
    ] {
        let error = whole(OpenaiChat, body.clone()).unwrap_err();
        assert_eq!(error.class, FailureClass::Transient, "{body}");
    }
}

#[test]
fn tokens_of_an_answer_without_a_message_are_counted() {
    let spec = spec(Dialect::OpenaiChat);
    let mut decoder = Decoder::new(&spec, &[]).unwrap();
    let body = json!({"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 2}});
    decoder
        .take_whole(body.to_string().as_bytes(), &mut Vec::new())
        .unwrap_err();
    assert_eq!((decoder.usage().input, decoder.usage().output), (7, 2));
}
