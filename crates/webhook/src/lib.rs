//! Tells other programs over HTTP that a person is asked, or was not heard from in time.
//!
//! A note is a JSON object with what an inbox needs, never with a credential (I8). It carries a key, so that a receiver
//! knows one that came twice, and a signature where the operator gave a secret. Nobody waits for a receiver: notes stand
//! in a bounded queue, each is tried a few times with growing pauses, and one that is not taken is dropped with a warning
//! (I6). The inbox is the truth; this only points at it.
//!
//! Flow: event -> [`Note::of`] -> [`Webhooks::send`] -> POST, and again -> done.

mod error;
mod note;
mod schedule;
mod send;
mod signature;

pub use error::WebhookError;
pub use note::Note;
pub use send::Webhooks;
pub use signature::signature;

#[cfg(test)]
mod tests;
