//! The hash chain of audit lines: whoever changes, removes, adds or moves one breaks it. And the names of its files.
//!
//! Whoever can write the files can also write a new chain; so the last hash is to be kept elsewhere now and then, and a
//! chain can be asked whether it still has it. Invariant I7 for a reader: what is not sealed is broken.
//!
//! Flow: a JSON line -> [`seal`] -> file -> [`Chain::read`] -> intact, or the first [`Broken`] line.

mod chain;
mod files;
mod link;

pub use chain::{Broken, Chain, FILE_DELETED, LOSS_ACCEPTED, Stop};
pub use files::{CURRENT, Sealed, files, open, sealed};
pub use link::{BadLink, Link, links_of, seal};

#[cfg(test)]
mod tests;
