//! What the session store understands.

use crate::done::Done;
use agentd_protocol::{Principal, SessionId};
use agentd_store::{
    Append, Claim, Filter, Outcome, Page, Range, Row, Snapshot, StoreError, StoredKey, Watched,
};
use bytes::Bytes;

/// Messages of the session store.
#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "an append is the usual message; boxing it would only cost an allocation"
)]
pub enum StoreMsg {
    /// Append events; answered after the commit.
    Append {
        /// What.
        append: Append,
        /// What came of it.
        done: Done<Outcome>,
    },
    /// Read something; never waits behind appends.
    Read(Read),
    /// Become the owner of a session: a new epoch.
    Claim {
        /// Which.
        session: SessionId,
        /// The epoch and the head.
        done: Done<Result<Claim, StoreError>>,
    },
    /// Keep a large blob as long as its session lives; answered with its name.
    PutBlob {
        /// Whose.
        session: SessionId,
        /// The bytes.
        bytes: Bytes,
        /// The name.
        done: Done<Result<String, StoreError>>,
    },
    /// Keep a rebuildable snapshot.
    PutSnapshot {
        /// Of which session.
        session: SessionId,
        /// The snapshot.
        snapshot: Snapshot,
    },
    /// Leave a tombstone.
    Delete {
        /// Which.
        session: SessionId,
        /// Done.
        done: Done<Result<(), StoreError>>,
    },
    /// The backend failed for good (an I/O or fsync error): the node must stop.
    Fatal(String),
}

/// What can be read.
#[derive(Debug)]
pub enum Read {
    /// A page of a log.
    Load {
        /// Whose.
        session: SessionId,
        /// Which part.
        range: Range,
        /// The page.
        done: Done<Result<Page, StoreError>>,
    },
    /// The list row of a session.
    Row {
        /// Whose.
        session: SessionId,
        /// The row.
        done: Done<Result<Option<Row>, StoreError>>,
    },
    /// Rows.
    List {
        /// Which.
        filter: Filter,
        /// The rows.
        done: Done<Result<Vec<Row>, StoreError>>,
    },
    /// What a person's word for a session stands for: ids and names.
    Resolve {
        /// The word.
        word: String,
        /// Candidates.
        done: Done<Result<Vec<(SessionId, String)>, StoreError>>,
    },
    /// How many sessions there are.
    Count {
        /// The number.
        done: Done<Result<u64, StoreError>>,
    },
    /// A stored idempotency key.
    Key {
        /// Whose.
        principal: Principal,
        /// Which.
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
    /// A snapshot.
    Snapshot {
        /// Of which session.
        session: SessionId,
        /// The snapshot.
        done: Done<Result<Option<Snapshot>, StoreError>>,
    },
    /// Events of all sessions after a cursor.
    Watch {
        /// The cursor; absent: the present end.
        after: Option<u64>,
        /// At most this many.
        limit: u32,
        /// The events.
        done: Done<Result<Watched, StoreError>>,
    },
}
