//! The store's errors, and the faults that clients see.

use crate::Away;
use agentd_protocol::{Fault, FaultClass, Seq, SessionId};
use std::fmt;
use std::path::PathBuf;

/// The fault code of [`StoreError::DamagedRow`].
pub const DAMAGED_ROW: &str = "damaged_row";

/// The fault code of [`StoreError::Damaged`].
pub const DAMAGED: &str = "store_damaged";

/// The fault code of [`StoreError::Aside`].
pub const SET_ASIDE: &str = "session_set_aside";

/// The fault code of [`StoreError::Elsewhere`].
pub const ELSEWHERE: &str = "session_elsewhere";

/// The fault code of [`StoreError::Away`].
pub const AWAY: &str = "cannot_run_here";

/// An error of the store.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The store does not know this kind of URL.
    #[error("store.url {url:?} is invalid; use sqlite:PATH or memory:")]
    BadUrl {
        /// The given URL.
        url: String,
    },
    /// The URL names a database server, and only a store in files or in memory will do here.
    #[error(
        "store.url: {scheme} is a database server, which cannot be used here; use sqlite:PATH or memory:"
    )]
    NotEmbedded {
        /// The scheme of the URL.
        scheme: String,
    },
    /// The URL of a database server cannot be parsed. The URL itself may contain a password (I8).
    #[error("store.url is not the URL of a database: {why}; use postgres://USER@HOST/DATABASE")]
    BadServer {
        /// The problem.
        why: String,
    },
    /// The database server does not answer.
    #[error("cannot reach the database {server}: {why}")]
    Unreachable {
        /// Its host and database, without the password.
        server: String,
        /// The cause.
        why: String,
    },
    /// The database server would lose what it acknowledges, or cannot be used safely.
    #[error("the database {server} cannot be used: {why}")]
    Unsuitable {
        /// Its host and database.
        server: String,
        /// The problem and its remedy.
        why: String,
    },
    /// The database server failed.
    #[error("database: {0}")]
    Server(String),
    /// Another daemon has opened the store.
    #[error("the store at {} is in use by {}", path.display(), holder(*pid, address.as_deref()))]
    InUse {
        /// The lock file.
        path: PathBuf,
        /// The process that holds the lock, if known.
        pid: Option<u32>,
        /// The control socket of that process, if known.
        address: Option<String>,
    },
    /// A newer agentd wrote the store.
    #[error("the store has schema version {found}; this build supports versions up to {known}")]
    NewerVersion {
        /// The store's schema version.
        found: i64,
        /// The newest version that this build knows.
        known: i64,
    },
    /// The database file belongs to another application.
    #[error("{} is not an agentd store", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// The database lacks events that it acknowledged.
    #[error(
        "{} has lost acknowledged events: {}; restore its newest copy together with the -wal file, or start \
         agentd with --accept-loss to continue without the lost events", path.display(), losses(lost)
    )]
    Lost {
        /// The database.
        path: PathBuf,
        /// The sessions that lost events.
        lost: Vec<Loss>,
    },
    /// A migration into the database was interrupted.
    #[error(
        "this database is the destination of an unfinished migration from {origin}; run the same `agentctl migrate` \
         again, or start agentd with the old database"
    )]
    Unfinished {
        /// The source.
        origin: String,
    },
    /// A migration is not possible, or its result is wrong.
    #[error("cannot migrate: {0}")]
    Migration(String),
    /// The file system does not support a write-ahead log.
    #[error("cannot use a write-ahead log for {} (journal mode {mode})", path.display())]
    NoWriteAhead {
        /// The database.
        path: PathBuf,
        /// The journal mode that SQLite would use instead.
        mode: String,
    },
    /// The session does not exist or was deleted.
    #[error("no session {0}")]
    NotFound(SessionId),
    /// The list row of a session differs from what was written.
    #[error("the list row of session {0} is damaged")]
    DamagedRow(SessionId),
    /// What places a session or the end of its log differs from what was written, and cannot be mended.
    #[error("the row of session {0} is damaged, so the session is set aside")]
    Aside(SessionId),
    /// A row that is not a session's differs from what was written.
    #[error("{0} is damaged: it does not match what was written")]
    DamagedEntry(String),
    /// The request needs a damaged page of the database.
    #[error("the database has damaged pages: {0}")]
    Damaged(String),
    /// The content of a blob does not match its name.
    #[error("blob {0} is damaged: its content does not match what was written")]
    DamagedBlob(String),
    /// Another live node owns the session.
    #[error("session {session} runs on node {node}")]
    Elsewhere {
        /// The session.
        session: SessionId,
        /// The node's name.
        node: String,
    },
    /// The session may not run on this node, and no other node runs it.
    #[error("session {session} {away}")]
    Away {
        /// The session.
        session: SessionId,
        /// Why.
        away: Away,
    },
    /// A live node of the fleet has the name.
    #[error("the database {server} already has a live node named {name:?}; set node.name to another name")]
    NameTaken {
        /// The host and database.
        server: String,
        /// The name.
        name: String,
    },
    /// The key of this node was removed from the fleet.
    #[error(
        "the key of node {name:?} was removed from the fleet of {server}: delete the old node.key in its data directory, and \
         run `agentctl node key admit {name}` at another node"
    )]
    KeyRemoved {
        /// The server's host and database.
        server: String,
        /// The node's name.
        name: String,
    },
    /// The node's registration is no longer current.
    #[error("this node is no longer registered")]
    NodeLost,
    /// The disk is full, or the store has reached its size limit.
    #[error("the store is full")]
    Full,
    /// The queue or the readers did not accept the request in time. Nothing was done.
    #[error("the store is busy: {0}")]
    Busy(&'static str),
    /// The answer did not arrive in time. The change may have happened.
    #[error("the store did not answer in time")]
    Unknown,
    /// The database rejected the change. Nothing was done.
    #[error("refused: {0}")]
    Refused(String),
    /// The store stopped after an earlier failure or was closed.
    #[error("the store has stopped: {0}")]
    Stopped(String),
    /// The embedded database returned an error.
    #[error("database: {0}")]
    Database(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// A file or directory could not be used.
    #[error("{}: {source}", path.display())]
    Io {
        /// The path.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// A value could not be encoded or decoded as JSON.
    #[error("json: {0}")]
    Json(#[from] serde_json::Error),
    /// A line of an import is invalid.
    #[error("line {line}: {reason}")]
    BadImport {
        /// The line number, from 1; also the expected seq.
        line: Seq,
        /// The problem.
        reason: String,
    },
}

/// A session for which the database holds less than it acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Loss {
    /// The session.
    pub session: SessionId,
    /// The last seq that was acknowledged.
    pub had: Seq,
    /// The last seq in the database; 0: the session is gone.
    pub has: Seq,
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.has {
            0 => write!(f, "{} is missing ({} events)", self.session, self.had),
            has => write!(f, "{} has {has} of {} events", self.session, self.had),
        }
    }
}

/// An error names at most this many lost sessions.
const NAMED: usize = 10;

fn losses(lost: &[Loss]) -> String {
    let named: Vec<String> = lost.iter().take(NAMED).map(Loss::to_string).collect();
    let more = match lost.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(", and {more} more"),
    };
    let sessions = if lost.len() == 1 { "session" } else { "sessions" };
    format!(
        "{} {sessions} lost events: {}{more}",
        lost.len(),
        named.join(", ")
    )
}

