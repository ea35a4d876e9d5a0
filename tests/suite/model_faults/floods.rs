//! Servers that send too much.

use super::{Dialect, Heard, PATIENT, ask, in_each_dialect, say, server};
use agentd_protocol::FailureClass;
use agentd_tests::fault_server::{Act, Acts, Speech, html, status_line};
use bytes::Bytes;
use serde_json::{Value, json};

const MIB: usize = 1 << 20;

/// One attempt against a flood; returns its outcome, and how many bytes were read before the connection was closed.
async fn flooded(dialect: Dialect, acts: Acts) -> (Heard, u64) {
    let server = server(dialect, move |_| acts.clone()).await;
    let heard = ask(dialect, &server.url(), PATIENT).await;
    let seen = server
        .until("the flood is left", |seen| seen.open == 0 && seen.requests > 0)
        .await;
    (heard, seen.sent)
}

fn mib(letter: u8) -> Bytes {
    Bytes::from(vec![letter; MIB])
}

#[tokio::test]
async fn redteam_51_a_line_of_a_gigabyte_is_left_after_a_few_megabytes() {
    in_each_dialect(async |dialect| {
        let speech = Speech(dialect);
        let acts = vec![
            speech.head(),
            Act::say("data: {\"x\":\""),
            Act::flood(1_024, |_| mib(b'a')),
        ];
        let (heard, sent) = flooded(dialect, acts).await;
        heard.is_transient(dialect);
        assert!(sent < 32 * MIB as u64, "{dialect:?}: {sent} bytes were taken");
    })
    .await;
}

#[tokio::test]
async fn an_event_of_endless_data_lines_is_left() {
    let speech = Speech(Dialect::OpenaiChat);
    let line = Bytes::from(format!("data: {}\n", "a".repeat(64 << 10)));
    let acts = vec![speech.head(), Act::flood(16 << 10, move |_| line.clone())];
    let (heard, sent) = flooded(Dialect::OpenaiChat, acts).await;
    heard.is_transient("data lines");
    assert!(sent < 32 * MIB as u64, "{sent} bytes were taken");
}

#[tokio::test]
async fn an_answer_without_an_end_is_left_at_its_limit() {
    let speech = Speech(Dialect::OpenaiChat);
    let piece = json!({"id": "gen-1", "choices": [{"index": 0, "delta": {"content": "a".repeat(4 * MIB)}}]});
    let piece = speech.frame(&piece.to_string());
    let acts = vec![speech.head(), Act::flood(256, move |_| piece.clone())];
    let (heard, sent) = flooded(Dialect::OpenaiChat, acts).await;
    heard.is_transient("a gigabyte of text");
    assert!(sent < 96 * MIB as u64, "{sent} bytes were taken");
}

#[tokio::test]
async fn an_answer_in_one_piece_without_an_end_is_left_at_its_limit() {
    let head = format!("{}content-type: application/json\r\n\r\n", status_line(200));
    let acts = vec![Act::say(head + "{\"x\":\""), Act::flood(1_024, |_| mib(b'a'))];
    let (heard, sent) = flooded(Dialect::OpenaiChat, acts).await;
    heard.is_transient("a gigabyte of JSON");
    assert!(sent < 96 * MIB as u64, "{sent} bytes were taken");
}

#[tokio::test]
async fn a_body_of_an_error_without_an_end_is_left_soon() {
    in_each_dialect(async |dialect| {
        let head = status_line(500) + "content-type: text/plain\r\n\r\n";
        let acts = vec![Act::say(head), Act::flood(1_024, |_| mib(b'e'))];
        let (heard, sent) = flooded(dialect, acts).await;
        heard.is_transient(dialect);
        assert!(sent < 16 * MIB as u64, "{dialect:?}: {sent} bytes were taken");
    })
    .await;
}

#[tokio::test]
async fn a_bomb_of_compressed_bytes_is_refused_unopened() {
    // The response of a server that compresses without a request for it: the beginning of a gzip file.
    let gzip = [&[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3][..], &[0xed; 64 << 10]].concat();
    in_each_dialect(async |dialect| {
        for encoding in ["gzip", "br", "deflate", "zstd"] {
            let head = format!(
                "{}content-type: {}\r\ncontent-encoding: {encoding}\r\n\r\n",
                status_line(200),
                Speech(dialect).content_type()
            );
            let bomb = Bytes::from(gzip.clone());
            let acts = vec![Act::say(head), Act::flood(4_096, move |_| bomb.clone())];
            let (heard, sent) = flooded(dialect, acts).await;
            heard.is_transient((dialect, encoding));
            assert!(
                sent < 32 * MIB as u64,
                "{dialect:?} {encoding}: {sent} bytes were taken"
            );
        }
    })
    .await;
}

