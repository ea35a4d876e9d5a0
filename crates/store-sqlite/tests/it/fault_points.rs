//! The store's fault points, armed once for a process of its own: a lost answer, then an I/O error in a batch.

use agentd_fault_points as fault;
use agentd_protocol::{Principal, SessionId, SessionPaused, Stamp, Timestamp};
use agentd_store::{Append, EncodedEvent, Options, Outcome, Range};
use agentd_store_sqlite::open;
use std::io::Write as _;

const CHILD: &str = "AGENTD_TEST_FAULT_POINTS";

#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "the test runs itself once more: armed points would reach the other tests of this process"
)]
fn i1_i2_a_lost_answer_is_resolved_by_repeating_and_an_io_error_stops_the_store() {
    let mut child = std::process::Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", "fault_points::child", "--nocapture"]);
    let output = child.env(CHILD, "1").output().unwrap();
    let said = [output.stdout, output.stderr].map(|said| String::from_utf8_lossy(&said).into_owned());
    assert!(output.status.success(), "{said:?}");
    assert!(said[0].contains("resolved and stopped"), "{said:?}");
}

/// The process whose points are armed; without its environment variable it does nothing.
#[tokio::test]
#[expect(
    clippy::disallowed_methods,
    reason = "the other half of the test above says what to do"
)]
async fn child() {
    if std::env::var(CHILD).is_err() {
        return;
    }
    fn append(session: SessionId, head: u64, stamp: &mut Stamp) -> Append {
        let mut append = Append::new(session, 1, head, stamp.append());
        let event = agentd_protocol::Event {
            v: agentd_protocol::EVENT_VERSION,
            session,
            seq: head + 1,
            at: Timestamp(5),
            by: Principal::agentd(),
            turn: None,
            body: SessionPaused {
                reason: String::new(),
            }
            .into(),
        };
        append.events = vec![EncodedEvent::encode(&event).unwrap()];
        append
    }

    assert!(fault::arm("store.nowhere=kill").is_err());
    fault::arm("store.after_commit=error@2, store.before_append=error@4, store.in_batch=error@4").unwrap();
    let dir = tempfile::tempdir().unwrap();
    let log = open("sqlite:agentd.db", dir.path(), Options::default()).unwrap();
    let mut stamp = Stamp::new(Timestamp(5), 9);
    let session = stamp.session();

    assert_eq!(
        log.append(append(session, 0, &mut stamp)).await,
        Outcome::Committed { head: 1, cursor: 1 }
    );
    let lost = append(session, 1, &mut stamp);
    assert_eq!(log.append(lost.clone()).await, Outcome::Unknown);
    assert_eq!(log.append(lost).await, Outcome::Duplicate { head: 2 });

    let refused = log.append(append(session, 2, &mut stamp)).await;
    assert_eq!(
        refused,
        Outcome::Failed("refused: fault point store.before_append".to_owned())
    );
    assert_eq!(*log.fatal().borrow(), None);

    let stopped = Outcome::Failed("the store has stopped: fault point store.in_batch".to_owned());
    assert_eq!(log.append(append(session, 2, &mut stamp)).await, stopped);
    assert_eq!(log.append(append(session, 2, &mut stamp)).await, stopped);
    assert_eq!(
        log.fatal().borrow().as_deref(),
        Some("fault point store.in_batch")
    );
    let page = log.load(session, Range::default()).await.unwrap();
    assert_eq!((page.head, page.events.len()), (2, 2));
    writeln!(std::io::stdout(), "resolved and stopped").unwrap();
}
