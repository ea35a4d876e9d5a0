//! Runs `kill -9` exactly at each fault point of the store, in a separate process.

use agentd_fault_points as fault;
use agentd_protocol::{EVENT_VERSION, Event, Principal, SessionId, SessionPaused, Stamp, Timestamp};
use agentd_store::{Append, EncodedEvent, Options, Outcome, Range};
use agentd_store_sqlite::open;
use std::io::Write as _;
use std::path::Path;
use std::process::Stdio;

const SESSION: SessionId = SessionId::NIL;
const DIR: &str = "AGENTD_TEST_STORE";
const POINT: &str = "AGENTD_TEST_POINT";

/// Appends until it is killed, and prints each acknowledgement to stdout.
#[tokio::test]
#[expect(
    clippy::disallowed_methods,
    reason = "the other half of the test below says where to write"
)]
async fn child() {
    let (Ok(dir), Ok(point)) = (std::env::var(DIR), std::env::var(POINT)) else {
        return;
    };
    fault::arm(&point).unwrap();
    let log = open("sqlite:agentd.db", Path::new(&dir), Options::default()).unwrap();
    let mut stamp = Stamp::new(Timestamp(5), 9);
    for head in 0..100 {
        let mut append = Append::new(SESSION, 1, head, stamp.append());
        let body = SessionPaused {
            reason: String::new(),
        }
        .into();
        let by = Principal::agentd();
        let event = Event {
            v: EVENT_VERSION,
            session: SESSION,
            seq: head + 1,
            at: Timestamp(5),
            by,
            turn: None,
            body,
        };
        append.events = vec![EncodedEvent::encode(&event).unwrap()];
        assert!(matches!(log.append(append).await, Outcome::Committed { .. }));
        let mut out = std::io::stdout().lock();
        writeln!(out, "acknowledged {}", head + 1).unwrap();
        out.flush().unwrap();
    }
}

#[tokio::test]
#[expect(
    clippy::disallowed_methods,
    reason = "the test runs itself once more to be killed"
)]
async fn i1_i2_a_kill_at_any_fault_point_loses_nothing_acknowledged_and_leaves_no_gap() {
    for (point, durable) in [
        ("store.before_append", 6),
        ("store.in_batch", 6),
        ("store.after_commit", 7),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let mut child = std::process::Command::new(std::env::current_exe().unwrap());
        child
            .args(["--exact", "kill::child", "--nocapture"])
            .stderr(Stdio::null());
        child.env(DIR, dir.path()).env(POINT, format!("{point}=kill@7"));
        let output = child.output().unwrap();
        assert!(!output.status.success(), "{point} did not kill");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(text.matches("acknowledged ").count(), 6, "{point}: {text}");
        let log = open("sqlite:agentd.db", dir.path(), Options::default()).unwrap();
        let page = log.load(SESSION, Range::default()).await.unwrap();
        let seqs: Vec<_> = page.events.iter().map(|(seq, _)| *seq).collect();
        assert_eq!(seqs, (1..=durable).collect::<Vec<_>>(), "{point}");
        assert_eq!(log.check().await.unwrap().problems, [""; 0]);
    }
}
