//! Measures how fast streamed answers are decoded, and how much memory that takes.

use crate::measure::Figures;
use agentd_provider::{Decoder, Dialect, ModelReply, ModelSpec, Script};
use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The number of bytes that a socket delivers at once.
const CHUNK: usize = 16 << 10;

/// The text of one event of an answer.
const WORDS: &str = "and so the next piece goes";

/// Every streaming dialect, with its name in the figures.
const DIALECTS: [(&str, Dialect); 6] = [
    ("anthropic", Dialect::Anthropic),
    ("openai_chat", Dialect::OpenaiChat),
    ("openai_responses", Dialect::OpenaiResponses),
    ("gemini", Dialect::Gemini),
    ("ollama", Dialect::Ollama),
    ("llama_completion", Dialect::LlamaCompletion),
];

/// Measures each dialect with a synthetic answer of this many events.
pub(crate) fn run(events: u32, rounds: u32) -> Result<Figures> {
    let mut figures = Figures::new();
    for (name, dialect) in DIALECTS {
        let stream = stream(dialect, events);
        let mut best = Duration::MAX;
        for _ in 0..rounds.max(1) {
            let started = Instant::now();
            let reply = black_box(decode(dialect, &stream)?);
            best = best.min(started.elapsed());
            ensure!(
                !reply.content.is_empty(),
                "{name}: the synthetic answer has no content"
            );
        }
        let mut outcome = None;
        let allocated = allocation_counter::measure(|| outcome = Some(decode(dialect, &stream)));
        outcome.context("nothing was decoded")??;
        let seconds = best.as_secs_f64().max(f64::EPSILON);
        let megabytes = stream.len() as f64 / 1e6;
        let per_event = |all: u64| rounded(all as f64 / f64::from(events.max(1)));
        figures.insert(
            format!("decode.{name}.mb_per_s"),
            json!(rounded(megabytes / seconds)),
        );
        figures.insert(
            format!("decode.{name}.events_per_s"),
            json!((f64::from(events) / seconds).round()),
        );
        figures.insert(
            format!("decode.{name}.allocations_per_event"),
            per_event(allocated.count_total),
        );
        figures.insert(
            format!("decode.{name}.allocated_bytes_per_event"),
            per_event(allocated.bytes_total),
        );
        figures.insert(
            format!("decode.{name}.peak_kb"),
            json!(allocated.bytes_max / 1_000),
        );
        figures.insert(format!("decode.{name}.stream_kb"), json!(stream.len() / 1_000));
    }
    Ok(figures)
}

fn rounded(figure: f64) -> Value {
    json!((figure * 10.0).round() / 10.0)
}

fn decode(dialect: Dialect, stream: &[u8]) -> Result<ModelReply> {
    let spec = ModelSpec {
        dialect,
        ..ModelSpec::scripted("bench", Arc::new(Script::default()))
    };
    let mut decoder = Decoder::new(&spec, &[])?;
    let mut events = Vec::new();
    for chunk in stream.chunks(CHUNK) {
        decoder.feed(chunk, &mut events)?;
        // As if a viewer had received them.
        events.clear();
    }
    Ok(decoder.finish(&mut events)?)
}

/// An answer of this many events.
fn stream(dialect: Dialect, events: u32) -> Vec<u8> {
    let mut out = String::new();
    let (opening, closing) = ends(dialect);
    for frame in opening {
        push(&mut out, dialect, &frame);
    }
    for number in 0..events {
        push(&mut out, dialect, &piece(dialect, number));
    }
    for frame in closing {
        push(&mut out, dialect, &frame);
    }
    if dialect == Dialect::OpenaiChat {
        out.push_str("data: [DONE]\n\n");
    }
    out.into_bytes()
}

fn push(out: &mut String, dialect: Dialect, frame: &Value) {
    let kind = frame.get("type").and_then(Value::as_str);
    // Writing to a string cannot fail.
    let _ = match (dialect, kind) {
        (Dialect::Ollama, _) => writeln!(out, "{frame}"),
        (_, Some(kind)) => write!(out, "event: {kind}\ndata: {frame}\n\n"),
        (_, None) => write!(out, "data: {frame}\n\n"),
    };
}

