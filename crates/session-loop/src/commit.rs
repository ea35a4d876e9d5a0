//! The way to the store and back: one append at a time, and what a lost one means.

use crate::answer::{again, taken};
use crate::error::LoopError;
use crate::outbox::{Lost, Settled};
use crate::shell::Shell;
use agentd_actor_kit::{Alarm, Done, FeedMsg, SessionMsg, StoreMsg};
use agentd_protocol::Fault;
use agentd_store::{Append, Outcome};
use agentd_turn::{Durable, Reply};

/// The reason of a loop that stops because it does not know what of its log is durable.
pub const LOST: &str = "store";

/// Whether what is decided now can be taken back as long as it is not durable: nothing goes on but the command itself.
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
    .hint("free disk space; the store tries again by itself")
}

impl Shell {
    /// Sends what is staged, when nothing is in flight.
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

    /// The store answered, or went down.
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

    /// The store has no space: who wanted to end what runs hears that it was ended.
    pub(crate) fn answer_urgent(&mut self) {
        let seq = self.outbox.durable();
        for asker in self.outbox.urgent() {
            asker.done.answer(Ok(Reply::Ended { seq }));
        }
    }

    /// Space may be there again.
    pub(crate) fn retry(&mut self, number: u64) {
        if number == self.appends
            && let Some(append) = self.outbox.again()
        {
            self.send(append);
        }
    }

    /// The store does not answer: whether the append is durable is not known.
    pub(crate) fn overdue(&mut self, number: u64) {
        if number == self.appends && self.outbox.again().is_some() {
            self.lose(Lost::Unknown);
        }
    }

    /// What this loop thinks and what is durable differ: it stops, and the log is folded again.
    fn lose(&mut self, lost: Lost) {
        tracing::warn!(session = %self.session, ?lost, "the loop lost its log");
        let (reason, fault) = match lost {
            Lost::Fenced => ("fenced", again("the session moved to another owner")),
            Lost::Full => ("reload", disk_full()),
            Lost::Unknown => {
                // It may be durable, and nobody may have told the viewers.
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
