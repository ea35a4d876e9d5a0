//! Counts the viewers of each session, and how long each can wait for the next frames.
//!
//! A frame for each of 200 viewers costs more than the step it reports. So the more viewers a session has, the less often each
//! one is written to, and the more frames it gets at a time: together they cost the same as a few. The viewers of other
//! sessions do not count: what they cost grows with the steps of those.

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
/// The longest pause: a person does not notice it.
const MOST: Duration = Duration::from_millis(100);

/// The viewers of each session on this node.
#[derive(Debug, Clone, Default)]
pub(crate) struct Crowds(Arc<Mutex<HashMap<SessionId, Arc<AtomicU64>>>>);

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
        let mut counts = self.counts();
        let count = Arc::clone(counts.entry(session).or_default());
        count.fetch_add(1, Ordering::Relaxed);
        Member {
            crowds: self.clone(),
            session,
            count,
        }
    }

    fn counts(&self) -> MutexGuard<'_, HashMap<SessionId, Arc<AtomicU64>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        let mut counts = self.crowds.counts();
        if self.count.fetch_sub(1, Ordering::Relaxed) == 1 {
            counts.remove(&self.session);
        }
    }
}

impl Member {
    /// Waits until it is this viewer's turn again: not at all when its session has only a few others.
    pub(crate) async fn pause(&self, viewer: u64) {
        let pause = pause(self.count.load(Ordering::Relaxed), viewer);
        if !pause.is_zero() {
            sleep(pause).await;
        }
    }
}

/// The pauses differ a little, so that the viewers do not all wake at the same moment.
fn pause(viewers: u64, viewer: u64) -> Duration {
    if viewers <= FEW {
        return Duration::ZERO;
    }
    let pause = EACH
        .saturating_mul(u32::try_from(viewers).unwrap_or(u32::MAX))
        .min(MOST);
    let part = u32::try_from(viewer % 16).unwrap_or_default();
    pause.saturating_sub(pause / 64 * part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn i6_more_viewers_mean_fewer_writes_to_each() {
        assert_eq!(pause(FEW, 1), Duration::ZERO);
        assert_eq!(pause(100, 16), Duration::from_millis(50));
        assert!(pause(100, 1) < pause(100, 16));
        assert_eq!(pause(100_000, 0), MOST);
    }

    #[test]
    fn a_viewer_counts_for_its_session_while_it_follows() {
        let crowds = Crowds::default();
        let [busy, other] = [1, 2].map(|n| SessionId::from_bytes([n; 16]));
        let (first, second, third) = (crowds.join(busy), crowds.join(busy), crowds.join(other));
        let count = |member: &Member| member.count.load(Ordering::Relaxed);
        assert_eq!([&first, &second, &third].map(count), [2, 2, 1]);
        drop(first);
        assert_eq!(count(&second), 1);
        drop((second, third));
        assert!(crowds.counts().is_empty());
    }
}
