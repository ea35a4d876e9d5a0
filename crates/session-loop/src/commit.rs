//! Commits to the store: one append at a time, and how the loop handles a lost one.

use crate::answer::{again, taken};
use crate::error::LoopError;
use crate::outbox::{Lost, Settled};
use crate::shell::Shell;
use agentd_actor_kit::{Alarm, Done, FeedMsg, SessionMsg, StoreMsg};
use agentd_protocol::Fault;
use agentd_store::{Append, Outcome};
use agentd_turn::{Durable, Reply};

/// The stop reason of a loop that does not know which of its events are durable.
pub const LOST: &str = "store";

/// Whether a decision can be revoked until it is durable: nothing but the command itself is in progress.
#[must_use]
pub fn is_revocable(durable: &Durable) -> bool {
    durable.turn.is_none()
        && durable.jobs.is_empty()
        && durable.children.is_empty()
        && durable.history.is_none()
}

/// The answer to commands while the store has no space.
pub(crate) fn disk_full() -> Fault {
    Fault::storage(
        "disk_full",
        "the store has no space, so nothing can be made durable",
    )
    .hint("free disk space; the store retries automatically")
}

impl Shell {
    /// Sends the staged events when no append is in flight.
    pub(crate) fn flush(&mut self) {
        if self.stop.is_some() {
            return;
        }
        let id = self.services.clock.stamp().append();
        if let Some(append) = self.outbox.next(id) {
            self.appends = self.appends.saturating_add(1);
            self.send(append);
        }
    }

    fn send(&mut self, append: Append) {
        let overdue = SessionMsg::AppendOverdue { number: self.appends };
        self.overdue = Some(Alarm::set(&self.me, self.services.timing.append, overdue));
        let done = Done::cast(&self.me, |outcome| SessionMsg::Stored { outcome });
        self.services.store.cast(StoreMsg::Append { append, done });
    }

    /// The store answered, or stopped.
    pub(crate) async fn stored(&mut self, outcome: Option<Outcome>) -> Result<(), LoopError> {
        let settled = self.outbox.settle(outcome);
        match settled {
            Settled::Durable(ready) => {
                self.overdue = None;
                self.go_on(ready).await;
                self.run_followers().await?;
            }
            Settled::Again => {
                self.answer_urgent();
                let retry = SessionMsg::RetryAppend { number: self.appends };
                self.overdue = Some(Alarm::set(&self.me, self.services.timing.retry_full, retry));
            }
            Settled::Lost(lost) => self.lose(lost),
            Settled::Stale => {}
        }
        Ok(())
    }

    /// The store has no space: answers the callers whose commands ended running work.
    pub(crate) fn answer_urgent(&mut self) {
        let seq = self.outbox.durable();
        for asker in self.outbox.urgent() {
            asker.done.answer(Ok(Reply::Ended { seq }));
        }
    }

    /// Retries the append: space may be available again.
    pub(crate) fn retry(&mut self, number: u64) {
        if number == self.appends
            && let Some(append) = self.outbox.again()
        {
            self.send(append);
        }
    }

    /// The store does not answer, so it is unknown whether the append is durable.
    pub(crate) fn overdue(&mut self, number: u64) {
        if number == self.appends && self.outbox.again().is_some() {
            self.lose(Lost::Unknown);
        }
    }

    /// The loop's state and the durable log differ: the loop stops, and the log is folded again.
    fn lose(&mut self, lost: Lost) {
        tracing::warn!(session = %self.session, ?lost, "the loop lost its log");
        let (reason, fault) = match lost {
            Lost::Fenced => ("fenced", again("the session moved to another owner")),
            Lost::Full => ("reload", disk_full()),
            Lost::Unknown => {
                // The append may be durable without the viewers having been notified.
                self.services.feed.cast(FeedMsg::Unsure {
                    session: self.session,
                });
                (LOST, unknown())
            }
            Lost::Refused(why) => (LOST, Fault::storage("append_refused", why)),
            Lost::KeyTaken { answer, same_body } => {
                let mut askers = self.outbox.give_up().into_iter();
                for asker in askers.by_ref() {
                    if asker.keyed {
                        asker.done.answer(taken(&answer, same_body));
                        break;
                    }
                    asker.done.answer(Err(again("the session is being loaded again")));
                }
                for asker in askers {
                    asker.done.answer(Err(again("the session is being loaded again")));
                }
                return self.halt("reload");
            }
        };
        for asker in self.outbox.give_up() {
            asker.done.answer(Err(fault.clone()));
        }
        self.halt(reason);
    }

    fn halt(&mut self, reason: &'static str) {
        self.kids.kill_all();
        self.model = None;
        self.compacting = None;
        self.tools.clear();
        self.planned.clear();
        self.told.clear();
        self.follow.clear();
        self.timers.clear_all();
        self.overdue = None;
        self.stop = Some(reason);
    }
}

fn unknown() -> Fault {
    Fault::storage(
        "append_unknown",
        "the store did not answer: the command may or may not be durable",
    )
    .hint("retry with the same key")
}
