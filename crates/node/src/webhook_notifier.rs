//! The webhook notifier: notifies other programs of open questions.
//!
//! A note in flight when the daemon stops is lost, so on each start it sends all open questions again: a receiver gets each
//! at least once, and recognizes repeats by their key. The inbox is authoritative.

use crate::log_follower::{LogReader, OnPanic};
use crate::reminder::remind;
use agentd_actor_kit::{Handle, StoreMsg};
use agentd_fault_points as fault;
use agentd_protocol::Event;
use agentd_webhook::{Note, Webhooks};
use async_trait::async_trait;
use std::io;

/// Sends notes to the configured webhooks.
#[derive(Debug)]
pub(crate) struct WebhookNotifier {
    webhooks: Webhooks,
    store: Handle<StoreMsg>,
}

impl WebhookNotifier {
    pub(crate) const fn new(webhooks: Webhooks, store: Handle<StoreMsg>) -> Self {
        Self { webhooks, store }
    }
}

#[async_trait]
impl LogReader for WebhookNotifier {
    const NAME: &'static str = "the webhook notifier";
    const VIEWER: u64 = u64::MAX - 1;
    const QUEUE: usize = 1_024;
    /// An event that causes a panic here would do so forever. The reminder repeats its question.
    const ON_PANIC: OnPanic = OnPanic::Skip;

    /// Sends all open questions. The log keeps questions that come up meanwhile.
    async fn begin(&mut self) {
        remind(self.webhooks.clone(), self.store.clone()).await;
    }

    fn take(&mut self, _: u64, stored: &[u8]) -> io::Result<()> {
        let event = serde_json::from_slice::<Event>(stored).ok();
        // An event that fails here is skipped, like an unreadable one. The next start sends its question again.
        if fault::point(fault::WEBHOOK_NOTE).is_err() {
            return Ok(());
        }
        if let Some(note) = event.as_ref().and_then(Note::of) {
            self.webhooks.send(&note);
        }
        Ok(())
    }
}
