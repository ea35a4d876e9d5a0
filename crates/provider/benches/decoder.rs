//! Measures the decoding of a streamed answer: 1,000 deltas of text.
#![expect(clippy::expect_used, reason = "a bench that cannot be set up must stop")]

use agentd_provider::{Decoder, Dialect, ModelSpec, Script};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use std::hint::black_box;
use std::sync::Arc;

fn anthropic() -> String {
    let mut stream = String::from(
        "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":9}}}\n\n\
         data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n",
    );
    for _ in 0..1_000 {
        stream.push_str(
            "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\
             \"delta\":{\"type\":\"text_delta\",\"text\":\"some words \"}}\n\n",
        );
    }
    stream.push_str(
        "data: {\"type\":\"content_block_stop\",\"index\":0}\n\n\
         data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":9}}\n\n\
         data: {\"type\":\"message_stop\"}\n\n",
    );
    stream
}

fn chat() -> String {
    let delta = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"some words \"},\"finish_reason\":null}]}\n\n";
    delta.repeat(1_000)
        + "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n"
}

fn decoder(c: &mut Criterion) {
    let mut group = c.benchmark_group("stream of 1,000 deltas");
    for (name, dialect, stream) in [
        ("anthropic", Dialect::Anthropic, anthropic()),
        ("openai-chat", Dialect::OpenaiChat, chat()),
    ] {
        let spec = ModelSpec {
            dialect,
            ..ModelSpec::scripted("bench", Arc::new(Script::default()))
        };
        group.throughput(Throughput::Bytes(stream.len() as u64));
        group.bench_function(name, |b| {
            b.iter(|| {
                let mut decoder = Decoder::new(&spec, &[]).expect("it can be decoded");
                let mut events = Vec::new();
                for piece in stream.as_bytes().chunks(1_400) {
                    decoder.feed(black_box(piece), &mut events).expect("it is sound");
                    events.clear();
                }
                decoder.finish(&mut events).expect("it is whole")
            });
        });
    }
    group.finish();
}

criterion_group!(benches, decoder);
criterion_main!(benches);
