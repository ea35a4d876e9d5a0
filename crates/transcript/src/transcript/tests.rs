mod quoting;
mod retelling;
mod room;
mod shape;
mod shortening;

use super::*;
use agentd_protocol::*;
use proptest::prelude::*;
use serde_json::json;

fn call_id(n: u8) -> ToolCallId {
    ToolCallId::from_parts(1, [n; 10])
}

fn input_id(n: u8) -> InputId {
    InputId::from_parts(1, [n; 10])
}

fn log(bodies: Vec<EventBody>) -> Vec<Event> {
    let envelope = |(body, seq)| Event {
        v: EVENT_VERSION,
        session: SessionId::NIL,
        seq,
        at: Timestamp(seq),
        by: Principal::user("ana"),
        turn: None,
        body,
    };
    bodies.into_iter().zip(1..).map(envelope).collect()
}

fn input(n: u8, text: &str) -> EventBody {
    InputAccepted {
        input: input_id(n),
        key: None,
        delivery: Delivery::Start,
        content: vec![Block::text(text)],
        model: None,
        agent: None,
    }
    .into()
}

fn started(inputs: &[u8]) -> EventBody {
    ModelStarted {
        call: CallId::NIL,
        attempt: 1,
        step: 1,
        max_steps: 100,
        inputs: inputs.iter().map(|n| input_id(*n)).collect(),
        provider: "p".into(),
        model: "m".into(),
        credential: None,
        input_tokens_estimate: 0,
        tools_off: false,
        configured: None,
        thinking: None,
        cache_hour: false,
    }
    .into()
}

fn finished(content: Vec<Block>, usage: Usage) -> EventBody {
    ModelFinished {
        call: CallId::NIL,
        attempt: 1,
        content,
        stop_reason: StopReason::EndTurn,
        usage,
        cost_usd: None,
        latency: Latency::default(),
        credential: None,
        reading: agentd_protocol::Reading::default(),
    }
    .into()
}

fn failed(class: FailureClass, partial: Option<&str>) -> EventBody {
    ModelFailed {
        call: CallId::NIL,
        attempt: 1,
        class,
        message: "m".into(),
        status: None,
        retry_at: None,
        partial: partial.map(str::to_owned),
        usage: None,
        cost_usd: None,
        credential: None,
        remedy: None,
    }
    .into()
}

fn note(text: &str) -> EventBody {
    NoteInjected {
        kind: NoteKind::Guard,
        text: text.into(),
    }
    .into()
}

#[test]
fn an_image_of_a_result_follows_it() {
    let outcome = ToolOutcome {
        media: vec![
            json!({ "media_type": "image/png", "data": "AAAA" }),
            json!({ "media_type": "audio/wav", "data": "BBBB" }),
            json!({ "media_type": "image/png" }),
        ],
        ..ToolOutcome::text(ToolStatus::Ok, "a picture")
    };
    let tool_call = call_id(1);
    let mut transcript = Transcript::new();
    let bodies = vec![
        input(1, "look"),
        started(&[1]),
        finished(vec![tool_use(1), tool_use(2)], Usage::default()),
        ToolFinished { tool_call, outcome }.into(),
        started(&[]),
    ];
    for event in log(bodies) {
        transcript.apply(&event);
    }
    let last = &transcript.messages().last().unwrap().content;
    let kinds: Vec<_> = last
        .iter()
        .map(|block| match block {
            Block::ToolResult { .. } => "result",
            Block::Image { media_type, .. } => media_type.as_str(),
            _ => "other",
        })
        .collect();
    assert_eq!(kinds, ["result", "image/png", "result"]);
}

fn tool_use(n: u8) -> Block {
    Block::ToolUse {
        id: call_id(n).to_string(),
        name: "Read".into(),
        input: json!({"n": n}),
    }
}

fn proposed(n: u8, index: u32) -> EventBody {
    ToolProposed {
        tool_call: call_id(n),
        name: "Read".into(),
        input: json!({"n": n}),
        index,
    }
    .into()
}

