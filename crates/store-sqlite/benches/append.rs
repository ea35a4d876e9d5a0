//! Measures a durable append: one at a time, and 100 sessions at once (one transaction for many appends).
#![expect(clippy::expect_used, reason = "a bench that cannot be set up must stop")]

use agentd_protocol::{EVENT_VERSION, Event, Principal, SessionId, SessionPaused, Stamp, Timestamp};
use agentd_store::{Append, Backend, EncodedEvent, Options, Outcome};
use agentd_store_sqlite::open;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use std::sync::Arc;
use tokio::runtime::Runtime;

fn append(session: SessionId, head: u64, stamp: &mut Stamp) -> Append {
    let event = Event {
        v: EVENT_VERSION,
        session,
        seq: head + 1,
        at: Timestamp(5),
        by: Principal::agentd(),
        turn: None,
        body: SessionPaused {
            reason: "x".repeat(500),
        }
        .into(),
    };
    let mut append = Append::new(session, 1, head, stamp.append());
    append.events = vec![EncodedEvent::encode(&event).expect("it can be written")];
    append
}

/// Appends one event to each of these sessions, concurrently.
async fn append_to_all(log: &Arc<dyn Backend>, heads: &mut [(SessionId, u64)], stamp: &mut Stamp) {
    let mut running = Vec::new();
    for (session, head) in heads {
        let (log, next) = (Arc::clone(log), append(*session, *head, stamp));
        *head += 1;
        running.push(tokio::spawn(async move { log.append(next).await }));
    }
    for outcome in running {
        assert!(matches!(outcome.await, Ok(Outcome::Committed { .. })));
    }
}

fn appends(c: &mut Criterion) {
    let dir = tempfile::tempdir().expect("a directory");
    let log = open("sqlite:agentd.db", dir.path(), Options::default()).expect("a store");
    let runtime = Runtime::new().expect("a runtime");
    let mut stamp = Stamp::new(Timestamp(5), 9);
    let mut group = c.benchmark_group("append, durable");
    for sessions in [1_u64, 100] {
        let mut heads: Vec<_> = (0..sessions).map(|_| (stamp.session(), 0)).collect();
        group.throughput(Throughput::Elements(sessions));
        group.bench_function(format!("{sessions} at once"), |b| {
            b.iter(|| runtime.block_on(append_to_all(&log, &mut heads, &mut stamp)));
        });
    }
    group.finish();
}

criterion_group!(benches, appends);
criterion_main!(benches);
