//! The words for what a check of a store finds.

use crate::cell_sum::Summed;
use std::path::Path;

/// The maximum number of problems listed.
pub const MOST: usize = 100;

/// A session whose events do not end at its head.
#[must_use]
pub fn gap(uid: &str, head: i64, events: i64, newest: i64) -> String {
    format!("session {uid}: head {head}, but {events} events up to {newest}")
}

/// A line that differs from what was written.
#[must_use]
pub fn line(uid: &str, seq: i64) -> String {
    format!("session {uid}: the bytes of event {seq} do not match what was written")
}

/// A list row that differs from what its owner wrote, or that this build cannot read.
#[must_use]
pub fn row(uid: &str) -> String {
    format!("session {uid}: its list row is damaged; loading the session rebuilds it")
}

/// A session of which the row does not match what was written, in columns that loading it does not rebuild.
#[must_use]
pub fn aside(uid: &str) -> String {
    format!("session {uid}: its row is damaged, so it is set aside; restore it from a backup, or delete it")
}

/// Events of which no session is known.
#[must_use]
pub fn orphans(count: i64) -> String {
    format!("{count} events belong to no session")
}

/// A witness that was missing at the start.
#[must_use]
pub fn no_witness(file: &Path) -> String {
    format!(
        "{} was missing at the start, so events that were lost before it are not detected; keep it with the database",
        file.display()
    )
}

/// A row of another table that differs from what was written.
#[must_use]
pub fn entry(of: &Summed, key: &str) -> String {
    let remedy = match of.table {
        "token" => {
            "it opens nothing; revoke it by the name that `agentctl token ls` shows, and create another one"
        }
        "idempotency" => "requests with this key are refused until it expires",
        "charge" => "nothing can be charged to this account",
        "spent" => "usage leaves it out",
        _ => "content that it names is refused",
    };
    format!("{} {key}: its row is damaged; {remedy}", of.table)
}

/// A blob whose content does not match its name.
#[must_use]
pub fn blob(name: &str) -> String {
    format!("blob {name}: its content does not match what was written")
}
