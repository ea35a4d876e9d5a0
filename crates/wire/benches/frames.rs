//! The cost of a frame of the control protocol in both directions.
#![expect(clippy::expect_used, reason = "a bench that cannot be set up must stop")]

use agentd_wire::{ClientFrame, Decoder, FrameLimits, Request, decode_client, encode};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use serde_json::json;
use std::hint::black_box;

const LIMITS: FrameLimits = FrameLimits::of_requests(8 << 20);

fn frames(c: &mut Criterion) {
    let frame = ClientFrame::Request(Request {
        id: 7,
        method: "input.send".to_owned(),
        params: json!({"session": "a1b2c3", "content": [{"type": "text", "text": "word ".repeat(200)}], "key": "k"}),
    });
    let bytes = encode(&frame, LIMITS.max_frame_bytes).expect("it is small");
    let mut group = c.benchmark_group("frame of 1 KiB");
    group.throughput(Throughput::Bytes(bytes.len() as u64));
    group.bench_function("encode", |b| {
        b.iter(|| encode(black_box(&frame), LIMITS.max_frame_bytes));
    });
    group.bench_function("decode", |b| {
        b.iter(|| {
            let mut decoder = Decoder::new(LIMITS);
            decoder.feed(black_box(&bytes));
            let body = decoder.next_frame().ok().flatten().unwrap_or_default();
            decode_client(&body, LIMITS)
        });
    });
    group.finish();
}

criterion_group!(benches, frames);
criterion_main!(benches);
