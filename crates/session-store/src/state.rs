//! Who follows which session, and what they get. Pure but for the queues.

use crate::fleet::Fleet;
use crate::follower::{Follower, Need};
use crate::partial::Partial;
use agentd_actor_core::{Attached, FeedEvent, FeedFrame, Published, Viewer, ViewerId};
use agentd_protocol::{Delta, Seq, SessionId, Status};
use agentd_store::EncodedEvent;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What a frame weighs beside its text.
const FRAME_BYTES: usize = 128;

/// How much the feed keeps.
#[derive(Debug, Clone, Copy)]
pub struct FeedLimits {
    /// Bytes that may wait in one viewer's queue.
    pub viewer_bytes: usize,
    /// Bytes of a running model call's text that are kept for late joiners.
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

/// A session that somebody follows or that is streaming.
#[derive(Debug, Default)]
struct Channel {
    /// The last event seen; 0: none yet.
    seq: Seq,
    followers: Vec<Follower>,
    partial: Partial,
    status: Option<Status>,
    /// An append may be durable that nobody announced.
    unsure: bool,
}

/// Everything that the feed knows.
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

/// The cursor of a commit's first event; 0 when its place is not known.
pub(crate) const fn first_cursor(published: &Published) -> u64 {
    published
        .cursor
        .saturating_add(1)
        .saturating_sub(published.events.len() as u64)
}

/// The events of a commit with their cursors; all 0 when its place is not known.
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
    /// A feed that has told the fleet-wide stream up to this cursor.
    #[must_use]
    pub const fn new(cursor: u64, limits: FeedLimits) -> Self {
        Self {
            channels: BTreeMap::new(),
            fleet: Fleet::new(cursor),
            limits,
        }
    }

    /// Events were committed.
    pub fn committed(&mut self, published: Published) {
        if let Some(channel) = self.channels.get_mut(&published.session) {
            channel.committed(&published, &self.limits);
        }
        // Without a cursor its place in the fleet-wide stream is not known; the watchers will find it in the log.
        if published.cursor > 0 && !published.events.is_empty() {
            self.fleet.committed(published, &self.limits);
        }
    }

    /// A live fragment of a session.
    pub fn delta(&mut self, session: SessionId, delta: Delta) {
        // A sub-agent speaks of its root, which may be cold and watched by nobody.
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
            | Delta::Unknown => {}
        }
        channel.show(delta, &self.limits);
    }

    /// The session went cold.
    pub fn cold(&mut self, session: SessionId) {
        if let Some(channel) = self.channels.get_mut(&session) {
            channel.partial.clear();
            channel.status = None;
            self.tidy(session);
        }
    }

    /// An append of this session may be durable that nobody announced. Where the log ends is known when it is read again.
    pub fn unsure(&mut self, session: SessionId) {
        if let Some(channel) = self.channels.get_mut(&session) {
            channel.unsure = true;
        }
    }

    /// The log of a session was read again and ends here: who follows, and was not told of all of it, reads on from there.
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

    /// Somebody follows a session from now on.
    pub fn attach(&mut self, session: SessionId, viewer: Viewer) -> Attached {
        let channel = self.channels.entry(session).or_default();
        channel
            .followers
            .retain(|follower| follower.viewer.id != viewer.id);
        channel.followers.push(Follower::new(viewer));
        Attached {
            seq: channel.seq,
            status: channel.status.clone(),
            partial: channel.partial.text(),
        }
    }

    /// Somebody stops following.
    pub fn detach(&mut self, session: SessionId, id: ViewerId) {
        if let Some(channel) = self.channels.get_mut(&session) {
            channel.followers.retain(|follower| follower.viewer.id != id);
            self.tidy(session);
        }
    }

    pub(crate) fn settle(&mut self, upto: u64) {
        self.fleet.settle(upto, &self.limits);
    }

    /// How many viewers of a session may decide. One whose queue is closed has left without a word.
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

    /// Forgets a channel that nobody follows and that has nothing for late joiners.
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
            if matches!(
                event.kind.as_ref(),
                "model.finished" | "model.failed" | "turn.finished"
            ) {
                self.partial.clear();
            }
            if event.seq <= self.seq {
                continue;
            }
            if self.seq > 0 && event.seq > self.seq + 1 {
                // A commit in between never came by: whoever follows has a hole and must read the log.
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
            Delta::Unknown => return,
        };
        let delta = Arc::new(delta);
        self.followers.retain_mut(|follower| {
            let frame = FeedFrame::Delta(Arc::clone(&delta));
            !follower.viewer.deltas || follower.offer(frame, size + FRAME_BYTES, need, limits.viewer_bytes)
        });
    }
}
