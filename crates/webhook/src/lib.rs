//! Webhooks: tell other programs over HTTP that an approval is waiting for a person, or was not answered in time.
//!
//! A note is a JSON object with what an inbox needs, never with a credential (I8). It has a key, by which a receiver
//! recognises duplicates, and a signature if the operator configured a secret. No session waits for a receiver: notes
//! wait in a bounded queue, each is tried a few times with growing pauses, and a note that is not accepted is dropped
//! with a warning (I6). The inbox is authoritative; a note only points to it.
//!
//! Flow: event -> [`Note::of`] -> [`Webhooks::send`] -> POST, with retries -> done.

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
