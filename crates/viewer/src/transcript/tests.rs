use super::*;

fn event(body: &serde_json::Value) -> Event {
    let mut event = serde_json::json!({ "v": 1, "session": agentd_protocol::SessionId::NIL, "seq": 1,
        "at": agentd_protocol::Timestamp(1), "by": "user:ana" });
    let fields = body.as_object().cloned().unwrap();
    event.as_object_mut().unwrap().extend(fields);
    serde_json::from_value(event).unwrap()
}

fn input(number: u32) -> String {
    format!("00000000-0000-0000-0000-{number:012}")
}

fn sent(number: u32, delivery: &str) -> Event {
    let content = [serde_json::json!({ "type": "text", "text": format!("message {number}") })];
    event(
        &serde_json::json!({ "type": "input.accepted", "input": input(number), "delivery": delivery,
        "content": content }),
    )
}

fn started(inputs: &[u32]) -> Event {
    let inputs: Vec<String> = inputs.iter().copied().map(input).collect();
    event(&serde_json::json!({ "type": "turn.started", "inputs": inputs }))
}

fn finished() -> Event {
    let usage = serde_json::json!({ "input": 1, "output": 1, "cache_read": 0, "cache_write": 0 });
    event(
        &serde_json::json!({ "type": "turn.finished", "reason": "completed", "steps": 1, "tool_calls": 0,
        "usage": usage, "cost_usd": 0.0, "text": "" }),
    )
}

#[test]
fn a_message_that_waits_is_marked_where_it_was_sent_and_shown_where_its_turn_starts() {
    let withdrawn = event(&serde_json::json!({ "type": "input.cancelled", "input": input(4) }));
    let events = [
        sent(1, "queue"),
        started(&[1]),
        sent(2, "queue"),
        sent(3, "collect"),
        sent(4, "collect"),
        sent(5, "steer"),
        withdrawn,
        finished(),
        started(&[2]),
        finished(),
        started(&[3]),
    ];
    let mut transcript = Transcript::new(0);
    let lines = events.iter().flat_map(|event| transcript.lines(event));
    let shown: Vec<String> = lines
        .filter(|line| line.tag == Tag::User || line.word == "queued")
        .map(|line| format!("{} {}", line.word, line.text))
        .collect();
    assert_eq!(
        shown,
        [
            " message 1",
            "queued message 2",
            "queued message 3",
            "queued message 4",
            " message 5",
            " message 2",
            " message 3",
        ]
    );
    assert!(transcript.queued.is_empty());
}

#[test]
fn detail_lines_keep_white_space_without_control_sequences() {
    let paint = Paint::new(false);
    let row = |line: &str| below(paint, line);
    assert_eq!(row("+    let x = 1;"), "         | +    let x = 1;\n");
    assert_eq!(row("\tdeep\tcell  "), "         |     deep    cell\n");
    assert!(!row("\x1b[2J  two").contains('\x1b'));
    let long = row(&"x".repeat(BELOW_WIDTH + 1));
    assert_eq!(long.trim().chars().count(), BELOW_WIDTH + 2, "{long}");
    assert!(long.ends_with("x…\n"));
}
