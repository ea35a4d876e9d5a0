//! Limits the load of a pass: it works for a moment, then rests according to its share. It learns immediately when it
//! must end.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError, channel};
use std::time::{Duration, Instant};

/// How long a pass works between rests.
const STRETCH: Duration = Duration::from_millis(20);
/// The longest rest.
const LONGEST: Duration = Duration::from_secs(2);

/// Ends the pass when dropped.
#[derive(Debug)]
pub struct Leash(#[expect(dead_code, reason = "what counts is its end")] Sender<()>);

/// The pace of one pass.
#[derive(Debug)]
pub struct Pace {
    ended: Receiver<()>,
    share: u32,
    since: Instant,
}

impl Pace {
    /// A pace with a share of one processor, in percent, and the leash that ends it.
    #[must_use]
    pub fn new(share: u32) -> (Self, Leash) {
        let (leash, ended) = channel();
        let pace = Self {
            ended,
            share: share.clamp(1, 100),
            since: Instant::now(),
        };
        (pace, Leash(leash))
    }

    /// Whether the pass must end.
    pub(crate) fn is_over(&self) -> bool {
        matches!(self.ended.try_recv(), Err(TryRecvError::Disconnected))
    }

    /// Whether a rest is due.
    pub(crate) fn is_due(&self) -> bool {
        self.since.elapsed() >= STRETCH
    }

    /// Rests in proportion to the work since the last rest.
    pub(crate) fn rest(&mut self) {
        let rest = due(self.since.elapsed(), self.share);
        if !rest.is_zero() {
            self.wait(rest);
        }
        self.since = Instant::now();
    }

    /// Waits. Returns whether the pass may continue.
    pub(crate) fn wait(&self, time: Duration) -> bool {
        !matches!(self.ended.recv_timeout(time), Err(RecvTimeoutError::Disconnected))
    }
}

fn due(worked: Duration, share: u32) -> Duration {
    (worked * (100 - share) / share).min(LONGEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_follows_from_the_cpu_share() {
        let ms = Duration::from_millis;
        assert_eq!(due(ms(20), 50), ms(20));
        assert_eq!(due(ms(20), 25), ms(60));
        assert_eq!(due(ms(20), 100), Duration::ZERO);
        assert_eq!(due(ms(60_000), 1), LONGEST);
    }

    #[test]
    fn i6_a_cancelled_pass_does_not_pause_first() {
        let (pace, leash) = Pace::new(1);
        assert!(!pace.is_over());
        drop(leash);
        assert!(pace.is_over() && !pace.wait(Duration::from_secs(3_600)));
    }
}
