//! Checks the guarantees of the store on a disk after a loss.

use super::work::{SESSIONS, Work};
use agentd_faulty_disk::{Image, Record};
use agentd_protocol::{EVENT_VERSION, Event, Principal, Seq, SessionId, SessionPaused, Stamp, Timestamp};
use agentd_store::{Append, Backend, EncodedEvent, Options, Outcome, Range, StoreError};
use agentd_store_sqlite::open;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Mutex;

/// The id of a log.
pub(crate) fn session(which: u64) -> SessionId {
    Stamp::new(Timestamp(1_000), which).session()
}

/// The event at this position of this log, always the same.
pub(crate) fn event(which: u64, seq: Seq, bytes: usize) -> EncodedEvent {
    static MADE: Mutex<BTreeMap<(u64, Seq, usize), EncodedEvent>> = Mutex::new(BTreeMap::new());
    let mut made = MADE.lock().unwrap();
    let event = made.entry((which, seq, bytes));
    event.or_insert_with(|| encoded(which, seq, bytes)).clone()
}

fn encoded(which: u64, seq: Seq, bytes: usize) -> EncodedEvent {
    let reason = format!("{which}/{seq} ").repeat(bytes / 6 + 1);
    let event = Event {
        v: EVENT_VERSION,
        session: session(which),
        seq,
        at: Timestamp(5),
        by: Principal::agentd(),
        turn: None,
        body: SessionPaused { reason }.into(),
    };
    EncodedEvent::encode(&event).unwrap()
}

/// The acknowledged head of each log.
#[derive(Debug, Default)]
pub(crate) struct Acknowledged {
    heads: BTreeMap<u64, Seq>,
}

impl Acknowledged {
    pub(crate) fn of(records: &[Record]) -> Self {
        let mut heads = BTreeMap::new();
        for record in records {
            if let Record::Said(line) = record {
                let (which, seq) = line.split_once(' ').unwrap();
                heads.insert(which.parse().unwrap(), seq.parse().unwrap());
            }
        }
        Self { heads }
    }

    pub(crate) fn all(&self, work: Work) -> bool {
        (0..SESSIONS).all(|which| self.heads.get(&which) == Some(&work.appends))
    }
}

/// Starts a new daemon on the remains: everything acknowledged is intact, without a gap, and the store continues.
pub(crate) async fn check(image: &Image, acknowledged: &Acknowledged, work: Work, case: &str) {
    let memory = Path::new("/dev/shm");
    let dir = if memory.is_dir() {
        tempfile::tempdir_in(memory)
    } else {
        tempfile::tempdir()
    };
    let dir = dir.unwrap();
    image.write_to(dir.path()).unwrap();
    let log = open("sqlite:agentd.db", &dir.path().join("data"), Options::default());
    let log = log.unwrap_or_else(|error| panic!("{case}: it does not open: {error}"));
    let found = log.check().await.unwrap();
    assert_eq!(found.problems, [""; 0], "{case}");
    for which in 0..SESSIONS {
        let promised = acknowledged.heads.get(&which).copied().unwrap_or_default();
        let head = read(&*log, which, work, case).await;
        assert!(
            head >= promised,
            "{case}: log {which} ends at {head}, {promised} was acknowledged"
        );
        let id = Stamp::new(Timestamp(9), which + 77).append();
        let mut next = Append::new(session(which), 1, head, id);
        next.events = vec![event(which, head + 1, 10)];
        let outcome = log.append(next).await;
        let goes_on = matches!(outcome, Outcome::Committed { .. });
        assert!(goes_on, "{case}: {outcome:?}");
    }
}

/// Checks that all events of a log are as they were written. Returns its head; 0 if the log does not exist.
async fn read(log: &dyn Backend, which: u64, work: Work, case: &str) -> Seq {
    let mut after = 0;
    loop {
        let page = match log.load(session(which), Range::after(after)).await {
            Ok(page) => page,
            Err(StoreError::NotFound(_)) => return 0,
            Err(error) => panic!("{case}: log {which}: {error}"),
        };
        for (seq, body) in &page.events {
            assert_eq!(*seq, after + 1, "{case}: a gap in log {which}");
            let whole = *body == event(which, *seq, work.bytes).body;
            assert!(whole, "{case}: event {seq} of log {which}");
            if let Some(blob) = work.blob(which, *seq) {
                let stored = log.blob(blob.name()).await.unwrap();
                let whole = stored.as_ref() == Some(blob.bytes());
                assert!(whole, "{case}: the blob of {which} {seq}");
            }
            after = *seq;
        }
        if after >= page.head {
            return page.head;
        }
    }
}
