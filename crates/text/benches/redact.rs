//! The cost of redaction: text of several kinds, without a secret in it.

use agentd_text::{redact_known, register_secret};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use std::hint::black_box;

const SIZE: usize = 8 << 20;

fn kinds() -> [(&'static str, String); 4] {
    let plain = "The build took 12 seconds and wrote 40 files to the target directory.\n";
    let code = "    let shown = format!(\"{}\\n{:?}\", &text[1..], other % 7); // a \\u0041 && b\n";
    let url = "https://example.com/a%20b%2Fc?x=%41%42&y=%2525&z=1\n";
    [
        ("prose", plain.repeat(SIZE / plain.len())),
        ("code", code.repeat(SIZE / code.len())),
        ("escapes", url.repeat(SIZE / url.len())),
        ("one line", plain.replace('\n', " ").repeat(SIZE / plain.len())),
    ]
}

fn redaction(criterion: &mut Criterion) {
    for index in 0..20 {
        register_secret(&format!("sk-bench-{index:04}-0123456789abcdef"));
    }
    let mut group = criterion.benchmark_group("redact");
    group.sample_size(10);
    for (kind, text) in kinds() {
        group.throughput(Throughput::Bytes(u64::try_from(text.len()).unwrap_or(0)));
        group.bench_function(kind, |bencher| {
            bencher.iter(|| redact_known(black_box(&text)).len());
        });
    }
    group.finish();
}

criterion_group!(benches, redaction);
criterion_main!(benches);
