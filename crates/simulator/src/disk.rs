//! The store: the real one in memory, with the failures of a disk and a network added to appends. Acknowledged appends
//! are also recorded here, so that the store can be checked.

use crate::nodes::Nodes;
use crate::options::Flaw;
use agentd_loop_supervisor::wake_time;
use agentd_protocol::{Event, Seq, SessionId, Timestamp};
use agentd_store::{
    Append, Backend, Claim, Clock, EncodedEvent, Filter, MemoryStore, Outcome, Range, Row, StoreError,
};
use agentd_turn::{Held, Violation};
use bytes::Bytes;
use futures_util::FutureExt as _;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The disk of the node. It survives every crash.
#[derive(Debug)]
pub(crate) struct Disk {
    pub(crate) backend: Arc<dyn Backend>,
    clock: Arc<AtomicU64>,
    /// The current epoch of each session.
    epochs: BTreeMap<SessionId, u64>,
    /// The acknowledged events of each session, as bytes.
    kept: BTreeMap<SessionId, Vec<Bytes>>,
    pub(crate) deleted: BTreeSet<SessionId>,
    /// When the disk's only writer will have finished its queue.
    pub(crate) free_at: u64,
    pub(crate) flaw: Flaw,
    pub(crate) nodes: Nodes,
    /// The number of appends of an earlier owner that were refused.
    pub(crate) refused: u64,
}

/// Unwraps a future of the memory backend, which never waits.
fn at_once<T>(future: impl Future<Output = T>) -> Result<T, StoreError> {
    future.now_or_never().ok_or(StoreError::Busy("it waits"))
}

fn i1(what: String) -> Violation {
    Violation::of("I1", what)
}

impl Disk {
    pub(crate) fn new(flaw: Flaw) -> Self {
        let clock = Arc::new(AtomicU64::new(0));
        let now = Arc::clone(&clock);
        let read = Clock::new(move || Timestamp(now.load(Ordering::Relaxed)));
        Self {
            backend: Arc::new(MemoryStore::new(read)),
            clock,
            epochs: BTreeMap::new(),
            kept: BTreeMap::new(),
            deleted: BTreeSet::new(),
            free_at: 0,
            flaw,
            nodes: Nodes::new(flaw),
            refused: 0,
        }
    }

    pub(crate) fn tell_time(&self, now: u64) {
        self.clock.store(now, Ordering::Relaxed);
    }

    /// Appends for a node of a fleet, or for the only one, and checks that only the owner could do so (I9).
    pub(crate) fn append(
        &mut self,
        mut append: Append,
        me: Option<u64>,
        lose: bool,
    ) -> Result<Outcome, Violation> {
        let (session, epoch, head) = (append.session, append.epoch, append.head());
        let lines: Vec<Bytes> = append.events.iter().map(|event| event.body.clone()).collect();
        let before = append.expected_head;
        if lose && self.flaw == Flaw::LostAppend && before > 0 {
            return Ok(Outcome::Committed { head, cursor: 0 });
        }
        let parent = append.summary.as_ref().and_then(|summary| summary.parent);
        let owner = *self.epochs.entry(session).or_insert(1);
        if self.flaw == Flaw::NoFence {
            append.epoch = owner;
        }
        let outcome =
            at_once(self.backend.append(append)).unwrap_or_else(|error| Outcome::Failed(error.to_string()));
        if let Outcome::Committed { .. } = outcome {
            if owner != epoch {
                let what = format!("epoch {epoch} appended, the owner has {owner}");
                return Err(Violation::of("I9", what));
            }
            let kept = self.kept.entry(session).or_default();
            if kept.len() as u64 != before {
                return Err(Violation::of(
                    "I2",
                    format!("event {before} is not the head of the log"),
                ));
            }
            kept.extend(lines);
            if before == 0 {
                self.nodes.created(session, parent, me);
            }
        } else if matches!(outcome, Outcome::Fenced { .. }) && epoch < owner {
            self.refused += 1;
        }
        Ok(outcome)
    }

    /// Claims a session for a node of a fleet, or for the only one. The names of nodes are their numbers.
    pub(crate) fn claim(&mut self, session: SessionId, me: Option<u64>) -> Result<Claim, StoreError> {
        let moved = match me {
            Some(me) => self.nodes.claim(session, me)?,
            None => false,
        };
        let mut claim = self.next_epoch(session)?;
        claim.moved_to = moved.then(|| "another node".to_owned());
        Ok(claim)
    }

    fn next_epoch(&mut self, session: SessionId) -> Result<Claim, StoreError> {
        let claim = at_once(self.backend.claim(session))??;
        self.epochs.insert(session, claim.epoch);
        Ok(claim)
    }

