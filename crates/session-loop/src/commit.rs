//! Sends appends to the store, and carries out what follows its answers.

use crate::error::LoopError;
use crate::machine::{Committed, Lost};
use crate::shell::Shell;
use agentd_actor_kit::{Alarm, Done, FeedMsg, SessionMsg, StoreMsg};
use agentd_store::{Append, Outcome};

impl Shell {
    /// Sends the staged events when no append is in flight.
    pub(crate) fn flush(&mut self) {
        let id = self.services.clock.stamp().append();
        if let Some((number, append)) = self.core.flush(id) {
            self.send(number, append);
        }
    }

    fn send(&mut self, number: u64, append: Append) {
        let overdue = SessionMsg::AppendOverdue { number };
        self.overdue = Some(Alarm::set(&self.me, self.services.timing.append, overdue));
        let done = Done::cast(&self.me, |outcome| SessionMsg::Stored { outcome });
        self.services.store.cast(StoreMsg::Append { append, done });
    }

    /// The store answered, or stopped.
    pub(crate) async fn stored(&mut self, outcome: Option<Outcome>) -> Result<(), LoopError> {
        let committed = self.core.stored(outcome);
        self.follow_up(committed).await
    }

    /// Retries the append: space may be available again.
    pub(crate) fn retry(&mut self, number: u64) {
        if let Some(append) = self.core.retry(number) {
            self.send(number, append);
        }
    }

    /// The store does not answer.
    pub(crate) async fn overdue(&mut self, number: u64) -> Result<(), LoopError> {
        let committed = self.core.overdue(number);
        self.follow_up(committed).await
    }

    async fn follow_up(&mut self, committed: Committed) -> Result<(), LoopError> {
        match committed {
            Committed::Ready(effects) => {
                self.overdue = None;
                // The process may have been stopped for long after the commit: the session may have another owner.
                if !effects.is_empty() && !self.services.lease.holds() {
                    if let Committed::Lost(lost) = self.core.lapse() {
                        self.halt(&lost);
                    }
                    return Ok(());
                }
                for effect in effects {
                    self.carry_out(effect).await;
                }
                return self.run_followers().await;
            }
            Committed::Later => {
                let number = self.core.appends();
                let retry = SessionMsg::RetryAppend { number };
                self.overdue = Some(Alarm::set(&self.me, self.services.timing.retry_full, retry));
            }
            Committed::Lost(lost) => self.halt(&lost),
            Committed::Nothing => {}
        }
        Ok(())
    }

    /// The loop stops, and the log is folded again.
    fn halt(&mut self, lost: &Lost) {
        tracing::warn!(session = %self.session, ?lost, "the loop lost its log");
        if *lost == Lost::Unknown {
            // The append may be durable without the viewers having been notified.
            self.services.feed.cast(FeedMsg::Unsure {
                session: self.session,
            });
        }
        self.running.kill_all();
        self.compacting = None;
        self.tools.clear();
        self.planned.clear();
        self.told.clear();
        self.timers.clear();
        self.overdue = None;
    }
}
