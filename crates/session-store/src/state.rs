//! Which viewers follow which session, and what they receive. Pure except for the queues.

use crate::fleet::Fleet;
use crate::follower::{Follower, Need};
use crate::partial::Partial;
use agentd_actor_core::{Attached, FeedEvent, FeedFrame, Published, Viewer, ViewerId};
use agentd_protocol::{Delta, Seq, SessionId, Status};
use agentd_store::EncodedEvent;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The size of a frame without its text, in bytes.
const FRAME_BYTES: usize = 128;

/// The limits of what the feed keeps.
#[derive(Debug, Clone, Copy)]
pub struct FeedLimits {
    /// Bytes queued for one viewer.
    pub viewer_bytes: usize,
    /// Bytes of a running model call's text kept for viewers that attach later.
    pub partial_bytes: usize,
}

impl Default for FeedLimits {
    fn default() -> Self {
        Self {
            viewer_bytes: 4 * 1024 * 1024,
            partial_bytes: 256 * 1024,
        }
    }
}

/// A session that is streaming or has followers.
#[derive(Debug, Default)]
struct Channel {
    /// The last seen event; 0: none yet.
    seq: Seq,
    followers: Vec<Follower>,
    partial: Partial,
    status: Option<Status>,
    /// An append may be durable but not announced.
    unsure: bool,
}

/// The complete state of the feed.
#[derive(Debug)]
pub struct FeedState {
    channels: BTreeMap<SessionId, Channel>,
    pub(crate) fleet: Fleet,
    limits: FeedLimits,
}

pub(crate) fn event_frame(session: SessionId, cursor: u64, event: &EncodedEvent) -> (FeedFrame, usize) {
    let size = event.body.len() + FRAME_BYTES;
    let event = event.clone();
    let shared = FeedEvent {
        session,
        cursor,
        event,
    };
    (FeedFrame::Event(Arc::new(shared)), size)
}

/// The cursor of a commit's first event; 0 if its position is unknown.
pub(crate) const fn first_cursor(published: &Published) -> u64 {
    published
        .cursor
        .saturating_add(1)
        .saturating_sub(published.events.len() as u64)
}

/// The events of a commit with their cursors; all 0 if its position is unknown.
pub(crate) fn numbered(published: &Published) -> impl Iterator<Item = (u64, &EncodedEvent)> {
    let (first, step) = if published.cursor == 0 {
        (0, 0)
    } else {
        (first_cursor(published), 1)
    };
    (0..)
        .zip(&published.events)
        .map(move |(index, event)| (first + index * step, event))
}

impl FeedState {
    /// A feed that has delivered the fleet-wide stream up to this cursor.
    #[must_use]
    pub const fn new(cursor: u64, limits: FeedLimits) -> Self {
        Self {
            channels: BTreeMap::new(),
            fleet: Fleet::new(cursor),
            limits,
        }
    }

    /// Handles committed events.
    pub fn committed(&mut self, published: Published) {
        if let Some(channel) = self.channels.get_mut(&published.session) {
            channel.committed(&published, &self.limits);
        }
        // Without a cursor, its position in the fleet-wide stream is unknown: watchers will read the commit from the log.
        if published.cursor > 0 && !published.events.is_empty() {
            self.fleet.committed(published, &self.limits);
        }
    }

    /// Whether a viewer waits for what other nodes write.
    #[must_use]
    pub fn is_awaited(&self) -> bool {
        self.fleet.is_awaited()
            || self
                .channels
                .values()
                .any(|channel| !channel.followers.is_empty())
    }

    /// Handles a live fragment of a session.
    pub fn delta(&mut self, session: SessionId, delta: Delta) {
        // A sub-agent sends this to its root session, which may be cold and have no viewers.
        if matches!(delta, Delta::Asks { .. }) && !self.channels.contains_key(&session) {
            return;
        }
        let channel = self.channels.entry(session).or_default();
        match &delta {
            Delta::Text(fragment) => channel.partial.add(fragment, self.limits.partial_bytes),
            Delta::Status(status) => channel.status = Some(status.clone()),
            Delta::Thinking(_)
            | Delta::ToolInput(_)
            | Delta::ToolOutput { .. }
            | Delta::Asks { .. }
            | Delta::Viewers { .. }
            | Delta::Unknown => {}
        }
        channel.show(delta, &self.limits);
    }

    /// Handles a session that goes cold.
    pub fn cold(&mut self, session: SessionId) {
        if let Some(channel) = self.channels.get_mut(&session) {
            channel.partial.clear();
            channel.status = None;
            self.tidy(session);
        }
    }

    /// An append of this session may be durable but not announced. The next load of the log reveals its head.
    pub fn unsure(&mut self, session: SessionId) {
        if let Some(channel) = self.channels.get_mut(&session) {
            channel.unsure = true;
        }
    }

