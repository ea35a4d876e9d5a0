//! One viewer's bounded queue: how much is in it, and what happens when it is full.

use agentd_actor_core::{FeedFrame, Viewer};
use std::collections::VecDeque;

/// The usual length of a viewer's queue.
pub const VIEWER_FRAMES: usize = 1_024;

/// How much a frame matters to a viewer that is slow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Need {
    /// Without it the viewer has a hole: it is told that it lags.
    Must,
    /// The log has it in the end, too: it can be left out.
    May,
}

/// A viewer with the sizes of what it has not taken yet.
#[derive(Debug)]
pub(crate) struct Follower {
    pub(crate) viewer: Viewer,
    sizes: VecDeque<usize>,
    bytes: usize,
}

impl Follower {
    pub(crate) const fn new(viewer: Viewer) -> Self {
        Self {
            viewer,
            sizes: VecDeque::new(),
            bytes: 0,
        }
    }

    /// Queues a frame; `false`: the viewer is gone or was told that it lags, and is to be forgotten.
    pub(crate) fn offer(&mut self, frame: FeedFrame, size: usize, need: Need, max_bytes: usize) -> bool {
        self.settle();
        let (free, length) = (self.viewer.queue.capacity(), self.viewer.queue.max_capacity());
        let too_many_bytes = self.bytes > 0 && self.bytes.saturating_add(size) > max_bytes;
        match need {
            // The last quarter is kept for what must arrive.
            Need::May if too_many_bytes || free <= length / 4 => !self.viewer.queue.is_closed(),
            // The last place is kept for the word that it lags.
            Need::Must if too_many_bytes || free <= 1 => {
                self.lag();
                false
            }
            Need::May | Need::Must => {
                self.sizes.push_back(size);
                self.bytes = self.bytes.saturating_add(size);
                self.viewer.queue.try_send(frame).is_ok()
            }
        }
    }

    /// Tells the viewer to read on from the log.
    pub(crate) fn lag(&self) {
        // Closed, or somebody else fills the queue: the viewer notices either way when the queue ends.
        let _ = self.viewer.queue.try_send(FeedFrame::Lagged);
    }

    /// Forgets the sizes of what the viewer has taken.
    fn settle(&mut self) {
        let queue = &self.viewer.queue;
        let waiting = queue.max_capacity().saturating_sub(queue.capacity());
        while self.sizes.len() > waiting {
            let taken = self.sizes.pop_front().unwrap_or_default();
            self.bytes = self.bytes.saturating_sub(taken);
        }
    }
}
