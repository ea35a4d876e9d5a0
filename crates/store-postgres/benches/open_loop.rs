//! Measures the latency of durable appends that arrive at a fixed rate, however long earlier ones take, on a server of its own.
//!
//! Options, in this order: appends per second (1,000), events of each (2), seconds (10).
#![expect(clippy::expect_used, reason = "a bench that cannot be set up must stop")]
#![expect(clippy::disallowed_methods, reason = "a thread of its own keeps the rate")]

use agentd_process_tests::Postgres;
use agentd_protocol::{
    EVENT_VERSION, Event, Principal, RunState, SessionId, SessionPaused, Stamp, Status, Summary, Timestamp,
};
use agentd_store::{Append, Backend, EncodedEvent, Options, Outcome};
use std::io::Write as _;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;
use tokio::task::JoinSet;

/// Sessions that are written in turn: enough that no append waits for the one before it.
const SESSIONS: usize = 500;

fn append((session, head): (SessionId, u64), events: u64, stamp: &mut Stamp) -> Append {
    let event = |seq| Event {
        v: EVENT_VERSION,
        session,
        seq,
        at: Timestamp(5),
        by: Principal::agentd(),
        turn: None,
        body: SessionPaused {
            reason: "x".repeat(500),
        }
        .into(),
    };
    let encoded = |seq| EncodedEvent::encode(&event(seq)).expect("it can be written");
    let mut append = Append::new(session, 1, head, stamp.append());
    append.events = (head + 1..=head + events).map(encoded).collect();
    // An agent's appends carry the row of its session.
    append.summary = Some(Summary {
        name: "an agent".to_owned(),
        model: "a/model".to_owned(),
        workdir: "/a/directory".to_owned(),
        seq: append.head(),
        ..Summary::new(
            session,
            Status::new(RunState::RunningModel, "a call", Timestamp(5)),
        )
    });
    append
}

/// The latencies of the appends, sorted. Sleeps in this thread: the runtime's timers are up to a millisecond late.
fn measure(
    runtime: &Runtime,
    log: &Arc<dyn Backend>,
    stamp: &mut Stamp,
    (rate, events): (u32, u64),
    span: Duration,
) -> Vec<Duration> {
    let mut heads: Vec<_> = (0..SESSIONS).map(|_| (stamp.session(), 0)).collect();
    let mut running = JoinSet::new();
    let (begun, gap) = (Instant::now(), Duration::from_secs(1) / rate);
    let appends = rate * u32::try_from(span.as_secs()).expect("a short time");
    for number in 0..appends {
        let due = begun + gap * number;
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        let at = usize::try_from(number).expect("a small number") % SESSIONS;
        let place = heads.get_mut(at).expect("there is one for each");
        let next = append(*place, events, stamp);
        place.1 += events;
        let log = Arc::clone(log);
        let append = async move {
            let outcome = log.append(next).await;
            assert!(matches!(outcome, Outcome::Committed { .. }), "{outcome:?}");
            due.elapsed()
        };
        running.spawn_on(append, runtime.handle());
    }
    let mut took: Vec<_> = runtime.block_on(running.join_all());
    took.sort_unstable();
    took
}

fn main() {
    let given: Vec<u64> = std::env::args().filter_map(|word| word.parse().ok()).collect();
    let option = |at: usize, usual| given.get(at).copied().unwrap_or(usual);
    let rate = u32::try_from(option(0, 1_000)).expect("a rate");
    let (events, span) = (option(1, 2), Duration::from_secs(option(2, 10)));
    let server = Postgres::start(&[]).expect("PostgreSQL is installed");
    let url = server.create("bench").url;
    let runtime = Runtime::new().expect("a runtime");
    let log = runtime.block_on(agentd_store_postgres::open(&url, None, Options::default()));
    let log = log.expect("a store");
    // Plans, caches and the files of the tables.
    let mut stamp = Stamp::new(Timestamp(5), 9);
    measure(&runtime, &log, &mut stamp, (rate, events), Duration::from_secs(2));
    let took = measure(&runtime, &log, &mut stamp, (rate, events), span);
    let part = |percent: usize| took.get(took.len() * percent / 100).copied().unwrap_or_default();
    let _ = writeln!(
        std::io::stdout(),
        "{} appends of {events} events, {rate} a second: p50 {:.2?}, p95 {:.2?}, p99 {:.2?}",
        took.len(),
        part(50),
        part(95),
        part(99),
    );
}