    /// The log was loaded again and has this head. Followers that missed events must continue from the log.
    pub fn loaded(&mut self, session: SessionId, head: Seq) {
        let Some(channel) = self.channels.get_mut(&session).filter(|channel| channel.unsure) else {
            return;
        };
        channel.unsure = false;
        if head > channel.seq {
            channel.seq = head;
            channel.partial.clear();
            channel.followers.drain(..).for_each(|follower| follower.lag());
        }
    }

    /// Adds a follower to a session.
    pub fn attach(&mut self, session: SessionId, viewer: Viewer) -> Attached {
        let channel = self.channels.entry(session).or_default();
        channel
            .followers
            .retain(|follower| follower.viewer.id != viewer.id);
        channel.followers.push(Follower::new(viewer));
        if channel.followers.len() > 1 {
            channel.tell_viewers(&self.limits);
        }
        Attached {
            seq: channel.seq,
            status: channel.status.clone(),
            partial: channel.partial.text(),
        }
    }

    /// Removes a follower.
    pub fn detach(&mut self, session: SessionId, id: ViewerId) {
        if let Some(channel) = self.channels.get_mut(&session) {
            let before = channel.followers.len();
            channel.followers.retain(|follower| follower.viewer.id != id);
            if channel.followers.len() < before {
                channel.tell_viewers(&self.limits);
            }
            self.tidy(session);
        }
    }

    pub(crate) fn settle(&mut self, upto: u64) {
        self.fleet.settle(upto, &self.limits);
    }

    /// The number of viewers of a session that may decide. Drops viewers whose queue is closed.
    pub fn deciders(&mut self, session: SessionId) -> u32 {
        let Some(channel) = self.channels.get_mut(&session) else {
            return 0;
        };
        channel
            .followers
            .retain(|follower| !follower.viewer.queue.is_closed());
        let deciders = channel
            .followers
            .iter()
            .filter(|follower| follower.viewer.decides)
            .count();
        self.tidy(session);
        u32::try_from(deciders).unwrap_or(u32::MAX)
    }

    /// Drops a channel without followers and without content for later viewers.
    fn tidy(&mut self, session: SessionId) {
        let idle = |channel: &Channel| {
            channel.followers.is_empty() && channel.status.is_none() && channel.partial.text().is_none()
        };
        if self.channels.get(&session).is_some_and(idle) {
            self.channels.remove(&session);
        }
    }

    #[cfg(test)]
    pub(crate) fn channels(&self) -> usize {
        self.channels.len()
    }
}

impl Channel {
    fn committed(&mut self, published: &Published, limits: &FeedLimits) {
        for (cursor, event) in numbered(published) {
            // In a fleet, an event of this node is announced twice.
            if event.seq <= self.seq {
                continue;
            }
            if matches!(
                event.kind.as_ref(),
                "model.finished" | "model.failed" | "turn.finished"
            ) {
                self.partial.clear();
            }
            if self.seq > 0 && event.seq > self.seq + 1 {
                // A commit in between never arrived: the followers have a gap and must read the log.
                for follower in self.followers.drain(..) {
                    follower.lag();
                }
            }
            self.seq = event.seq;
            if self.followers.is_empty() {
                continue;
            }
            let (frame, size) = event_frame(published.session, cursor, event);
            self.followers
                .retain_mut(|follower| follower.offer(frame.clone(), size, Need::Must, limits.viewer_bytes));
        }
    }

    fn tell_viewers(&mut self, limits: &FeedLimits) {
        let count = u32::try_from(self.followers.len()).unwrap_or(u32::MAX);
        self.show(Delta::Viewers { count }, limits);
    }

    fn show(&mut self, delta: Delta, limits: &FeedLimits) {
        if self.followers.is_empty() {
            return;
        }
        let (size, need) = match &delta {
            Delta::Text(part) | Delta::Thinking(part) | Delta::ToolInput(part) => {
                (part.text.len(), Need::May)
            }
            Delta::ToolOutput { text, .. } => (text.len(), Need::May),
            Delta::Status(status) => (status.reason.len(), Need::Must),
            Delta::Asks { approvals, .. } => {
                let sizes = approvals.iter().map(|open| open.title.len() + open.detail.len());
                (sizes.sum(), Need::Must)
            }
            Delta::Viewers { .. } => (0, Need::May),
            Delta::Unknown => return,
        };
        let delta = Arc::new(delta);
        self.followers.retain_mut(|follower| {
            let frame = FeedFrame::Delta(Arc::clone(&delta));
            !follower.viewer.deltas || follower.offer(frame, size + FRAME_BYTES, need, limits.viewer_bytes)
        });
    }
}