/// Names the process that holds the store, and what the user can do.
fn holder(pid: Option<u32>, address: Option<&str>) -> String {
    let process = pid.map_or_else(|| "another process".to_owned(), |pid| format!("process {pid}"));
    match address {
        Some(socket) => format!(
            "{process}, an agentd that listens on {socket}; use that one (agentctl --socket {socket} ps), \
             stop it (agentctl --socket {socket} daemon stop), or start this one with another --data-dir"
        ),
        None => format!("{process}; stop it, or start this one with another --data-dir"),
    }
}

impl StoreError {
    /// The session of a fault that was made from [`Self::Elsewhere`] or [`Self::Away`].
    #[must_use]
    pub fn session_elsewhere(fault: &Fault) -> Option<SessionId> {
        let session = fault.message.strip_prefix("session ")?.split(' ').next()?;
        let elsewhere = [ELSEWHERE, AWAY].contains(&fault.code.as_str());
        session.parse().ok().filter(|_| elsewhere)
    }

    /// The error for a file.
    #[must_use]
    pub fn io(path: impl Into<PathBuf>, source: std::io::Error) -> Self {
        Self::Io {
            path: path.into(),
            source,
        }
    }

    const fn class(&self) -> FaultClass {
        match self {
            Self::BadUrl { .. }
            | Self::BadServer { .. }
            | Self::NotEmbedded { .. }
            | Self::BadImport { .. } => FaultClass::Invalid,
            Self::InUse { .. }
            | Self::NameTaken { .. }
            | Self::KeyRemoved { .. }
            | Self::Elsewhere { .. }
            | Self::Away { .. }
            | Self::Unreachable { .. }
            | Self::Unsuitable { .. }
            | Self::Server(_)
            | Self::Stopped(_)
            | Self::NodeLost => FaultClass::Unavailable,
            Self::NewerVersion { .. } => FaultClass::Version,
            Self::NotFound(_) => FaultClass::NotFound,
            Self::Busy(_) => FaultClass::Busy,
            Self::Unknown => FaultClass::Timeout,
            Self::Full
            | Self::Refused(_)
            | Self::DamagedRow(_)
            | Self::Aside(_)
            | Self::DamagedEntry(_)
            | Self::Damaged(_)
            | Self::DamagedBlob(_)
            | Self::Foreign { .. }
            | Self::Lost { .. }
            | Self::NoWriteAhead { .. }
            | Self::Unfinished { .. }
            | Self::Migration(_)
            | Self::Database(_)
            | Self::Io { .. }
            | Self::Json(_) => FaultClass::Storage,
        }
    }

