//! Commits to the store: one append at a time, and how the loop handles a lost one.

use super::outbox::{After, Lost, Settled};
use crate::answer::{again, taken};
use crate::machine::{Machine, Mutant};
use agentd_protocol::{AppendId, Fault};
use agentd_store::{Append, Outcome};
use agentd_turn::{Durable, Effect, Reply};

/// The stop reason of a loop that does not know which of its events are durable.
pub const LOST: &str = "store";

/// The consequences of the store's answer.
#[derive(Debug)]
pub enum Committed {
    /// These effects waited for it, and may be carried out.
    Ready(Vec<Effect>),
    /// The store has no space: call [`Machine::retry`] later.
    Later,
    /// The loop's state and the durable log differ: kill the workers, and stop.
    Lost(Lost),
    /// An outdated answer.
    Nothing,
}

/// Whether a decision can be revoked until it is durable: nothing but the command itself is in progress.
pub(super) fn is_revocable(durable: &Durable) -> bool {
    durable.turn.is_none()
        && durable.jobs.is_empty()
        && durable.children.is_empty()
        && durable.history.is_none()
}

/// The answer to commands while the store has no space.
pub(super) fn disk_full() -> Fault {
    Fault::storage(
        "disk_full",
        "the store has no space, so it cannot make anything durable",
    )
    .hint("free disk space; the store retries automatically")
}

impl Machine {
    /// The next append, with its number, when none is in flight. Report the store's answer to [`Machine::stored`], and a
    /// missing one to [`Machine::overdue`].
    pub fn flush(&mut self, id: AppendId) -> Option<(u64, Append)> {
        if self.stop.is_some() {
            return None;
        }
        let append = self.outbox.next(id)?;
        self.appends = self.appends.saturating_add(1);
        Some((self.appends, append))
    }

    /// The number of the last append.
    #[must_use]
    pub const fn appends(&self) -> u64 {
        self.appends
    }

    /// The store answered, or stopped.
    pub fn stored(&mut self, outcome: Option<Outcome>) -> Committed {
        match self.outbox.settle(outcome) {
            Settled::Durable(ready) => Committed::Ready(self.release(ready)),
            Settled::Again => {
                self.answer_urgent();
                Committed::Later
            }
            Settled::Lost(lost) => self.lose(lost),
            Settled::Stale => Committed::Nothing,
        }
    }

    fn release(&self, ready: Vec<After>) -> Vec<Effect> {
        let mut effects = Vec::new();
        for after in ready {
            match after {
                After::Reply(asker, reply) => asker.done.answer(reply),
                After::Effect(_) if self.has(Mutant::LostEffect) => {}
                After::Effect(effect) => {
                    let again = self.has(Mutant::DoubleStart) && matches!(effect, Effect::RunTool { .. });
                    effects.extend(again.then(|| effect.clone()));
                    effects.push(effect);
                }
            }
        }
        effects
    }

    /// The store has no space: answers the callers whose commands ended running work.
    pub(super) fn answer_urgent(&mut self) {
        let seq = self.outbox.durable();
        for asker in self.outbox.urgent() {
            asker.done.answer(Ok(Reply::Ended { seq }));
        }
    }

    /// The append to try again: space may be available.
    pub fn retry(&mut self, number: u64) -> Option<Append> {
        (number == self.appends).then(|| self.outbox.again()).flatten()
    }

    /// The store does not answer, so it is unknown whether the append is durable.
    pub fn overdue(&mut self, number: u64) -> Committed {
        match self.retry(number) {
            Some(_) => self.lose(Lost::Unknown),
            None => Committed::Nothing,
        }
    }

    /// Another node may own the session by now: nothing more starts here.
    pub fn lapse(&mut self) -> Committed {
        self.lose(Lost::Fenced)
    }

    /// The loop's state and the durable log differ: the loop stops, and the log is folded again.
    fn lose(&mut self, lost: Lost) -> Committed {
        if self.has(Mutant::Deaf) {
            return Committed::Nothing;
        }
        let (reason, fault) = match &lost {
            Lost::Fenced => ("fenced", again("the session moved to another owner")),
            Lost::Full => ("reload", disk_full()),
            Lost::Unknown => (LOST, unknown()),
            Lost::Refused(why) => (LOST, Fault::storage("append_refused", why.clone())),
            Lost::KeyTaken { .. } => ("reload", again("the session is being reloaded")),
        };
        let mut stored = match &lost {
            Lost::KeyTaken { answer, same_body } => Some(taken(answer, *same_body)),
            Lost::Fenced | Lost::Full | Lost::Unknown | Lost::Refused(_) => None,
        };
        for asker in self.outbox.give_up() {
            let keyed = stored.take_if(|_| asker.keyed);
            asker.done.answer(keyed.unwrap_or_else(|| Err(fault.clone())));
        }
        self.model = None;
        self.follow.clear();
        self.timers.clear();
        self.stop = Some(reason);
        Committed::Lost(lost)
    }
}

fn unknown() -> Fault {
    Fault::storage(
        "append_unknown",
        "the store did not answer: the command may or may not be durable",
    )
    .hint("retry with the same key")
}