fn piece(dialect: Dialect, number: u32) -> Value {
    let choice =
        |delta: Value| json!([{ "index": 0, "delta": delta, "finish_reason": null, "logprobs": null }]);
    match dialect {
        Dialect::Anthropic => json!({ "type": "content_block_delta", "index": 0,
            "delta": { "type": "text_delta", "text": WORDS } }),
        Dialect::OpenaiChat => {
            json!({ "id": "chatcmpl-bench", "object": "chat.completion.chunk", "created": 1,
            "model": "bench", "system_fingerprint": "fp", "choices": choice(json!({ "content": WORDS })) })
        }
        Dialect::OpenaiResponses => json!({ "type": "response.output_text.delta", "sequence_number": number,
            "item_id": "msg_bench", "output_index": 0, "content_index": 0, "delta": WORDS }),
        Dialect::Gemini => {
            json!({ "candidates": [{ "content": { "role": "model", "parts": [{ "text": WORDS }] },
            "index": 0 }], "modelVersion": "bench", "responseId": "r" })
        }
        Dialect::Ollama => json!({ "model": "bench", "created_at": "2026-01-01T00:00:00Z",
            "message": { "role": "assistant", "content": WORDS }, "done": false }),
        Dialect::LlamaCompletion => json!({ "index": 0, "content": WORDS, "tokens": [number], "stop": false,
            "tokens_predicted": number, "tokens_evaluated": 9 }),
        Dialect::Scripted => Value::Null,
    }
}

/// The events before and after the pieces.
fn ends(dialect: Dialect) -> (Vec<Value>, Vec<Value>) {
    match dialect {
        Dialect::Anthropic => (
            vec![
                json!({ "type": "message_start", "message": { "id": "msg_bench", "model": "bench",
                    "usage": { "input_tokens": 9, "output_tokens": 1 } } }),
                json!({ "type": "content_block_start", "index": 0, "content_block": { "type": "text", "text": "" } }),
            ],
            vec![
                json!({ "type": "content_block_stop", "index": 0 }),
                json!({ "type": "message_delta", "delta": { "stop_reason": "end_turn" }, "usage": { "output_tokens": 9 } }),
                json!({ "type": "message_stop" }),
            ],
        ),
        Dialect::OpenaiChat => (
            Vec::new(),
            vec![
                json!({ "id": "chatcmpl-bench", "choices": [{ "index": 0, "delta": {}, "finish_reason": "stop" }],
                "usage": { "prompt_tokens": 9, "completion_tokens": 9 } }),
            ],
        ),
        Dialect::OpenaiResponses => {
            let item = json!({ "id": "msg_bench", "type": "message", "role": "assistant", "content": [] });
            let done = json!({ "id": "msg_bench", "type": "message", "role": "assistant",
                "content": [{ "type": "output_text", "text": WORDS }] });
            (
                vec![
                    json!({ "type": "response.created", "response": { "id": "resp_bench", "model": "bench" } }),
                    json!({ "type": "response.output_item.added", "output_index": 0, "item": item }),
                ],
                vec![
                    json!({ "type": "response.output_item.done", "output_index": 0, "item": done }),
                    json!({ "type": "response.completed", "response": { "id": "resp_bench", "status": "completed",
                        "usage": { "input_tokens": 9, "output_tokens": 9 } } }),
                ],
            )
        }
        Dialect::Gemini => (
            Vec::new(),
            vec![
                json!({ "candidates": [{ "content": { "role": "model", "parts": [] }, "finishReason": "STOP" }],
                "usageMetadata": { "promptTokenCount": 9, "candidatesTokenCount": 9 } }),
            ],
        ),
        Dialect::Ollama => (
            Vec::new(),
            vec![
                json!({ "model": "bench", "message": { "role": "assistant", "content": "" }, "done": true,
                "done_reason": "stop", "prompt_eval_count": 9, "eval_count": 9 }),
            ],
        ),
        Dialect::LlamaCompletion => (
            Vec::new(),
            vec![
                json!({ "content": "", "stop": true, "stop_type": "eos", "tokens_evaluated": 9, "tokens_predicted": 9 }),
            ],
        ),
        Dialect::Scripted => (Vec::new(), Vec::new()),
    }
}
