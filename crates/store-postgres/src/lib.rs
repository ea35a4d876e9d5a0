//! The store in PostgreSQL, behind the traits of `agentd-store`.
//!
//! Invariants: I1, an acknowledged append is committed by a server that syncs; I2 and I9, one statement checks epoch and
//! head and writes, and locks exist only while the server runs it; I6, a bad append does not fail the others of its batch;
//! I8, no error and no log line contains the URL, which may contain a password.
//!
//! Flow: append -> bounded queue -> the writer -> one statement for all that waits -> outcomes.

mod access;
mod adopted;
mod batch;
mod blobs;
mod error;
mod fleet;
mod keys;
mod list;
mod listener;
mod mend;
mod open;
mod own;
mod parts;
mod placement;
mod queries;
mod reads;
mod rules;
mod schema;
mod server;
mod shares;
mod spending;
mod store;
mod upkeep;
mod writer;

pub use open::open;
