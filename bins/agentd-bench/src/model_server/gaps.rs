//! The time between the end of an answer and the next request of the same conversation: what the daemon and its tool
//! needed for a step, seen from outside.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::Instant;

/// Gaps that are kept until somebody asks for them.
const MAX_GAPS: usize = 1_000_000;

/// One of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Gap {
    pub(super) key: String,
    /// Answers before it in this turn.
    pub(super) step: usize,
    pub(super) micros: u64,
}

/// Ends of answers that wait for their next request, and what was measured.
#[derive(Debug, Default)]
pub(super) struct Gaps(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    ended: HashMap<String, (usize, Instant)>,
    gaps: Vec<Gap>,
}

impl Gaps {
    /// A request came in.
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

    /// The last byte of an answer that asks for tools was handed over.
    pub(super) fn answered(&self, key: &str, step: usize) {
        if let Ok(mut inner) = self.0.lock() {
            inner.ended.insert(key.to_owned(), (step, Instant::now()));
        }
    }

    /// What was measured since the last time.
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
