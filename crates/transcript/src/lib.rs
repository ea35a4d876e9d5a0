//! Folds a session's log into the conversation that a model is sent.
//!
//! Pure and incremental: the work for one event does not depend on how much came before, and a sealed message never
//! changes, so a request's bytes share a stable prefix with the request before it. Only where the log says that the
//! conversation was made shorter, sealed messages change, and with them the generation.
//!
//! Invariants held here: the conversation never contains a tool call without an answer in the next user message (I3);
//! a call whose outcome the log does not have is answered as interrupted, never left open.
//!
//! A conversation that is too long: [`Transcript::plan_pruning`], [`Transcript::plan_trimming`],
//! [`Transcript::plan_compaction`], [`Transcript::plan_truncation`] and [`Transcript::plan_cap`] give the event that, once
//! applied, makes it shorter; none ever separates a call from its result, and each is a function of the log, so that
//! folding it gives the same bytes. A log that was cut or damaged is repaired on the way: no answer without its calls'
//! results, no two calls of one id, no beginning with an answer.
//!
//! Flow: `Event` -> [`Transcript::apply`] -> sealed messages, read by [`Transcript::messages`] at each model call.

mod attach;
mod calibrate;
mod cut;
mod digest;
mod estimate;
mod parts;
mod prune;
mod quote;
mod retell;
mod rewind;
mod shorten;
mod step;
mod summary;
mod transcript;
mod trim;

pub use estimate::estimate_tokens;
pub use parts::{Part, PartKind};
pub use retell::{SUMMARISER, retelling, summary_tokens};
pub use rewind::Rewinds;
pub use transcript::Transcript;
