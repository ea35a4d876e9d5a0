//! Repairs are the same in every dialect.

use super::*;

/// A streamed answer that calls a tool with these arguments.
fn answer(dialect: Dialect, name: &str, arguments: &str) -> String {
    match dialect {
        Dialect::Anthropic => {
            let mut all = vec![
                start("a"),
                begin(
                    0,
                    json!({"type": "tool_use", "id": "t", "name": name, "input": {}}),
                ),
                grow(0, json!({"type": "input_json_delta", "partial_json": arguments})),
            ];
            all.extend(stop("tool_use"));
            frames(&all)
        }
        Dialect::OpenaiChat => {
            let call = json!({"index": 0, "id": "x", "function": {"name": name, "arguments": arguments}});
            frames(&[
                json!({"choices": [{"index": 0, "delta": {"tool_calls": [call]}}]}),
                json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}),
            ])
        }
        Dialect::OpenaiResponses => {
            let item = json!({"type": "function_call", "call_id": "c", "name": name, "arguments": arguments});
            frames(&[
                json!({"type": "response.output_item.done", "output_index": 0, "item": item}),
                json!({"type": "response.completed", "response": {"id": "r", "output": [item]}}),
            ])
        }
        Dialect::Ollama => {
            let call = json!({"function": {"name": name, "arguments": arguments}});
            format!(
                "{}\n",
                json!({"message": {"tool_calls": [call]}, "done": true, "done_reason": "stop"})
            )
        }
        Dialect::Gemini | Dialect::LlamaCompletion | Dialect::Scripted => panic!("no arguments as text"),
    }
}

fn read(dialect: Dialect, bytes: &str, tools: &[String]) -> ModelReply {
    let mut decoder = Decoder::new(&spec(dialect), tools).unwrap();
    let mut events = Vec::new();
    for chunk in bytes.as_bytes().chunks(7) {
        decoder.feed(chunk, &mut events).unwrap();
    }
    decoder.finish(&mut events).unwrap()
}

const WITH_TEXT: [Dialect; 4] = [
    Dialect::Anthropic,
    Dialect::OpenaiChat,
    Dialect::OpenaiResponses,
    Dialect::Ollama,
];

#[test]
fn a_call_is_repaired_in_every_dialect() {
    let tools = ["Bash".to_owned()];
    for dialect in WITH_TEXT {
        let bytes = answer(dialect, "functions.Bash", "{}{\"command\": \"a\nb\",}");
        let reply = read(dialect, &bytes, &tools);
        let call = |block: &Block| match block {
            Block::ToolUse { name, input, .. } => Some((name.clone(), input.clone())),
            _ => None,
        };
        let calls: Vec<_> = reply.content.iter().filter_map(call).collect();
        assert_eq!(
            calls,
            [("Bash".to_owned(), json!({"command": "a\nb"}))],
            "{dialect:?}"
        );
        let said = "Bash: read the name \"functions.Bash\" as Bash, escaped control characters in a string, \
                    removed a trailing comma, removed an empty object";
        assert_eq!(reply.reading.repaired, [said], "{dialect:?}");
    }
}

#[test]
fn i4_half_of_a_string_stays_text_in_every_dialect() {
    for dialect in WITH_TEXT {
        let half = "{\"file_path\": \"a\", \"content\": \"half of i";
        let reply = read(dialect, &answer(dialect, "Write", half), &[]);
        let kept = reply
            .content
            .iter()
            .any(|block| matches!(block, Block::ToolUse { input, .. } if input == half));
        assert!(kept && reply.reading.is_plain(), "{dialect:?}: {reply:?}");
    }
}

