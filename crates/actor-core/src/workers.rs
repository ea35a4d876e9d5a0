//! The workers of a parent: actors that do its long work.

use ractor::{ActorCell, ActorId, SupervisionEvent};
use std::collections::BTreeMap;
use std::fmt;

/// Why a worker is down without having sent its result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Down {
    /// It panicked, or its handler returned an error.
    Failed(String),
    /// It was killed.
    Killed(String),
}

impl fmt::Display for Down {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed(why) => write!(f, "failed: {why}"),
            Self::Killed(why) => write!(f, "killed: {why}"),
        }
    }
}

/// The workers of one parent, by actor id, each with its work. A killed worker is forgotten at once, so that its
/// down-event cannot be mistaken for news.
#[derive(Debug)]
pub struct WorkerTable<W>(BTreeMap<ActorId, (W, ActorCell)>);

impl<W> Default for WorkerTable<W> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<W: Clone + PartialEq> WorkerTable<W> {
    /// Adds a worker that was spawned linked to the parent.
    pub fn add(&mut self, worker: ActorCell, work: W) {
        self.0.insert(worker.get_id(), (work, worker));
    }

    /// Kills the worker that does this work, if there is one. Its resources are released in `Drop`.
    pub fn kill(&mut self, work: &W) -> bool {
        self.kill_first(|w| w == work)
    }

    /// Kills one worker whose work satisfies the predicate, if there is one.
    pub fn kill_first(&mut self, is_it: impl Fn(&W) -> bool) -> bool {
        let id = self.0.iter().find(|(_, (w, _))| is_it(w)).map(|(id, _)| *id);
        id.and_then(|id| self.0.remove(&id))
            .map(|(_, worker)| worker.kill())
            .is_some()
    }

    /// Kills all workers.
    pub fn kill_all(&mut self) {
        while let Some((_, (_, worker))) = self.0.pop_first() {
            worker.kill();
        }
    }

    /// The number of running workers.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Reads a supervision event. `Some` names the work of a worker that went down silently, and why. The caller must
    /// re-queue it to itself as a message: supervision overtakes messages, and the result may still be in the mailbox.
    pub fn fell(&mut self, event: SupervisionEvent) -> Option<(W, Down)> {
        match event {
            SupervisionEvent::ActorFailed(cell, error) => self
                .0
                .remove(&cell.get_id())
                .map(|(work, _)| (work, Down::Failed(error.to_string()))),
            SupervisionEvent::ActorTerminated(cell, _, None) => {
                // A normal end: the result is in the mailbox. This also catches a worker that ends without a result.
                self.0
                    .remove(&cell.get_id())
                    .map(|(work, _)| (work, Down::Killed("ended without a result".to_owned())))
            }
            SupervisionEvent::ActorTerminated(cell, _, Some(reason)) => self
                .0
                .remove(&cell.get_id())
                .map(|(work, _)| (work, Down::Killed(reason))),
            SupervisionEvent::ActorStarted(_) | SupervisionEvent::ProcessGroupChanged(_) => None,
        }
    }
}
