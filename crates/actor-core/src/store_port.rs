//! The messages of the session store.

use crate::done::Done;
use crate::load::Load;
use agentd_protocol::{Labels, Principal, SessionId};
use agentd_store::{Append, Claim, Filter, Outcome, Page, Range, Row, StoreError, StoredKey, Watched};
use bytes::Bytes;
use std::collections::BTreeMap;

/// Messages of the session store.
#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "an append is the usual message; boxing it would only cost an allocation"
)]
pub enum StoreMsg {
    /// Append events; answered after the commit.
    Append {
        /// The append.
        append: Append,
        /// The outcome.
        done: Done<Outcome>,
    },
    /// Read; never waits behind appends.
    Read(Read),
    /// Become the owner of a session: a new epoch.
    Claim {
        /// The session.
        session: SessionId,
        /// Even if its files are not on this node.
        without_files: bool,
        /// The epoch and the head.
        done: Done<Result<Claim, StoreError>>,
    },
    /// Keep a large blob as long as its session exists; answered with its name.
    PutBlob {
        /// The session.
        session: SessionId,
        /// The bytes.
        bytes: Bytes,
        /// The name.
        done: Done<Result<String, StoreError>>,
    },
    /// Delete a session: a tombstone stays.
    Delete {
        /// The session.
        session: SessionId,
        /// The outcome.
        done: Done<Result<(), StoreError>>,
    },
    /// Ask how much is in progress.
    Load {
        /// Reads and changes.
        done: Done<Load>,
    },
    /// The backend failed for good (an I/O or fsync error): the node must stop.
    Fatal(String),
}

/// The reads.
#[derive(Debug)]
pub enum Read {
    /// A page of a log.
    Load {
        /// The session.
        session: SessionId,
        /// The part of the log.
        range: Range,
        /// The page.
        done: Done<Result<Page, StoreError>>,
    },
    /// The list row of a session.
    Row {
        /// The session.
        session: SessionId,
        /// The row.
        done: Done<Result<Option<Row>, StoreError>>,
    },
    /// A list of rows.
    List {
        /// The filter.
        filter: Filter,
        /// The rows.
        done: Done<Result<Vec<Row>, StoreError>>,
    },
    /// The sessions that a person's term may refer to: ids and names.
    Resolve {
        /// The term.
        word: String,
        /// Only sessions with all of these labels.
        labels: Labels,
        /// The candidates.
        done: Done<Result<Vec<(SessionId, String)>, StoreError>>,
    },
    /// The number of sessions.
    Count {
        /// The number.
        done: Done<Result<u64, StoreError>>,
    },
    /// The numbers of sessions by their stored state, without closed ones.
    States {
        /// Only these; none: all.
        of: Option<Vec<SessionId>>,
        /// The numbers.
        done: Done<Result<BTreeMap<String, u64>, StoreError>>,
    },
    /// A stored idempotency key.
    Key {
        /// The principal.
        principal: Principal,
        /// The key.
        key: String,
        /// The stored answer.
        done: Done<Result<Option<StoredKey>, StoreError>>,
    },
    /// A blob.
    Blob {
        /// Its name.
        name: String,
        /// Its bytes.
        done: Done<Result<Option<Bytes>, StoreError>>,
    },
    /// Events of all sessions after a cursor.
    Watch {
        /// The cursor; absent: the current end.
        after: Option<u64>,
        /// The maximum number of events.
        limit: u32,
        /// The events.
        done: Done<Result<Watched, StoreError>>,
    },
}