    /// Takes over this node's share of the sessions without a live owner; returns those that continue by themselves.
    pub(crate) fn adopt(&mut self, me: u64, now: u64) -> Result<Vec<(SessionId, Timestamp)>, Violation> {
        let rows = self.rows();
        let awake: Vec<SessionId> = rows.iter().map(|row| row.summary.session).collect();
        let before = self.nodes.owners();
        let taken = self.nodes.adopt(me, now, &awake);
        for session in &taken {
            if self.deleted.contains(session) {
                continue;
            }
            self.nodes.may_take(before.get(session).copied().flatten(), me)?;
            let claimed = self.next_epoch(*session);
            claimed.map_err(|error| Violation::of("I9", error.to_string()))?;
        }
        let found = rows.iter().filter(|row| taken.contains(&row.summary.session));
        Ok(found.filter_map(|row| wake_time(row, Timestamp(0))).collect())
    }

    /// The fencing number of the session's owner.
    pub(crate) fn epoch(&self, session: SessionId) -> u64 {
        self.epochs.get(&session).copied().unwrap_or(1)
    }

    /// Registers a log that was written without a loop.
    pub(crate) fn took_in(&mut self, session: SessionId, head: Seq) -> Result<(), StoreError> {
        let lines = self.lines(session, 0, head)?;
        let lines = lines.into_iter().map(|(_, line)| line);
        self.kept.insert(session, lines.collect());
        self.epochs.insert(session, 1);
        self.nodes.created(session, None, None);
        Ok(())
    }

    pub(crate) fn row(&self, session: SessionId) -> Option<Row> {
        at_once(self.backend.row(session)).ok()?.ok()?
    }

    pub(crate) fn rows(&self) -> Vec<Row> {
        let filter = Filter {
            resumable_or_timed: true,
            ..Filter::default()
        };
        at_once(self.backend.list(filter))
            .and_then(|rows| rows)
            .unwrap_or_default()
    }

    pub(crate) fn delete(&mut self, session: SessionId) -> bool {
        let gone = at_once(self.backend.delete(session))
            .and_then(|gone| gone)
            .unwrap_or(false);
        if gone {
            self.deleted.insert(session);
        }
        gone
    }

    /// The lines after `after` up to `upto`.
    pub(crate) fn lines(
        &self,
        session: SessionId,
        after: Seq,
        upto: Seq,
    ) -> Result<Vec<(Seq, Bytes)>, StoreError> {
        let mut lines: Vec<(Seq, Bytes)> = Vec::new();
        let mut at = after;
        while at < upto {
            let range = Range {
                upto: Some(upto),
                ..Range::after(at)
            };
            let page = at_once(self.backend.load(session, range))??;
            let Some((last, _)) = page.events.last() else {
                break;
            };
            at = *last;
            lines.extend(page.events);
        }
        Ok(lines)
    }

    /// The same lines, decoded as events.
    pub(crate) fn events(&self, session: SessionId, after: Seq, upto: Seq) -> Result<Vec<Event>, StoreError> {
        let lines = self.lines(session, after, upto)?;
        lines.iter().map(|(_, line)| EncodedEvent::decode(line)).collect()
    }

    /// The last acknowledged seq.
    pub(crate) fn head(&self, session: SessionId) -> Seq {
        self.kept.get(&session).map_or(0, |kept| kept.len() as u64)
    }

    /// An acknowledged event.
    pub(crate) fn line(&self, session: SessionId, seq: Seq) -> Option<&Bytes> {
        let at = usize::try_from(seq.checked_sub(1)?).ok()?;
        self.kept.get(&session)?.get(at)
    }

    /// I1: everything acknowledged up to here is in the log, byte for byte.
    pub(crate) fn has(&self, session: SessionId, upto: Seq) -> Held {
        if self.deleted.contains(&session) {
            return Ok(());
        }
        let lines = self
            .lines(session, 0, upto)
            .map_err(|error| i1(format!("the log cannot be read: {error}")))?;
        if lines.len() as u64 != upto {
            return Err(i1(format!(
                "{upto} events were acknowledged, {} are there",
                lines.len()
            )));
        }
        for (seq, line) in lines {
            if self.line(session, seq) != Some(&line) {
                return Err(i1(format!("event {seq} is not what was acknowledged")));
            }
        }
        Ok(())
    }

    pub(crate) fn sessions(&self) -> impl Iterator<Item = SessionId> {
        self.kept
            .keys()
            .copied()
            .filter(|session| !self.deleted.contains(session))
    }
}