#[test]
fn reasoning_between_marks_is_reasoning_however_it_is_cut() {
    let whole = "<think>hm</think>\n\nHi";
    let thinking = |raw: Option<&str>| Block::Thinking {
        text: "hm".into(),
        raw: raw.map(str::to_owned),
    };
    for size in [1, 3, 100] {
        let pieces: Vec<&str> = whole
            .as_bytes()
            .chunks(size)
            .map(|piece| str::from_utf8(piece).unwrap())
            .collect();
        let delta = |piece: &&str| json!({"choices": [{"index": 0, "delta": {"content": piece}}]});
        let mut all: Vec<Value> = pieces.iter().map(delta).collect();
        all.push(json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}));
        let reply = read(Dialect::OpenaiChat, &frames(&all), &[]);
        assert_eq!(reply.content, [thinking(None), Block::text("Hi")]);
        let line = |piece: &&str| format!("{}\n", json!({"message": {"content": piece}}));
        let mut lines: String = pieces.iter().map(line).collect();
        lines.push_str("{\"message\": {}, \"done\": true, \"done_reason\": \"stop\"}\n");
        let reply = read(Dialect::Ollama, &lines, &[]);
        assert_eq!(
            reply.content,
            [thinking(Some("{\"thinking\":\"hm\"}")), Block::text("Hi")]
        );
    }
    let open = json!({"choices": [{"index": 0, "delta": {"content": "<think>hm"}, "finish_reason": "stop"}]});
    assert_eq!(
        read(Dialect::OpenaiChat, &frames(&[open]), &[]).content,
        [thinking(None)]
    );
    let closed = json!({"choices": [{"index": 0, "delta": {"content": "hm\n</think>\n\nHi"}, "finish_reason": "stop"}]});
    let reply = read(Dialect::OpenaiChat, &frames(&[closed]), &[]);
    assert_eq!(reply.content, [thinking(None), Block::text("Hi")]);
}

/// Checks the answer that these deltas give, and the text that viewers see of it.
#[track_caller]
fn check_deltas(deltas: &[&str], expected: &[Block], shown: &str) {
    let frame = |delta: &&str| format!("data: {{\"choices\":[{{\"index\":0,\"delta\":{delta}}}]}}\n\n");
    let end = "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n";
    let bytes: String = deltas.iter().map(frame).collect();
    let mut decoder = Decoder::new(&spec(Dialect::OpenaiChat), &[]).unwrap();
    let mut events = Vec::new();
    for chunk in [&bytes, end] {
        decoder.feed(chunk.as_bytes(), &mut events).unwrap();
    }
    assert_eq!(decoder.finish(&mut events).unwrap().content, expected);
    let text = |event: &ModelEvent| match event {
        ModelEvent::TextDelta { text, .. }
        | ModelEvent::ThinkingDelta { text, .. }
        | ModelEvent::ToolInputDelta { text, .. } => text.clone(),
        ModelEvent::ToolStart { .. } => String::new(),
    };
    assert_eq!(events.iter().map(text).collect::<String>(), shown);
}

/// The character is cut between the two frames; each half is an escape.
#[test]
fn a_character_that_a_gateway_cut_apart_is_whole_again() {
    check_deltas(
        &[r#"{"content":"hi \ud83d"}"#, r#"{"content":"\ude00 ok"}"#],
        &[Block::text("hi 😀 ok")],
        "hi 😀 ok",
    );
    check_deltas(
        &[
            r#"{"content":"hi \ud83d"}"#,
            r#"{"content":" ok"}"#,
            r#"{"content":"\ude00"}"#,
        ],
        &[Block::text("hi \u{fffd} ok\u{fffd}")],
        "hi \u{fffd} ok\u{fffd}",
    );
    check_deltas(
        &[r#"{"content":"hi \ud83d"}"#],
        &[Block::text("hi \u{fffd}")],
        "hi ",
    );
}

/// The halves are of the text of the arguments, or the escape within the arguments is cut.
#[test]
fn a_character_of_arguments_that_was_cut_apart_is_whole_again() {
    let call = |text: &str, name: &str| {
        format!(
            r#"{{"tool_calls":[{{"index":0,"id":"x","function":{{"name":{name:?},"arguments":"{text}"}}}}]}}"#
        )
    };
    let echo = Block::ToolUse {
        id: "x".into(),
        name: "Bash".into(),
        input: json!({"command": "echo 😀"}),
    };
    for cut in [
        (r"\ud83d", r"\ude00"),
        (r"\\ud83d", r"\\ude00"),
        (r"\\ud8", r"3d\\ude00"),
    ] {
        let first = call(&format!(r#"{{\"command\": \"echo {}"#, cut.0), "Bash");
        let second = call(&format!(r#"{}\"}}"#, cut.1), "");
        let shown = if cut.0.starts_with(r"\\") {
            r"\ud83d\ude00"
        } else {
            "😀"
        };
        let shown = format!("{{\"command\": \"echo {shown}\"}}");
        check_deltas(&[&first, &second], std::slice::from_ref(&echo), &shown);
    }
}
