//! Makes text safe for terminals and logs.
//!
//! Invariant: I8 ([`redact`] removes every credential that is known or looks like one). The result of [`for_terminal`]
//! contains nothing that controls a terminal. [`Question`] shows everything that a person approves: untrusted text
//! always has a gutter before it, our own text never does, and nothing is invisible. [`shown`] is the hash of what was shown.
//!
//! Flow: session text -> [`for_terminal`] or [`one_line`] -> screen; log line -> [`redact`] -> file;
//! tool result -> [`redact_known`] -> session log; terminal output -> [`Typescript`], [`settled`] -> model; other output -> [`plain`] -> model.
//!
//! ```
//! use agentd_text::{for_terminal, redact, register_secret};
//!
//! let shown = for_terminal("title\u{1b}]0;owned\u{7}");
//! assert!(!shown.contains('\u{1b}'));
//!
//! register_secret("correct-horse-battery");
//! assert!(!redact("key = correct-horse-battery").contains("horse"));
//! ```

mod joiner;
mod plain;
mod question;
mod redact;
mod terminal;
mod typescript;
mod visible;
mod wrap;

pub use plain::{Plain, last_versions, plain};
pub use question::{Content, Line, Mark, Question, Span, digest, laid_out, question_lines, shown};
pub use redact::{redact, redact_known, redact_known_bytes, register_secret, register_token_name};
pub use terminal::{Pieces, for_terminal, json_for_terminal, one_line};
pub use typescript::{Typescript, settled};
pub use visible::brief;
pub use wrap::{Shown, Wrap, wrapped};
