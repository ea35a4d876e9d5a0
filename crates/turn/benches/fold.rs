//! Cost of the pure core: folding a log, and one decision together with applying its events.
#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a bench that cannot be set up must stop"
)]

use agentd_protocol::{Event, Stamp, Timestamp};
use agentd_turn::{Agent, Config, Input, Items, ModelFacts, Scene, Sizes};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use std::hint::black_box;
use std::sync::Arc;

/// A log of a real session: three commands.
const LOG: &str = include_str!("../../../tests/golden/logs/commands.jsonl");

fn facts(_: &str) -> Result<ModelFacts, agentd_protocol::TurnError> {
    Err(agentd_protocol::TurnError {
        class: "internal".to_owned(),
        message: "no model here".to_owned(),
    })
}

fn fold(c: &mut Criterion) {
    let events: Vec<Event> = LOG
        .lines()
        .map(|line| serde_json::from_str(line).expect("an event"))
        .collect();
    let (session, config) = (events[0].session, Arc::new(Config::default()));
    let mut group = c.benchmark_group("turn");
    group.throughput(Throughput::Elements(events.len() as u64));
    group.bench_function("fold a log", |b| {
        b.iter(|| Agent::fold(session, Arc::clone(&config), black_box(&events)).expect("it folds"));
    });
    group.throughput(Throughput::Elements(1));
    // Recovery in the middle of the turn: closes what was in flight and continues.
    let half = Agent::fold(session, Arc::clone(&config), &events[..events.len() / 2]).expect("it folds");
    group.bench_function("decide and apply", |b| {
        b.iter(|| {
            let mut agent = half.clone();
            let scene = Scene {
                items: &Items::default,
                stamp: Stamp::new(Timestamp(9), 1),
                models: &facts,
                input_tokens_estimate: 100,
                sizes: Sizes::default(),
                prefix: 1,
            };
            agent.step(black_box(Input::Recover), scene)
        });
    });
    group.finish();
}

criterion_group!(benches, fold);
criterion_main!(benches);
