//! The time between the end of an answer and the next request of the same conversation: what the daemon and its tool
//! take for a step, seen from outside.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::Instant;

/// The maximum number of gaps kept until the load tool fetches them.
const MAX_GAPS: usize = 1_000_000;

/// One gap.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Gap {
    pub(super) key: String,
    /// The number of earlier answers in this turn.
    pub(super) step: usize,
    pub(super) micros: u64,
}

/// Answers whose next request is pending, and the measured gaps.
#[derive(Debug, Default)]
pub(super) struct Gaps(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    ended: HashMap<String, (usize, Instant)>,
    gaps: Vec<Gap>,
}

impl Gaps {
    /// Records a request.
    pub(super) fn request(&self, key: &str, step: usize) {
        let now = Instant::now();
        let Ok(mut inner) = self.0.lock() else { return };
        let Some((before, at)) = inner.ended.remove(key) else {
            return;
        };
        if before + 1 == step && inner.gaps.len() < MAX_GAPS {
            let micros = u64::try_from(now.duration_since(at).as_micros()).unwrap_or(u64::MAX);
            let key = key.to_owned();
            inner.gaps.push(Gap { key, step, micros });
        }
    }

    /// Records that the last byte of an answer with tool calls was sent.
    pub(super) fn answered(&self, key: &str, step: usize) {
        if let Ok(mut inner) = self.0.lock() {
            inner.ended.insert(key.to_owned(), (step, Instant::now()));
        }
    }

    /// Takes the gaps measured since the last call.
    pub(super) fn take(&self) -> Vec<Gap> {
        self.0
            .lock()
            .map(|mut inner| std::mem::take(&mut inner.gaps))
            .unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_is_between_an_answer_and_the_request_of_the_next_step() {
        let gaps = Gaps::default();
        gaps.request("a", 0);
        gaps.answered("a", 0);
        gaps.request("b", 1);
        gaps.request("a", 1);
        // The same step again is another attempt, not the next step.
        gaps.answered("a", 1);
        gaps.request("a", 1);
        let taken: Vec<_> = gaps.take().into_iter().map(|gap| (gap.key, gap.step)).collect();
        assert_eq!(taken, [("a".to_owned(), 1)]);
        assert_eq!(gaps.take(), []);
    }
}
