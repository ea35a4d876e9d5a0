//! Copies a whole store from one backend into another: in batches, each with the note of how far it came in the same
//! transaction, so that an interrupted migration continues where it was.
//!
//! Invariants: I1, a destination opens for a daemon only after its sums equal those of the source; I2, cursors, seqs and
//! bytes stay, and a batch is written once.
//!
//! Flow: both at rest -> mark the destination -> batches -> sums of both -> remove the mark. It knows the backends only as
//! [`Parts`](agentd_store::parts::Parts).

mod canonical;
mod migrate;
mod sums;

// The tests of all backends are also compiled into the tests of backends in other crates.
#[cfg(test)]
extern crate self as agentd_store_migrate;
#[cfg(test)]
mod tests;

pub use migrate::{Migrated, Migration, Progress, Task, migrate};
pub use sums::Sum;
