//! Folds a session's log into the conversation that a model is sent.
//!
//! Pure and incremental: the work for one event does not depend on how much came before, and a sealed message never
//! changes, so a request's bytes share a stable prefix with the request before it. Only where the log says that the
//! conversation was made shorter, sealed messages change, and with them the generation.
//!
//! Invariants held here: the conversation never contains a tool call without an answer in the next user message (I3);
//! a call whose outcome the log does not have is answered as interrupted, never left open.
//!
//! A conversation that is too long: [`Transcript::plan_compaction`] and [`Transcript::plan_truncation`] give the event
//! that, once applied, makes it shorter; neither ever separates a call from its result.
//!
//! Flow: `Event` -> [`Transcript::apply`] -> sealed messages, read by [`Transcript::messages`] at each model call.

mod cut;
mod estimate;
mod rewind;
mod shorten;
mod step;
mod summary;
mod transcript;

pub use estimate::estimate_tokens;
pub use rewind::Rewinds;
pub use transcript::Transcript;
