//! The grammars of the languages that a map knows, and the search for the tags of a file with them.
//!
//! The parsers are written in C and read untrusted files, so no process with keys links this crate: the daemon asks the
//! program `agentd-tags`, which it starts in a sandbox. Tests and benchmarks may use [`InProcess`].
//!
//! Invariants: I6 (bytes, effort and tags of a file are bounded, and the caller can stop a parse).

mod grammars;
mod tagger;
mod taggers;

pub use tagger::Tagger;
pub use taggers::{InProcess, Taggers};