/// The frames before, and then one with the call of this number.
fn call_frames(dialect: Dialect, n: u64) -> Vec<Value> {
    let name = "Bash";
    match dialect {
        Dialect::Anthropic => vec![
            json!({"type": "content_block_start", "index": n, "content_block":
                {"type": "tool_use", "id": format!("t{n}"), "name": name, "input": {}}}),
            json!({"type": "content_block_stop", "index": n}),
        ],
        Dialect::OpenaiResponses => {
            let item = json!({"type": "function_call", "id": format!("f{n}"), "call_id": format!("c{n}"),
                "name": name, "arguments": "{}"});
            vec![
                json!({"type": "response.output_item.added", "output_index": n, "item": item}),
                json!({"type": "response.output_item.done", "output_index": n, "item": item}),
            ]
        }
        Dialect::Gemini => vec![
            json!({"responseId": "gen-1", "candidates": [{"index": 0, "content":
            {"role": "model", "parts": [{"functionCall": {"name": name, "args": {}}}]}}]}),
        ],
        Dialect::Ollama => vec![json!({"model": "test", "done": false, "message":
            {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": name, "arguments": {}}}]}})],
        Dialect::OpenaiChat | Dialect::LlamaCompletion | Dialect::Scripted => {
            let call =
                json!({"index": n, "id": format!("c{n}"), "function": {"name": name, "arguments": "{}"}});
            vec![
                json!({"id": "gen-1", "choices": [{"index": 0, "delta": {"tool_calls": [call]}, "finish_reason": null}]}),
            ]
        }
    }
}

#[tokio::test]
async fn redteam_51_a_million_tool_calls_are_left_after_some_thousands() {
    in_each_dialect(async |dialect| {
        if dialect == Dialect::LlamaCompletion {
            // Its calls are parts of one text, which has the limits of a text.
            return;
        }
        let speech = Speech(dialect);
        let mut acts = vec![speech.head()];
        if dialect == Dialect::Anthropic || dialect == Dialect::OpenaiResponses {
            acts.push(Act::Say(speech.frames(&say()).swap_remove(0)));
        }
        let frames = move |n: u64| -> Bytes {
            let calls = (100 * n..100 * (n + 1)).flat_map(|n| call_frames(dialect, n));
            let bytes: Vec<u8> = calls
                .flat_map(|call| speech.frame(&call.to_string()).to_vec())
                .collect();
            bytes.into()
        };
        acts.push(Act::flood(10_000, frames));
        let (heard, sent) = flooded(dialect, acts).await;
        heard.is_transient(dialect);
        assert!(sent < 32 * MIB as u64, "{dialect:?}: {sent} bytes were taken");
    })
    .await;
}

#[tokio::test]
async fn a_million_tool_calls_in_one_frame_are_refused() {
    let calls: Vec<Value> = (0..20_000)
        .map(|n| json!({"index": n, "id": format!("c{n}"), "function": {"name": "Bash", "arguments": "{}"}}))
        .collect();
    let frame = json!({"id": "gen-1", "choices": [{"index": 0, "delta": {"tool_calls": calls}, "finish_reason": "tool_calls"}]});
    let speech = Speech(Dialect::OpenaiChat);
    let acts = vec![
        speech.head(),
        Act::Say(speech.frame(&frame.to_string())),
        Act::Say(speech.frame("[DONE]")),
    ];
    let (heard, _) = flooded(Dialect::OpenaiChat, acts).await;
    heard.is_transient("calls in one frame");
}

#[tokio::test]
async fn headers_without_an_end_are_left() {
    in_each_dialect(async |dialect| {
        let acts = vec![
            Act::say(status_line(200)),
            Act::flood(1 << 16, |n| {
                Bytes::from(format!("x-{n}: {}\r\n", "y".repeat(1_000)))
            }),
        ];
        let (heard, sent) = flooded(dialect, acts).await;
        heard.is_transient(dialect);
        assert!(sent < 16 * MIB as u64, "{dialect:?}: {sent} bytes were taken");
    })
    .await;
}

#[tokio::test]
async fn a_frame_of_endless_nesting_is_transient() {
    in_each_dialect(async |dialect| {
        let speech = Speech(dialect);
        let nested = format!("{{\"a\":{}", "[".repeat(MIB));
        let acts = vec![speech.head(), Act::Say(speech.frame(&nested))];
        let (heard, _) = flooded(dialect, acts).await;
        heard.is_transient(dialect);
    })
    .await;
}

#[tokio::test]
async fn a_long_error_is_told_in_a_few_words() {
    in_each_dialect(async |dialect| {
        let body = json!({"error": {"message": "no ".repeat(MIB), "type": "api_error"}}).to_string();
        let acts = vec![agentd_tests::fault_server::http(500, &[], &body)];
        let (heard, _) = flooded(dialect, acts).await;
        heard.is_transient(dialect);
        assert!(heard.message().len() <= 4_096, "{dialect:?}");
    })
    .await;
}

#[tokio::test]
async fn a_page_for_people_with_a_status_of_trouble_keeps_its_status() {
    in_each_dialect(async |dialect| {
        for (status, class) in [
            (502, FailureClass::Transient),
            (503, FailureClass::Overloaded),
            (504, FailureClass::Transient),
            (520, FailureClass::Transient),
            (401, FailureClass::Auth),
            (404, FailureClass::InvalidRequest),
        ] {
            let (heard, _) = flooded(dialect, vec![html(status)]).await;
            heard.is(class, (dialect, status));
            assert_eq!(heard.answer.unwrap_err().status, Some(status), "{dialect:?}");
        }
    })
    .await;
}
