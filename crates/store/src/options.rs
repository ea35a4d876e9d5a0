//! How a backend is opened.

use crate::Clock;
use std::time::Duration;

/// Why a store is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// For a daemon.
    Serve,
    /// As the source of a migration.
    Source,
    /// As the destination of a migration, which may have come half way.
    Destination,
}

/// Options for opening a backend.
#[derive(Debug, Clone)]
pub struct Options {
    /// The source of time.
    pub clock: Clock,
    /// The number of concurrent read connections.
    pub readers: usize,
    /// How long an append or another change may wait for queue space and for its answer.
    pub write_timeout: Duration,
    /// How long a read may wait for a free connection.
    pub read_timeout: Duration,
    /// How long a statement about this node's membership of the fleet may take until its connection counts as lost.
    pub membership_timeout: Duration,
    /// The maximum size of the database file; 0: as much as the disk allows.
    pub max_bytes: u64,
    /// Also open a database that has lost some of what it acknowledged.
    pub accept_loss: bool,
    /// The address of this daemon, reported to others that find the store in use; empty: none.
    pub address: String,
    /// Why it is opened.
    pub purpose: Purpose,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            clock: Clock::system(),
            readers: 3,
            write_timeout: Duration::from_secs(30),
            read_timeout: Duration::from_secs(30),
            membership_timeout: Duration::from_secs(3),
            max_bytes: 0,
            accept_loss: false,
            address: String::new(),
            purpose: Purpose::Serve,
        }
    }
}
