//! Counts viewers, and how long each can wait for the next frames.
//!
//! A frame for each of 200 viewers of a session costs more than the step that it reports. So the more viewers there are, the
//! less often each one is written to, and the more frames it gets at a time: together they cost the same as a few. Viewers of
//! different sessions get different frames, so a node may have many more of them before they wait, too.

use agentd_protocol::SessionId;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::sleep;

/// Up to this many viewers of a session are written to without a pause.
const FEW: u64 = 8;
/// The pause that each viewer adds for all viewers of its session, when there are more than a few.
const EACH: Duration = Duration::from_micros(500);
/// Up to this many viewers of a node are written to without a pause.
const MANY: u64 = 200;
/// The pause that each viewer adds for all viewers of its node, when there are more than these.
const EACH_OF_MANY: Duration = Duration::from_micros(50);
/// The longest pause: a person does not notice it.
const MOST: Duration = Duration::from_millis(100);

/// The viewers of a node.
#[derive(Debug, Clone, Default)]
pub(crate) struct Crowds(Arc<Counts>);

#[derive(Debug, Default)]
struct Counts {
    node: AtomicU64,
    sessions: Mutex<HashMap<SessionId, Arc<AtomicU64>>>,
}

/// A viewer, counted until dropped.
#[derive(Debug)]
pub(crate) struct Member {
    crowds: Crowds,
    session: SessionId,
    /// Its session's viewers.
    count: Arc<AtomicU64>,
}

impl Crowds {
    /// Adds a viewer of a session.
    pub(crate) fn join(&self, session: SessionId) -> Member {
        let mut sessions = self.sessions();
        let count = Arc::clone(sessions.entry(session).or_default());
        count.fetch_add(1, Ordering::Relaxed);
        self.0.node.fetch_add(1, Ordering::Relaxed);
        Member {
            crowds: self.clone(),
            session,
            count,
        }
    }

    fn sessions(&self) -> MutexGuard<'_, HashMap<SessionId, Arc<AtomicU64>>> {
        self.0.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        let mut sessions = self.crowds.sessions();
        if self.count.fetch_sub(1, Ordering::Relaxed) == 1 {
            sessions.remove(&self.session);
        }
        self.crowds.0.node.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Member {
    /// Waits until it is this viewer's turn again: not at all when there are only a few others.
    pub(crate) async fn pause(&self, viewer: u64) {
        let [session, node] = self.counts();
        let pause = pause(session, node, viewer);
        if !pause.is_zero() {
            sleep(pause).await;
        }
    }

    /// The viewers of its session and of its node.
    fn counts(&self) -> [u64; 2] {
        [&self.count, &self.crowds.0.node].map(|count| count.load(Ordering::Relaxed))
    }
}

/// The pauses differ a little, so that the viewers do not all wake at the same moment.
fn pause(session: u64, node: u64, viewer: u64) -> Duration {
    let of = |viewers: u64, free: u64, each: Duration| {
        let viewers = if viewers > free { viewers } else { 0 };
        each.saturating_mul(u32::try_from(viewers).unwrap_or(u32::MAX))
    };
    let pause = of(session, FEW, EACH).max(of(node, MANY, EACH_OF_MANY)).min(MOST);
    let part = u32::try_from(viewer % 16).unwrap_or_default();
    pause.saturating_sub(pause / 64 * part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn i6_more_viewers_mean_fewer_writes_to_each() {
        assert_eq!(pause(FEW, MANY, 1), Duration::ZERO);
        assert_eq!(pause(FEW + 1, FEW + 1, 0), Duration::from_micros(4_500));
        assert_eq!(pause(100, 100, 16), Duration::from_millis(50));
        assert!(pause(100, 100, 1) < pause(100, 100, 16));
        assert_eq!(pause(1, MANY + 1, 0), Duration::from_micros(10_050));
        assert_eq!(pause(100, 1_000, 0), Duration::from_millis(50));
        assert_eq!(pause(1, 100_000, 0), MOST);
    }

    #[test]
    fn a_viewer_counts_for_its_session_and_its_node_while_it_follows() {
        let crowds = Crowds::default();
        let [busy, other] = [1, 2].map(|n| SessionId::from_bytes([n; 16]));
        let (first, second, third) = (crowds.join(busy), crowds.join(busy), crowds.join(other));
        assert_eq!(
            [&first, &second, &third].map(Member::counts),
            [[2, 3], [2, 3], [1, 3]]
        );
        drop(first);
        assert_eq!(second.counts(), [1, 2]);
        drop((second, third));
        assert!(crowds.sessions().is_empty());
        assert_eq!(crowds.0.node.load(Ordering::Relaxed), 0);
    }
}
