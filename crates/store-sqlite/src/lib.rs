//! The embedded backend: one SQLite file in WAL mode, with one writer thread and a few readers, and large blobs in files
//! next to it.
//!
//! Invariants: I1, an append is answered after the sync of its commit, and a witness file next to the database notices if it
//! later lacks what it acknowledged; I6, appends that wait share a transaction, and a bad one fails alone; I9, one daemon
//! per file.
//!
//! Flow: `Append` -> bounded queue -> one writer, one transaction for all waiting appends -> COMMIT -> `Outcome`.

mod access;
mod append;
mod backup;
mod blob_files;
mod committer;
mod entries;
mod error;
mod files;
mod mend;
mod open;
mod order;
mod parts;
mod placement;
mod queries;
mod readers;
mod row_sum;
mod salvage;
mod schema;
mod spending;
mod store;
mod threads;
mod token_rows;
mod upkeep;
mod values;
mod witness;
mod writer;

#[cfg(test)]
mod tests;

pub use open::open;