    const fn code(&self) -> &'static str {
        match self {
            Self::BadUrl { .. } | Self::BadServer { .. } => "store_url",
            Self::Unreachable { .. } => "store_unreachable",
            Self::Unsuitable { .. } => "store_unsuitable",
            Self::NotEmbedded { .. } => "store_not_embedded",
            Self::InUse { .. } => "store_in_use",
            Self::NameTaken { .. } => "node_name_taken",
            Self::KeyRemoved { .. } => "node_key_removed",
            Self::Elsewhere { .. } => ELSEWHERE,
            Self::Away { .. } => AWAY,
            Self::NewerVersion { .. } => "store_newer",
            Self::Foreign { .. } => "store_foreign",
            Self::Lost { .. } => "store_lost",
            Self::NoWriteAhead { .. } => "store_no_write_ahead",
            Self::Unfinished { .. } => "store_unfinished",
            Self::Migration(_) => "store_migration",
            Self::NotFound(_) => "unknown_session",
            Self::DamagedRow(_) => DAMAGED_ROW,
            Self::Aside(_) => SET_ASIDE,
            Self::DamagedEntry(_) => "damaged_entry",
            Self::DamagedBlob(_) => "damaged_blob",
            Self::Damaged(_) => DAMAGED,
            Self::NodeLost => "node_lost",
            Self::Full => "store_full",
            Self::Busy(_) => "store_busy",
            Self::Unknown => "store_timeout",
            Self::Refused(_) => "store_refused",
            Self::Stopped(_) => "store_stopped",
            Self::Database(_) | Self::Server(_) => "store_database",
            Self::Io { .. } => "store_io",
            Self::Json(_) => "store_json",
            Self::BadImport { .. } => "bad_import",
        }
    }

    fn advice(&self) -> Option<&'static str> {
        match self {
            Self::BadUrl { .. } => Some("use sqlite:PATH or memory:"),
            Self::InUse { .. } => Some("stop the other agentd, or give this one another --data-dir"),
            Self::NewerVersion { .. } => Some("start the newer agentd, or use another --data-dir"),
            Self::Foreign { .. } => Some("set store.url to a file of its own"),
            Self::NoWriteAhead { .. } => Some("put the data directory on a local disk, or repair the disk"),
            Self::DamagedRow(_) => Some("agentd rebuilds it from the session's log; try again in a moment"),
            Self::Aside(_) => {
                Some("restore it from a backup, or delete it; `agentctl doctor` lists all damage")
            }
            Self::DamagedEntry(_) => {
                Some("`agentctl doctor` lists all damage; use another key, or another account")
            }
            Self::Damaged(_) => {
                Some("`agentctl doctor` lists all damage; stop agentd and restore its newest backup")
            }
            Self::Full => Some("free disk space; the store retries automatically"),
            _ => None,
        }
    }
}

impl From<StoreError> for Fault {
    fn from(error: StoreError) -> Self {
        let fault = Self::new(error.class(), error.code(), error.to_string());
        if let StoreError::Away { session, away } = &error {
            return fault.hint(away.ways_out(*session));
        }
        match error.advice() {
            Some(hint) => fault.hint(hint),
            None => fault,
        }
    }
}

#[cfg(test)]
mod tests;
