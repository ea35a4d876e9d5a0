//! What is read: pages of a log, list rows, the fleet-wide stream.

use agentd_protocol::{Labels, Seq, SessionId, Summary};
use bytes::Bytes;

/// The most rows of one list.
pub const MAX_LIST: u32 = 10_000;
/// The most events of one page.
pub const MAX_PAGE: u32 = 10_000;
/// The most bytes of one page (its first event is always given).
pub const MAX_PAGE_BYTES: u32 = 16 * 1024 * 1024;

/// In which order a page is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Direction {
    /// Oldest first.
    #[default]
    Forward,
    /// Newest first.
    Backward,
}

/// Which events of a log: `after < seq <= upto`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Range {
    /// Events after this one.
    pub after: Seq,
    /// Up to this one; absent: the head.
    pub upto: Option<Seq>,
    /// From which end.
    pub direction: Direction,
    /// At most so many; 0: [`MAX_PAGE`].
    pub limit: u32,
    /// At most so many bytes, but always one event; 0: [`MAX_PAGE_BYTES`].
    pub max_bytes: u32,
}

impl Range {
    /// Everything after `after`, oldest first.
    #[must_use]
    pub fn after(after: Seq) -> Self {
        Self {
            after,
            ..Self::default()
        }
    }

    /// The last `limit` events, newest first.
    #[must_use]
    pub fn last(limit: u32) -> Self {
        Self {
            direction: Direction::Backward,
            limit,
            ..Self::default()
        }
    }

    pub(crate) const fn limits(&self) -> (usize, usize) {
        (clamp(self.limit, MAX_PAGE), clamp(self.max_bytes, MAX_PAGE_BYTES))
    }
}

pub(crate) const fn clamp(asked: u32, most: u32) -> usize {
    if asked == 0 || asked > most {
        most as usize
    } else {
        asked as usize
    }
}

/// The hex digits of what may be a part of an id.
pub(crate) fn id_part(text: &str) -> Option<String> {
    let hex = text.replace('-', "").to_ascii_lowercase();
    let fits = !hex.is_empty() && hex.len() <= 32 && hex.bytes().all(|byte| byte.is_ascii_hexdigit());
    fits.then_some(hex)
}

/// A page of a log.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Page {
    /// The exact stored lines, in the order asked for.
    pub events: Vec<(Seq, Bytes)>,
    /// The log's head.
    pub head: Seq,
    /// The range has events beyond this page.
    pub more: bool,
    /// The first of these events whose bytes are not those that were written. It can be shown, but not believed.
    pub damaged: Option<Seq>,
}

/// A session's list row with its fence.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// What its owner last said of it.
    pub summary: Summary,
    /// The present fencing number.
    pub epoch: u64,
    /// The log's head.
    pub head: Seq,
    /// The stored row cannot be read: only the session's id and head are true. Loading the session mends it.
    pub damaged: bool,
}

/// Which sessions, newest first.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Filter {
    /// Closed ones, too. Naming states makes them count, too.
    pub all: bool,
    /// Only these states; `running` matches `running(model)`.
    pub states: Vec<String>,
    /// Only sessions that carry all of these labels.
    pub labels: Labels,
    /// Only sessions that go on by themselves: resumable, or with a time to wake.
    pub resumable_or_timed: bool,
    /// At most so many; 0: [`MAX_LIST`].
    pub limit: u32,
    /// Only sessions older than this one: the last of the page before.
    pub after: Option<SessionId>,
}

/// An event of the fleet-wide stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WatchedEvent {
    /// Its place in the fleet-wide stream.
    pub cursor: u64,
    /// Whose log.
    pub session: SessionId,
    /// Its place in that log.
    pub seq: Seq,
    /// The contract's name of its type.
    pub kind: String,
    /// The exact stored line.
    pub body: Bytes,
}

/// A page of the fleet-wide stream.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Watched {
    /// In the order of their commits.
    pub events: Vec<WatchedEvent>,
    /// Where to go on.
    pub cursor: u64,
}

/// A cache of folded state; it can always be rebuilt from the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// The last event folded in.
    pub seq: Seq,
    /// The reader's version; another one is ignored and rebuilt.
    pub format: u32,
    /// The state.
    pub bytes: Bytes,
}

/// An idempotency key that was used within the last 24 hours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredKey {
    /// The command's method.
    pub method: String,
    /// The hash of its body.
    pub body_hash: [u8; 32],
    /// The answer as JSON.
    pub answer: String,
}

/// What a check of the store found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Integrity {
    /// Each thing that is wrong; none: it is sound.
    pub problems: Vec<String>,
    /// Sessions, closed ones included.
    pub sessions: u64,
    /// Events.
    pub events: u64,
    /// Bytes on disk.
    pub bytes: u64,
}