fn done(n: u8, text: &str) -> EventBody {
    ToolFinished {
        tool_call: call_id(n),
        outcome: ToolOutcome::text(ToolStatus::Ok, text),
    }
    .into()
}

fn result(n: u8, content: &str, is_error: bool) -> Block {
    Block::ToolResult {
        tool_use_id: call_id(n).to_string(),
        content: content.into(),
        is_error,
    }
}

fn fold(bodies: Vec<EventBody>) -> Transcript {
    let mut transcript = Transcript::new();
    for event in log(bodies) {
        transcript.apply(&event);
    }
    transcript
}

fn check(bodies: Vec<EventBody>, expected: &[(Role, Vec<Block>)]) {
    let messages: Vec<_> = fold(bodies)
        .messages()
        .iter()
        .map(|message| (message.role, message.content.clone()))
        .collect();
    assert_eq!(messages, expected);
}

#[test]
fn an_input_joins_where_a_model_call_names_it() {
    check(
        vec![input(1, "a"), input(2, "b"), started(&[2])],
        &[(Role::User, vec![Block::text("b")])],
    );
}

#[test]
fn a_cancelled_input_never_joins() {
    let cancelled = InputCancelled {
        input: input_id(1),
        reason: None,
    }
    .into();
    check(vec![input(1, "a"), cancelled, started(&[1])], &[]);
}

#[test]
fn results_come_in_the_order_of_the_calls_before_notes_and_inputs() {
    check(
        vec![
            input(1, "go"),
            started(&[1]),
            finished(vec![tool_use(1), tool_use(2)], Usage::default()),
            proposed(1, 0),
            proposed(2, 1),
            note("hurry"),
            done(2, "two"),
            input(2, "also"),
            done(1, "one"),
            started(&[2]),
        ],
        &[
            (Role::User, vec![Block::text("go")]),
            (Role::Assistant, vec![tool_use(1), tool_use(2)]),
            (
                Role::User,
                vec![
                    result(1, "one", false),
                    result(2, "two", false),
                    Block::text("[agentd] hurry"),
                    Block::text("also"),
                ],
            ),
        ],
    );
}

#[test]
fn i3_a_call_without_a_result_is_answered_as_interrupted() {
    let transcript = fold(vec![
        input(1, "go"),
        started(&[1]),
        finished(vec![tool_use(1), tool_use(2)], Usage::default()),
        done(2, "two"),
        started(&[]),
        done(1, "too late"),
    ]);
    let last = transcript
        .messages()
        .last()
        .map(|message| message.content.clone());
    let interrupted = "The call was interrupted before it gave a result. Its outcome is unknown; check before repeating it.";
    assert_eq!(
        last,
        Some(vec![result(1, interrupted, true), result(2, "two", false)])
    );
}

#[test]
fn a_cancelled_answer_keeps_its_text_and_other_failures_leave_nothing() {
    check(
        vec![
            input(1, "a"),
            started(&[1]),
            failed(FailureClass::Overloaded, Some("lost")),
            started(&[]),
            failed(FailureClass::Cancelled, Some("half an ans")),
            input(2, "b"),
            started(&[2]),
        ],
        &[
            (Role::User, vec![Block::text("a")]),
            (Role::Assistant, vec![Block::text("half an ans")]),
            (Role::User, vec![Block::text("b")]),
        ],
    );
}

#[test]
fn an_empty_answer_adds_no_message() {
    check(
        vec![started(&[]), finished(vec![Block::text(" \n")], Usage::default())],
        &[],
    );
}

