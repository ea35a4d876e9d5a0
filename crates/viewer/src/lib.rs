//! What every viewer of a session shares, in line mode and full-screen: facts in words, the list of open questions, and
//! text that streams.
//!
//! Pure. Its output is safe for a terminal: text of a session passes `agentd_text` first.
//! Invariants: I7 (a question is shown in full, in the lines that the daemon rendered) and I6 (output kept of running tools is bounded).
//!
//! Flow: event -> [`Transcript`] -> [`Line`]; fragment -> [`LiveText`] -> text; event -> [`Asks`] -> open questions.

mod amount;
mod asks;
mod entries;
mod live;
mod live_output;
mod paint;
mod question;
mod summary;
mod transcript;

pub use amount::{age, clock, clock_time, count, day, dollars, span, tidy_usd, tokens, word};
pub use asks::{Asks, Elsewhere};
pub use entries::{decided_by, decided_how, input_text, model_failed, turn_finished};
pub use live::{Early, LiveText, Rest, text_of, thoughts_of};
pub use live_output::LiveOutput;
pub use paint::Paint;
pub use question::{choices_line, painted};
pub use summary::summary;
pub use transcript::{Line, Tag, Transcript, below};
