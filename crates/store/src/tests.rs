//! Tests of every backend, and shared helpers.

mod conformance;
mod jsonl;
pub(crate) mod kit;
