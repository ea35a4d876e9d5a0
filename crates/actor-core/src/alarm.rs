//! A delayed message.

use ractor::{ActorRef, Message};
use std::time::Duration;
use tokio::task::JoinHandle;

/// A message that an actor gets after a delay, unless the alarm is dropped first. A message sent just before the drop
/// may still be in the mailbox: if that matters, the message carries a generation.
#[derive(Debug)]
pub struct Alarm(JoinHandle<()>);

impl Alarm {
    /// Sends `message` after the delay.
    #[must_use]
    pub fn set<M: Message>(to: &ActorRef<M>, after: Duration, message: M) -> Self {
        let to = to.clone();
        Self(tokio::spawn(async move {
            tokio::time::sleep(after).await;
            let _ = to.cast(message);
        }))
    }
}

impl Drop for Alarm {
    fn drop(&mut self) {
        self.0.abort();
    }
}
