//! The fleet-wide stream: the commits of all sessions in cursor order.

use crate::follower::{Follower, Need};
use crate::state::{FeedLimits, event_frame, first_cursor, numbered};
use agentd_actor_core::{Published, Viewer, ViewerId};
use std::collections::BTreeMap;

/// The maximum number of commits that wait for an earlier one.
const MAX_WAITING: usize = 4_096;

/// Cursors have no gaps, but the tasks that announce commits can overtake each other. Watchers read commits that never
/// arrive (a lost answer, an import that bypasses the store's actor) from the log.
#[derive(Debug)]
pub(crate) struct Fleet {
    /// The next expected cursor.
    next: u64,
    /// Commits that arrived early, by their first cursor.
    waiting: BTreeMap<u64, Published>,
    watchers: Vec<Follower>,
}

impl Fleet {
    /// A stream whose last event has this cursor.
    pub(crate) const fn new(cursor: u64) -> Self {
        Self {
            next: cursor.saturating_add(1),
            waiting: BTreeMap::new(),
            watchers: Vec::new(),
        }
    }

    /// Adds a watcher. Returns the cursor after which its events begin.
    pub(crate) fn watch(&mut self, viewer: Viewer, patient: bool) -> u64 {
        self.unwatch(viewer.id);
        let mut watcher = Follower::new(viewer);
        watcher.patient = patient;
        self.watchers.push(watcher);
        self.next.saturating_sub(1)
    }

    /// Whether a watcher wants events at once.
    pub(crate) fn is_awaited(&self) -> bool {
        self.watchers.iter().any(|watcher| !watcher.patient)
    }

    pub(crate) fn unwatch(&mut self, id: ViewerId) {
        self.watchers.retain(|watcher| watcher.viewer.id != id);
    }

    pub(crate) fn committed(&mut self, published: Published, limits: &FeedLimits) {
        let first = first_cursor(&published);
        if first < self.next {
            return;
        }
        self.waiting.insert(first, published);
        self.deliver(limits);
        if self.waiting.len() > MAX_WAITING {
            let upto = self.waiting.last_key_value().map_or(0, |(_, last)| last.cursor);
            self.settle(upto, limits);
        }
    }

    /// Gives up on missing commits up to this cursor: the watchers must read them from the log.
    pub(crate) fn settle(&mut self, upto: u64, limits: &FeedLimits) {
        if upto < self.next {
            return;
        }
        for watcher in self.watchers.drain(..) {
            watcher.lag();
        }
        self.next = upto.saturating_add(1);
        self.waiting = self.waiting.split_off(&self.next);
        self.deliver(limits);
    }

    fn deliver(&mut self, limits: &FeedLimits) {
        while let Some(published) = self.waiting.remove(&self.next) {
            self.next = published.cursor.saturating_add(1);
            for (cursor, event) in numbered(&published) {
                if self.watchers.is_empty() {
                    continue;
                }
                let (frame, size) = event_frame(published.session, cursor, event);
                self.watchers.retain_mut(|watcher| {
                    watcher.offer(frame.clone(), size, Need::Must, limits.viewer_bytes)
                });
            }
        }
    }
}
