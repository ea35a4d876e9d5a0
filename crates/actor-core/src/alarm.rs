//! One message to come.

use ractor::{ActorRef, Message};
use std::time::Duration;
use tokio::task::JoinHandle;

/// A message that an actor gets after a while, unless the alarm is dropped before. One that was sent just before the drop
/// may still be in the mailbox: where that matters, the message carries a generation.
#[derive(Debug)]
pub struct Alarm(JoinHandle<()>);

impl Alarm {
    /// Sends `message` after a while.
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
