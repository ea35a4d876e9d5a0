//! Folds a session's log into the conversation that is sent to the model.
//!
//! Pure and incremental: the work per event does not depend on the length of the log, and a sealed message never
//! changes, so each request shares a stable byte prefix with the one before. Sealed messages change only where the log
//! records that the conversation was shortened; then the generation changes, too.
//!
//! Invariants held here: the conversation never contains a tool call without an answer in the next user message (I3); a
//! call whose outcome is not in the log is answered as interrupted, never left open.
//!
//! To shorten a conversation, [`Transcript::plan_pruning`], [`Transcript::plan_trimming`],
//! [`Transcript::plan_compaction`], [`Transcript::plan_truncation`] and [`Transcript::plan_cap`] return an event that
//! makes it shorter once applied. None ever separates a call from its result, and each is a function of the log, so
//! that folding again gives the same bytes. A cut or damaged log is repaired on the way: no answer without the results
//! of its calls, no duplicate call ids, no answer at the beginning.
//!
//! Flow: `Event` -> [`Transcript::apply`] -> sealed messages, read by [`Transcript::messages`] at each model call.
//!
//! ```
//! use agentd_protocol::Event;
//! use agentd_transcript::Transcript;
//!
//! let log = [
//!     r#"{"v":1,"session":"00000000-0000-0000-0000-000000000000","seq":1,"at":"2026-01-01T00:00:00.000Z",
//!         "by":"user:ana","type":"input.accepted","input":"00000000-0000-0000-0000-000000000001",
//!         "delivery":"start","content":[{"type":"text","text":"hello"}]}"#,
//! ];
//! let mut transcript = Transcript::new();
//! for line in log {
//!     let event: Event = serde_json::from_str(line)?;
//!     transcript.apply(&event);
//! }
//! // The input joins the conversation when a model call names it.
//! assert!(transcript.messages().is_empty());
//! assert!(transcript.waiting_tokens() > 0);
//! # Ok::<(), serde_json::Error>(())
//! ```

mod attach;
mod cache_bill;
mod calibrate;
mod cut;
mod digest;
mod estimate;
mod left_out;
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

pub use cache_bill::{CacheBill, Prices};
pub use estimate::estimate_tokens;
pub use parts::{Item, Part, PartKind};
pub use prune::pruning_helps;
pub use retell::{SUMMARISER, retelling, summary_request, summary_tokens};
pub use rewind::Rewinds;
pub use transcript::Transcript;
