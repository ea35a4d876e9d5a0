//! What may reach a terminal, and what must not reach a log.
//!
//! Invariant: I8 (a credential that is known, or looks like one, is gone from what [`redact`] returns). Nothing that a
//! terminal would obey is left in what [`for_terminal`] returns. [`Question`] shows all of what a person approves: untrusted
//! text stands behind a gutter, our own words never do, and nothing in it is invisible.
//!
//! Flow: text of a session -> [`for_terminal`] or [`one_line`] -> a screen; a log line -> [`redact`] -> a file;
//! a tool's result -> [`redact_known`] -> a session's log; the output of a terminal -> [`Typescript`], [`settled`] -> a model.

mod joiner;
mod question;
mod redact;
mod terminal;
mod typescript;
mod visible;
mod wrap;

pub use question::{Content, Line, Mark, Question, Span, Voice, digest};
pub use redact::{redact, redact_known, redact_known_bytes, register_secret};
pub use terminal::{Pieces, for_terminal, json_for_terminal, one_line};
pub use typescript::{Typescript, settled};
pub use visible::brief;
pub use wrap::{Shown, Wrap, wrapped};
