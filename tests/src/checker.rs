//! The one checker of what a fault may leave behind: logs as the protocol tells them, logs as the database has them, the
//! files that commands wrote, the audit file.

use crate::follow::{try_log, within};
use agentd_audit::Chain;
use agentd_client::{Client, ClientError};
use agentd_protocol::{Event, EventBody, ListParams, Seq, SessionId};
use agentd_store::{Options, Range};
use agentd_store_sqlite::open;
use agentd_turn::Witness;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::BufReader;
use std::path::Path;

/// Checks what must hold of every log at every moment: I2, I3, I4 and I7 as its events show them.
pub fn check_events(events: &[Event]) {
    let mut witness = Witness::default();
    for event in events {
        if let Err(violation) = witness.see(event) {
            let kinds: Vec<_> = events.iter().map(|event| event.body.kind()).collect();
            panic!("{violation} (seq {} of {kinds:?})", event.seq);
        }
    }
}

/// The logs of a daemon, all of its sessions.
#[derive(Debug, Clone, Default)]
pub struct Logs(pub BTreeMap<SessionId, Vec<Event>>);

impl Logs {
    /// The events that the protocol reported, checked.
    ///
    /// # Errors
    /// The daemon did not tell all of it.
    pub async fn told(client: &Client) -> Result<Self, ClientError> {
        let all = ListParams {
            all: true,
            ..ListParams::default()
        };
        let rows = within("the list answers", client.list(&all)).await?;
        let mut logs = BTreeMap::new();
        for row in rows {
            let events = try_log(client, &row.session.to_string()).await?;
            assert!(
                row.seq <= events.len() as Seq,
                "I2: the row of {} knows more than its log",
                row.session
            );
            logs.insert(row.session, events);
        }
        Ok(Self(logs))
    }

    /// The content of the database after its daemon is gone, checked. It must be sound.
    pub async fn stored(data_dir: &Path) -> Self {
        let log = open("sqlite:agentd.db", data_dir, Options::default()).expect("the store opens again");
        let integrity = log.check().await.expect("the store can be checked");
        assert_eq!(integrity.problems, [""; 0], "the store is sound");
        let rows = agentd_store::Filter {
            all: true,
            ..agentd_store::Filter::default()
        };
        let rows = log.list(rows).await.expect("the rows can be read");
        let mut logs = BTreeMap::new();
        for row in rows {
            let session = row.summary.session;
            let mut events: Vec<Event> = Vec::new();
            loop {
                let range = Range {
                    after: events.last().map_or(0, |event| event.seq),
                    ..Range::default()
                };
                let page = log.load(session, range).await.expect("a page can be read");
                let parse =
                    |line: &[u8]| serde_json::from_slice::<Event>(line).expect("a stored line parses");
                events.extend(page.events.iter().map(|(_, line)| parse(line)));
                if page.events.is_empty() || events.len() as Seq >= page.head {
                    assert_eq!(
                        events.len() as Seq,
                        page.head,
                        "I2: {session} ends before its head"
                    );
                    break;
                }
            }
            check_events(&events);
            logs.insert(session, events);
        }
        Self(logs)
    }

    /// I1, I2: everything that `earlier` knew is here, in its place and unchanged.
    pub fn continue_from(&self, earlier: &Self) {
        for (session, events) in &earlier.0 {
            let now = self.0.get(session);
            let now = now.unwrap_or_else(|| panic!("I1: session {session} is gone"));
            assert!(
                now.starts_with(events),
                "I1: the reported events of {session} differ from the stored ones"
            );
        }
    }

    /// All events of a kind.
    pub fn count(&self, kind: &str) -> usize {
        let events = self.0.values().flatten();
        events.filter(|event| event.body.kind() == kind).count()
    }
}

/// I4: each mark was made at most once, and as often as the log says that a command did it, unless its outcome is unknown
/// or the call failed.
pub fn check_effects(events: &[Event], marks: &Path) {
    let text = std::fs::read_to_string(marks).unwrap_or_default();
    let made: Vec<&str> = text.lines().collect();
    let once: BTreeSet<&&str> = made.iter().collect();
    assert_eq!(once.len(), made.len(), "I4: a command ran twice: {made:?}");
    let (mut done, mut doubtful) = (0, 0);
    let mut commands = BTreeSet::new();
    for event in events {
        if let EventBody::ToolProposed(proposed) = &event.body
            && proposed.name == "Bash"
        {
            commands.insert(proposed.tool_call);
        }
        if let EventBody::ToolFinished(finished) = &event.body
            && commands.contains(&finished.tool_call)
        {
            match finished.outcome.status {
                agentd_protocol::ToolStatus::Ok => done += 1,
                agentd_protocol::ToolStatus::Denied => {}
                _ => doubtful += 1,
            }
        }
    }
    assert!(
        (done..=done + doubtful).contains(&made.len()),
        "I1, I4: the log has {done} finished commands and {doubtful} doubtful ones; {made:?}"
    );
}

/// The chain of the audit file is whole, and it tells each event of these logs at most once, each verdict exactly once.
///
/// # Errors
/// The defects; a missing verdict may come a moment later.
pub fn check_audit(data_dir: &Path, logs: &Logs) -> Result<(), String> {
    let path = data_dir.join("logs/audit.jsonl");
    let mut chain = Chain::default();
    let file = File::open(&path).map_err(|error| error.to_string())?;
    chain
        .read(BufReader::new(file))
        .map_err(|error| format!("the audit chain: {error:?}"))?;
    let text = std::fs::read_to_string(&path).map_err(|error| error.to_string())?;
    let mut told = BTreeSet::new();
    for line in text.lines() {
        let line: Value = serde_json::from_str(line).map_err(|error| error.to_string())?;
        if line["seq"].is_u64() {
            let place = (line["session"].to_string(), line["seq"].to_string());
            if !told.insert(place) {
                return Err(format!("the audit file tells an event twice: {line}"));
            }
        }
    }
    for event in logs.0.values().flatten() {
        let place = (format!("\"{}\"", event.session), event.seq.to_string());
        if matches!(event.body, EventBody::VerdictGiven(_)) && !told.contains(&place) {
            return Err(format!("the audit file leaves out {event:?}"));
        }
    }
    Ok(())
}
