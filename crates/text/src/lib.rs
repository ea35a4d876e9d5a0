//! What may reach a terminal, and what must not reach a log.
//!
//! Invariant: I8 (a credential that is known, or looks like one, is gone from what [`redact`] returns). Nothing that a
//! terminal would obey is left in what [`for_terminal`] returns.
//!
//! Flow: text of a session -> [`for_terminal`] or [`one_line`] -> a screen; a log line -> [`redact`] -> a file;
//! a tool's result -> [`redact_known`] -> a session's log; the output of a terminal -> [`Typescript`], [`settled`] -> a model.

mod redact;
mod terminal;
mod typescript;

pub use redact::{redact, redact_known, redact_known_bytes, register_secret};
pub use terminal::{for_terminal, json_for_terminal, one_line};
pub use typescript::{Typescript, settled};
