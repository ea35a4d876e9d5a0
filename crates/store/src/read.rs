//! Queries and their results: pages of a log, list rows, the fleet-wide stream.

use agentd_protocol::{Labels, ListPlace, Seq, SessionId, SortBy, Summary};
use bytes::Bytes;

/// The maximum number of rows in a list.
pub const MAX_LIST: u32 = 10_000;
/// The maximum number of events in a page.
pub const MAX_PAGE: u32 = 10_000;
/// The maximum size of a page in bytes (its first event is always included).
pub const MAX_PAGE_BYTES: u32 = 16 * 1024 * 1024;

/// The order of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Direction {
    /// Oldest first.
    #[default]
    Forward,
    /// Newest first.
    Backward,
}

/// A range of events of a log: `after < seq <= upto`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Range {
    /// Events after this one.
    pub after: Seq,
    /// Up to and including this one; absent: the head.
    pub upto: Option<Seq>,
    /// The order.
    pub direction: Direction,
    /// At most this many; 0: [`MAX_PAGE`].
    pub limit: u32,
    /// At most this many bytes, but at least one event; 0: [`MAX_PAGE_BYTES`].
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

    /// The most events and bytes of a page.
    #[must_use]
    pub const fn limits(&self) -> (usize, usize) {
        (clamp(self.limit, MAX_PAGE), clamp(self.max_bytes, MAX_PAGE_BYTES))
    }
}

/// A wanted number, at most this many; 0: the maximum.
#[must_use]
pub const fn clamp(asked: u32, most: u32) -> usize {
    if asked == 0 || asked > most {
        most as usize
    } else {
        asked as usize
    }
}

/// The hex digits of a whole id.
pub const ID_DIGITS: usize = 32;

/// The hex digits of a text that may be part of an id.
#[must_use]
pub fn id_part(text: &str) -> Option<String> {
    let hex = text.replace('-', "").to_ascii_lowercase();
    let fits = !hex.is_empty() && hex.len() <= ID_DIGITS && hex.bytes().all(|byte| byte.is_ascii_hexdigit());
    fits.then_some(hex)
}

/// A page of a log.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Page {
    /// The exact stored lines, in the requested order.
    pub events: Vec<(Seq, Bytes)>,
    /// The log's head.
    pub head: Seq,
    /// Whether the range has events beyond this page.
    pub more: bool,
    /// The first event whose bytes differ from those that were written. Clients may show it, but must not trust it.
    pub damaged: Option<Seq>,
}

/// A session's list row with its fencing number.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// The owner's last summary of the session.
    pub summary: Summary,
    /// The current fencing number.
    pub epoch: u64,
    /// The log's head.
    pub head: Seq,
    /// The stored row is unreadable: only the session's id and head are valid. Loading the session repairs the row, unless
    /// [`StoreError::Aside`](crate::StoreError::Aside) says that a person must.
    pub damaged: bool,
}

/// A filter for sessions, and their order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Filter {
    /// Include closed sessions. Naming states includes them as well.
    pub all: bool,
    /// Only these states; `running` matches `running(model)`.
    pub states: Vec<String>,
    /// Only sessions that have all of these labels.
    pub labels: Labels,
    /// Only sessions that resume by themselves: resumable, or with a wake time. In a fleet, only those of this node.
    pub resumable_or_timed: bool,
    /// At most this many; 0: [`MAX_LIST`].
    pub limit: u32,
    /// Only sessions behind this one, the last of the previous page.
    pub after: Option<ListPlace>,
    /// The order. Any but [`SortBy::Created`] reads the rows of all sessions that match.
    pub sort: SortBy,
    /// The smallest first; otherwise the largest, so that the newest is first.
    pub ascending: bool,
    /// Only sessions in which each of these words occurs, in lower case.
    pub search: String,
}

/// An event of the fleet-wide stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WatchedEvent {
    /// Its position in the fleet-wide stream.
    pub cursor: u64,
    /// The session of the log.
    pub session: SessionId,
    /// Its position in that log.
    pub seq: Seq,
    /// The event type as the contract names it.
    pub kind: String,
    /// The exact stored line.
    pub body: Bytes,
}

/// A page of the fleet-wide stream.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Watched {
    /// The events in commit order.
    pub events: Vec<WatchedEvent>,
    /// The cursor for the next page.
    pub cursor: u64,
}

/// An idempotency key used within the last 24 hours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredKey {
    /// The command's method.
    pub method: String,
    /// The hash of the command's body.
    pub body_hash: [u8; 32],
    /// The answer as JSON.
    pub answer: String,
}

/// The result of a store check.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Integrity {
    /// The problems found; empty: the store is sound.
    pub problems: Vec<String>,
    /// What could damage the store in the future, each with its remedy: settings of a database server.
    pub warnings: Vec<String>,
    /// The number of sessions, including closed ones.
    pub sessions: u64,
    /// The number of events.
    pub events: u64,
    /// The size on disk in bytes.
    pub bytes: u64,
}

/// Fills a page until one of its limits.
#[derive(Debug)]
pub struct PageBuilder {
    page: Page,
    limit: usize,
    max_bytes: usize,
    bytes: usize,
}

impl PageBuilder {
    /// An empty page of a log with this head.
    #[must_use]
    pub fn new(head: Seq, range: &Range) -> Self {
        let (limit, max_bytes) = range.limits();
        Self {
            page: Page {
                head,
                ..Page::default()
            },
            limit,
            max_bytes,
            bytes: 0,
        }
    }

    /// Adds the next event. False: the page is full, and this event is for the next one.
    pub fn add(&mut self, seq: Seq, body: Bytes, is_whole: bool) -> bool {
        self.bytes = self.bytes.saturating_add(body.len());
        let page = &mut self.page;
        if page.events.len() >= self.limit || (self.bytes > self.max_bytes && !page.events.is_empty()) {
            page.more = true;
            return false;
        }
        if !is_whole {
            page.damaged.get_or_insert(seq);
        }
        page.events.push((seq, body));
        true
    }

    /// The page.
    #[must_use]
    pub fn done(self) -> Page {
        self.page
    }
}

/// Fills a page of the fleet-wide stream until one of its limits.
#[derive(Debug)]
pub struct WatchedBuilder {
    watched: Watched,
    limit: usize,
    bytes: usize,
}

impl WatchedBuilder {
    /// An empty page after this cursor.
    #[must_use]
    pub const fn new(after: u64, limit: u32) -> Self {
        Self {
            watched: Watched {
                events: Vec::new(),
                cursor: after,
            },
            limit: clamp(limit, MAX_PAGE),
            bytes: 0,
        }
    }

    /// Adds the next event. False: the page is full, and this event is for the next one.
    pub fn add(&mut self, event: WatchedEvent) -> bool {
        self.bytes = self.bytes.saturating_add(event.body.len());
        let full = self.watched.events.len() >= self.limit || self.bytes > MAX_PAGE_BYTES as usize;
        if full && !self.watched.events.is_empty() {
            return false;
        }
        self.watched.cursor = event.cursor;
        self.watched.events.push(event);
        true
    }

    /// The page.
    #[must_use]
    pub fn done(self) -> Watched {
        self.watched
    }
}
