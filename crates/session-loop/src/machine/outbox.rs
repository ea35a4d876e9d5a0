//! Events that are decided and not yet durable. Pure.

use agentd_actor_kit::Done;
use agentd_protocol::{AppendId, Fault, Seq, SessionId, Summary, ToolCallId};
use agentd_store::{Append, Blob, EncodedEvent, IdempotencyKey, Outcome};
use agentd_turn::{Effect, Reply};
use std::collections::VecDeque;

/// Events that may wait for their commit before new commands get `busy`.
pub(crate) const MAX_UNACKNOWLEDGED: usize = 64;

/// The recipient of an answer.
#[derive(Debug)]
pub(crate) struct Asker {
    /// The channel for the answer.
    pub(crate) done: Done<Result<Reply, Fault>>,
    /// The command carried an idempotency key.
    pub(crate) keyed: bool,
    /// It ends running work: the answer does not wait for space on a full disk.
    pub(crate) urgent: bool,
}

/// The work that waits until everything before it is durable.
#[derive(Debug)]
pub(crate) enum After {
    /// An answer (I1).
    Reply(Asker, Result<Reply, Fault>),
    /// An effect on the world (I4).
    Effect(Effect),
}

/// The events of one decision.
#[derive(Debug)]
pub(crate) struct Batch {
    /// The events.
    pub(crate) events: Vec<EncodedEvent>,
    /// The blobs that they name.
    pub(crate) blobs: Vec<Blob>,
    /// The key of the command that caused them.
    pub(crate) key: Option<IdempotencyKey>,
    /// The list row after these events.
    pub(crate) summary: Summary,
    /// From a command to a session with nothing in progress: can be revoked until it is durable.
    pub(crate) revocable: bool,
}

/// The meaning of a store's answer.
#[derive(Debug)]
pub(crate) enum Settled {
    /// These may proceed.
    Durable(Vec<After>),
    /// Nothing was written: repeat the same append later.
    Again,
    /// The log differs from the loop's state: the loop must not continue.
    Lost(Lost),
    /// Nothing is in flight; a duplicate answer.
    Stale,
}

/// Why a loop must stop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lost {
    /// Another owner has the session.
    Fenced,
    /// The append may or may not be durable.
    Unknown,
    /// There is no space for it, and it has only commands that can be revoked: their callers get the error immediately.
    Full,
    /// The store refused it.
    Refused(String),
    /// An idempotency key of the append was used before.
    KeyTaken {
        /// The stored answer.
        answer: String,
        /// The earlier command had the same body.
        same_body: bool,
    },
}

/// At most one append in flight; events decided meanwhile go into the next one.
#[derive(Debug)]
pub(crate) struct Outbox {
    session: SessionId,
    epoch: u64,
    durable: Seq,
    staged: VecDeque<Batch>,
    in_flight: Option<Append>,
    waiting: VecDeque<(Seq, After)>,
    full: bool,
    /// How often the store had no space for the append in flight.
    refusals: u32,
    /// Everything in flight can be revoked.
    revocable: bool,
}

/// Tries of a revocable append on a full disk: a queue that was full for a moment is not a full disk.
const MOST_REFUSALS: u32 = 2;

/// Whether an effect must wait until everything decided before it is durable: it changes or informs the world (I4).
#[must_use]
pub(crate) fn waits_for_commit(effect: &Effect) -> bool {
    match effect {
        Effect::Ask { question, .. } => question.waits_for_commit(),
        Effect::RunTool { .. }
        | Effect::AddRule { .. }
        | Effect::StartChild { .. }
        | Effect::StopChild { .. }
        | Effect::Lead { .. }
        | Effect::TellRoot => true,
        Effect::StartModel { .. }
        | Effect::KillModel { .. }
        | Effect::KillTool { .. }
        | Effect::KillJobs
        | Effect::Withdraw { .. }
        | Effect::SetTimer { .. }
        | Effect::ClearTimer { .. } => false,
    }
}

impl Outbox {
    /// The fencing number of the owner.
    pub(crate) const fn epoch(&self) -> u64 {
        self.epoch
    }

    /// The outbox of an owner with this epoch, whose log is durable up to `head`.
    #[must_use]
    pub(crate) const fn new(session: SessionId, epoch: u64, head: Seq) -> Self {
        Self {
            session,
            epoch,
            durable: head,
            staged: VecDeque::new(),
            in_flight: None,
            waiting: VecDeque::new(),
            full: false,
            refusals: 0,
            revocable: false,
        }
    }

    /// Stages the events of a decision.
    pub(crate) fn stage(&mut self, batch: Batch) {
        self.staged.push_back(batch);
    }

    /// Holds something back until everything decided so far is durable; returns it when that is already so.
    #[must_use]
    pub(crate) fn after(&mut self, after: After) -> Option<After> {
        let tail = self.tail();
        if tail == self.durable {
            return Some(after);
        }
        self.waiting.push_back((tail, after));
        None
    }

