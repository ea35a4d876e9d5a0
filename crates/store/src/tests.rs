//! Tests of every backend, and what they share.

mod conformance;
mod jsonl;
pub(crate) mod kit;
