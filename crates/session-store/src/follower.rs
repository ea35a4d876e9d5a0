//! A viewer's bounded queue: its current size, and what happens when it is full.

use agentd_actor_core::{FeedFrame, Viewer};
use std::collections::VecDeque;

/// The default length of a viewer's queue.
pub const VIEWER_FRAMES: usize = 1_024;

/// How important a frame is to a slow viewer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Need {
    /// Without this frame the viewer has a gap, so it receives `Lagged` instead.
    Must,
    /// May be dropped: the log will contain the content, too.
    May,
}

/// A viewer with the sizes of the frames still in its queue.
#[derive(Debug)]
pub(crate) struct Follower {
    pub(crate) viewer: Viewer,
    /// Whether events of other nodes may reach it a little later.
    pub(crate) patient: bool,
    sizes: VecDeque<usize>,
    bytes: usize,
}

impl Follower {
    pub(crate) const fn new(viewer: Viewer) -> Self {
        Self {
            viewer,
            patient: false,
            sizes: VecDeque::new(),
            bytes: 0,
        }
    }

    /// Queues a frame. `false`: remove the viewer, because it is gone or was told that it lags.
    pub(crate) fn offer(&mut self, frame: FeedFrame, size: usize, need: Need, max_bytes: usize) -> bool {
        self.settle();
        let (free, length) = (self.viewer.queue.capacity(), self.viewer.queue.max_capacity());
        let too_many_bytes = self.bytes > 0 && self.bytes.saturating_add(size) > max_bytes;
        match need {
            // The last quarter of the queue is reserved for required frames.
            Need::May if too_many_bytes || free <= length / 4 => !self.viewer.queue.is_closed(),
            // The last slot is reserved for `Lagged`.
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

    /// Tells the viewer to continue from the log.
    pub(crate) fn lag(&self) {
        // If the queue is closed, or another sender fills it, the viewer notices when the queue ends.
        let _ = self.viewer.queue.try_send(FeedFrame::Lagged);
    }

    /// Drops the sizes of the frames that the viewer has received.
    fn settle(&mut self) {
        let queue = &self.viewer.queue;
        let waiting = queue.max_capacity().saturating_sub(queue.capacity());
        while self.sizes.len() > waiting {
            let taken = self.sizes.pop_front().unwrap_or_default();
            self.bytes = self.bytes.saturating_sub(taken);
        }
    }
}
