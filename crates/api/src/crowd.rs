//! Counts the viewers of sessions, and how long each can wait for the next frames.
//!
//! A frame for each of 200 viewers costs more than the step it reports. So the more viewers there are, the less often each
//! one is written to, and the more frames it gets at a time: together they cost the same as a few.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::time::sleep;

/// Up to this many viewers are written to without a pause.
const FEW: u64 = 8;
/// The pause that each viewer adds for all viewers, when there are more than a few.
const EACH: Duration = Duration::from_micros(500);
/// The longest pause: a person does not notice it.
const MOST: Duration = Duration::from_millis(100);

/// The viewers of a node.
#[derive(Debug, Clone, Default)]
pub(crate) struct Crowd(Arc<AtomicU64>);

/// A viewer, counted until dropped.
#[derive(Debug)]
pub(crate) struct Member(Crowd);

impl Crowd {
    /// Adds a viewer.
    pub(crate) fn join(&self) -> Member {
        self.0.fetch_add(1, Ordering::Relaxed);
        Member(self.clone())
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Member {
    /// Waits until it is this viewer's turn again: not at all when there are only a few others.
    pub(crate) async fn pause(&self, viewer: u64) {
        let pause = pause(self.0.0.load(Ordering::Relaxed), viewer);
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
    fn a_viewer_counts_while_it_follows() {
        let crowd = Crowd::default();
        let (first, second) = (crowd.join(), crowd.join());
        assert_eq!(crowd.0.load(Ordering::Relaxed), 2);
        drop((first, second));
        assert_eq!(crowd.0.load(Ordering::Relaxed), 0);
    }
}
