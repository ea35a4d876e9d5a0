//! Recognizes a model that goes round in circles: the same few steps in the same order, with the same results.
//!
//! Results count, so that a model which polls for something is left alone while it gets news.

use agentd_protocol::LoopLimits;
use std::collections::VecDeque;

/// The most steps to remember: a cycle of eight steps, eight times.
const REMEMBERED: usize = 64;

/// A step: a hash of its calls with their results, and the number of its calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Step {
    print: u64,
    calls: usize,
}

/// The last steps of a turn.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Cycles {
    steps: VecDeque<Step>,
    /// The length of the cycle of which the model was told, and how many of its steps were made since.
    told: Option<(usize, usize)>,
}

impl Cycles {
    /// Takes a finished step: the hashes of its calls with their results, in the order of the calls.
    pub(crate) fn step(&mut self, calls: impl Iterator<Item = u64>) {
        let empty = Step { print: 0, calls: 0 };
        let step = calls.fold(empty, |step, call| Step {
            print: (step.print.rotate_left(5) ^ call).wrapping_mul(0x0100_0000_01b3),
            calls: step.calls + 1,
        });
        if let Some((length, since)) = self.told {
            let again = self.back(length) == Some(&step);
            self.told = again.then_some((length, since + 1));
        }
        if self.steps.len() >= REMEMBERED {
            self.steps.pop_front();
        }
        self.steps.push_back(step);
    }

    /// The cycle to warn about: its length and the number of repetitions.
    pub(crate) fn found(&self, limits: &LoopLimits) -> Option<(usize, usize)> {
        let size = |limit: u32| usize::try_from(limit).unwrap_or(usize::MAX);
        if self.told.is_some() || limits.repeated_calls == 0 {
            return None;
        }
        let times = size(limits.repeated_calls).max(2);
        let longest = size(limits.longest_cycle).min(REMEMBERED / times);
        let length = (1..=longest).find(|length| self.ends_in(*length, times))?;
        Some((length, times))
    }

    /// Records that the model was told.
    pub(crate) fn tell(&mut self, limits: &LoopLimits) {
        if let Some((length, _)) = self.found(limits) {
            self.told = Some((length, 0));
        }
    }

    /// The model was told, and made the whole cycle again.
    pub(crate) fn goes_on(&self) -> bool {
        self.told.is_some_and(|(length, since)| since >= length)
    }

    /// The step that is this many steps back; 1 is the last one.
    fn back(&self, many: usize) -> Option<&Step> {
        self.steps.get(self.steps.len().checked_sub(many)?)
    }

    /// Whether the last steps repeat a cycle of this length this many times.
    fn ends_in(&self, length: usize, times: usize) -> bool {
        let Some(last) = self.back(1) else { return false };
        // The guard against repeated calls watches a single call, whatever its result.
        let of_one_call = |back| {
            self.back(back)
                .is_some_and(|step| step.calls == 1 && step == last)
        };
        if (1..=length).all(of_one_call) {
            return false;
        }
        self.steps.len() >= length * times
            && (1..=length * (times - 1)).all(|back| self.back(back) == self.back(back + length))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(longest_cycle: u32, repeated_calls: u32) -> LoopLimits {
        LoopLimits {
            longest_cycle,
            repeated_calls,
            ..LoopLimits::default()
        }
    }

    /// Steps as words; each letter is a call with its result.
    fn made(steps: &str) -> Cycles {
        let mut cycles = Cycles::default();
        for step in steps.split_whitespace() {
            cycles.step(step.bytes().map(u64::from));
        }
        cycles
    }

    #[test]
    fn short_cycles_are_found_and_progress_is_not() {
        for (steps, found) in [
            ("", None),
            ("a", None),
            ("a b a b", None),
            ("a b a b a", None),
            ("a b a b a b", Some(2)),
            ("x y z a b a b a b", Some(2)),
            ("b a b a b a b", Some(2)),
            ("a b c a b c a b c", Some(3)),
            ("a b c a b c a b", None),
            ("a b c d a b c d a b c d", Some(4)),
            ("a a b a a b a a b", Some(3)),
            // Longer than the longest cycle.
            ("a b c d e a b c d e a b c d e", None),
            // Something else in between.
            ("a b a b x a b", None),
            ("a b a x a b a b", None),
            // The same calls, and each time another result.
            ("a 1 a 2 a 3 a 4", None),
            ("1 2 3 4 5 6 7 8 9", None),
            // One call again and again: another guard.
            ("a a a a a a a a", None),
            // Several calls in each step.
            ("ab ab ab", Some(1)),
            ("ab ab", None),
            ("ab ba ab ba ab ba", Some(2)),
            ("ab c ab c ab c", Some(2)),
            ("ab ac ab ad ab ae", None),
        ] {
            let length = made(steps).found(&limits(4, 3)).map(|(length, _)| length);
            assert_eq!(length, found, "{steps}");
        }
    }

    #[test]
    fn both_limits_hold_exactly_and_zero_switches_off() {
        let found = |steps: &str, longest, times| made(steps).found(&limits(longest, times));
        assert_eq!(found("a b c a b c", 3, 2), Some((3, 2)));
        assert_eq!(found("a b c a b c", 2, 2), None);
        assert_eq!(found("a b c a b c", 3, 3), None);
        assert_eq!(found("a b a b a b", 0, 3), None);
        assert_eq!(found("a b a b a b", 4, 0), None);
        // Once is no repetition.
        assert_eq!(found("a b", 4, 1), None);
        assert_eq!(found("a b a b", 4, 1), Some((2, 2)));
    }

    #[test]
    fn memory_is_bounded_and_a_huge_limit_finds_what_is_remembered() {
        let cycles = made(&"a b ".repeat(200));
        assert_eq!(cycles.steps.len(), REMEMBERED);
        assert_eq!(cycles.found(&limits(u32::MAX, 32)), Some((2, 32)));
        assert_eq!(cycles.found(&limits(u32::MAX, 33)), None);
        assert_eq!(cycles.found(&limits(u32::MAX, u32::MAX)), None);
    }

    #[test]
    fn a_told_model_may_leave_the_cycle_but_not_make_it_again() {
        let limits = limits(4, 3);
        for (next, ends) in [
            ("a", false),
            ("a b", true),
            ("c", false),
            ("a c", false),
            ("a b c", false),
        ] {
            let mut cycles = made("a b a b a b");
            cycles.tell(&limits);
            assert_eq!(cycles.found(&limits), None, "told once");
            for step in next.split_whitespace() {
                cycles.step(step.bytes().map(u64::from));
            }
            assert_eq!(cycles.goes_on(), ends, "{next}");
        }
        let mut again = made("a b a b a b");
        again.tell(&limits);
        for step in ["c", "a", "b", "a", "b", "a", "b"] {
            again.step(step.bytes().map(u64::from));
        }
        assert_eq!(
            again.found(&limits),
            Some((2, 3)),
            "and told again after something else"
        );
    }
}