    /// The next append, when none is in flight and something is staged. It carries at most one idempotency key, so that a
    /// key that was already taken identifies its command.
    pub(crate) fn next(&mut self, id: AppendId) -> Option<Append> {
        if self.in_flight.is_some() || self.staged.is_empty() {
            return None;
        }
        let mut append = Append::new(self.session, self.epoch, self.durable, id);
        self.revocable = true;
        while let Some(batch) = self.staged.pop_front() {
            if batch.key.is_some() && !append.keys.is_empty() {
                self.staged.push_front(batch);
                break;
            }
            self.revocable &= batch.revocable;
            append.events.extend(batch.events);
            append.blobs.extend(batch.blobs);
            append.keys.extend(batch.key);
            append.summary = Some(batch.summary);
        }
        self.in_flight = Some(append.clone());
        Some(append)
    }

    /// The append in flight, to resend it.
    #[must_use]
    pub(crate) fn again(&self) -> Option<Append> {
        self.in_flight.clone()
    }

    /// Processes the store's answer; `None` means that no answer came.
    pub(crate) fn settle(&mut self, outcome: Option<Outcome>) -> Settled {
        let Some(append) = &self.in_flight else {
            return Settled::Stale;
        };
        let lost = match outcome {
            Some(Outcome::Committed { head, .. } | Outcome::Duplicate { head }) if head == append.head() => {
                self.durable = head;
                self.in_flight = None;
                (self.full, self.refusals) = (false, 0);
                return Settled::Durable(self.release());
            }
            Some(Outcome::Full) => {
                self.full = true;
                self.refusals = self.refusals.saturating_add(1);
                // A session of which nothing is durable does not exist yet, whatever it has begun.
                let is_new = self.durable == 0;
                let revocable = is_new || self.revocable && self.staged.iter().all(|batch| batch.revocable);
                if !revocable || self.refusals < MOST_REFUSALS {
                    return Settled::Again;
                }
                Lost::Full
            }
            Some(Outcome::Committed { .. } | Outcome::Duplicate { .. } | Outcome::Fenced { .. }) => {
                Lost::Fenced
            }
            Some(Outcome::KeyTaken { answer, same_body }) => Lost::KeyTaken { answer, same_body },
            Some(Outcome::Failed(why)) => Lost::Refused(why),
            Some(Outcome::Unknown) | None => Lost::Unknown,
        };
        Settled::Lost(lost)
    }

    fn release(&mut self) -> Vec<After> {
        let ready = self
            .waiting
            .iter()
            .take_while(|(seq, _)| *seq <= self.durable)
            .count();
        self.waiting.drain(..ready).map(|(_, after)| after).collect()
    }

    /// The answers that do not wait for space.
    pub(crate) fn urgent(&mut self) -> Vec<Asker> {
        let (urgent, waiting) = std::mem::take(&mut self.waiting)
            .into_iter()
            .partition(|(_, after)| matches!(after, After::Reply(asker, _) if asker.urgent));
        self.waiting = waiting;
        askers(urgent).collect()
    }

    /// Drops the start of a call that was killed before it could start.
    pub(crate) fn forget_run(&mut self, call: ToolCallId) -> bool {
        let before = self.waiting.len();
        self.waiting.retain(|(_, after)| {
            !matches!(after, After::Effect(Effect::RunTool { tool_call, .. }) if *tool_call == call)
        });
        self.waiting.len() < before
    }

    /// The last durable seq.
    #[must_use]
    pub(crate) const fn durable(&self) -> Seq {
        self.durable
    }

    /// Gives up; returns the recipients of the pending answers, the oldest first.
    pub(crate) fn give_up(&mut self) -> Vec<Asker> {
        self.staged.clear();
        self.in_flight = None;
        askers(std::mem::take(&mut self.waiting)).collect()
    }

    /// The last decided seq.
    fn tail(&self) -> Seq {
        let staged = self
            .staged
            .iter()
            .rev()
            .find_map(|batch| batch.events.last())
            .map(|event| event.seq);
        staged
            .or_else(|| self.in_flight.as_ref().map(Append::head))
            .unwrap_or(self.durable)
    }

    /// Whether everything decided is durable and carried out.
    #[must_use]
    pub(crate) fn is_empty(&self) -> bool {
        self.staged.is_empty() && self.in_flight.is_none() && self.waiting.is_empty()
    }

    /// The number of events that the store has not acknowledged.
    #[must_use]
    pub(crate) fn unacknowledged(&self) -> usize {
        let flying = self.in_flight.as_ref().map_or(0, |append| append.events.len());
        flying + self.staged.iter().map(|batch| batch.events.len()).sum::<usize>()
    }

    /// The store has no space.
    #[must_use]
    pub(crate) const fn is_full(&self) -> bool {
        self.full
    }
}

fn askers(waiting: VecDeque<(Seq, After)>) -> impl Iterator<Item = Asker> {
    waiting.into_iter().filter_map(|(_, after)| match after {
        After::Reply(asker, _) => Some(asker),
        After::Effect(_) => None,
    })
}

#[cfg(test)]
mod tests;