#[test]
fn thinking_is_kept_unchanged() {
    let thinking = Block::Thinking {
        text: "hm".into(),
        raw: Some(r#"{"type":"thinking","signature":"x"}"#.into()),
    };
    check(
        vec![
            input(1, "go"),
            started(&[1]),
            finished(vec![thinking.clone(), Block::text("ok")], Usage::default()),
        ],
        &[
            (Role::User, vec![Block::text("go")]),
            (Role::Assistant, vec![thinking, Block::text("ok")]),
        ],
    );
}

#[test]
fn the_providers_count_replaces_the_estimate() {
    let usage = Usage {
        input: 100,
        output: 20,
        cache_read: 1000,
        cache_write: 10,
        cache_write_1h: 0,
        reasoning: 5,
    };
    let calibrated = vec![input(1, "a"), started(&[1]), finished(vec![tool_use(1)], usage)];
    assert_eq!(fold(calibrated.clone()).estimate_tokens(), 1_130);
    let mut more = calibrated;
    more.push(done(1, "abcdefgh"));
    assert_eq!(fold(more).estimate_tokens(), 1_130 + 4 + 2);
}

/// One generated event; ids are small so that they collide on purpose.
fn any_body() -> impl Strategy<Value = EventBody> {
    prop_oneof![
        (0u8..6, "[a-z你 ]{0,12}").prop_map(|(n, text)| input(n, &text)),
        (0u8..6).prop_map(|n| InputCancelled {
            input: input_id(n),
            reason: None
        }
        .into()),
        "[a-z]{1,8}".prop_map(|text| note(&text)),
        prop::collection::vec(0u8..6, 0..3).prop_map(|inputs| started(&inputs)),
        (prop::collection::btree_set(0u8..40, 0..4), 0u64..3).prop_map(|(calls, tokens)| finished(
            calls.into_iter().map(tool_use).collect(),
            Usage {
                input: tokens,
                ..Usage::default()
            }
        )),
        Just(failed(FailureClass::Cancelled, Some("part"))),
        (0u8..40, 0u32..4).prop_map(|(n, index)| proposed(n, index)),
        (0u8..40).prop_map(|n| done(n, "done")),
        Just(SessionPaused { reason: "x".into() }.into()),
    ]
}

/// The turn guarantees that only a request follows an answer with calls, so the generator does, too.
fn lawful(bodies: Vec<EventBody>) -> Vec<EventBody> {
    let mut open = false;
    let mut kept = Vec::new();
    for body in bodies {
        let answers = matches!(body, EventBody::ModelFinished(_) | EventBody::ModelFailed(_));
        if answers && !open {
            kept.push(started(&[]));
        }
        open = matches!(body, EventBody::ModelStarted(_)) || (open && !answers);
        kept.push(body);
    }
    kept
}

fn unanswered(messages: &[Arc<Message>]) -> Vec<String> {
    let ids = |message: &Message, results: bool| -> Vec<String> {
        let pick = |block: &Block| match block {
            Block::ToolUse { id, .. } if !results => Some(id.clone()),
            Block::ToolResult { tool_use_id, .. } if results => Some(tool_use_id.clone()),
            _ => None,
        };
        message.content.iter().filter_map(pick).collect()
    };
    let mut open = Vec::new();
    for (at, message) in messages.iter().enumerate() {
        let mut asked = ids(message, false);
        let mut answered = messages
            .get(at + 1)
            .map(|next| ids(next, true))
            .unwrap_or_default();
        asked.sort();
        answered.sort();
        if asked != answered {
            open.extend(asked);
        }
    }
    open
}

proptest! {
    #[test]
    fn i3_every_request_answers_every_call_and_a_sealed_message_never_changes(
        bodies in prop::collection::vec(any_body(), 0..60)
    ) {
        let events = log(lawful(bodies));
        let mut live = Transcript::new();
        for (at, event) in events.iter().enumerate() {
            let before = live.messages().to_vec();
            live.apply(event);
            prop_assert_eq!(live.messages().get(..before.len()), Some(before.as_slice()));
            if matches!(event.body, EventBody::ModelStarted(_)) {
                prop_assert_eq!(unanswered(live.messages()), Vec::<String>::new());
            }
            let mut scratch = Transcript::new();
            events.iter().take(at + 1).for_each(|event| scratch.apply(event));
            prop_assert_eq!(&scratch, &live);
        }
    }
}
