//! Guards against loops: the same call again and again, the same few steps again and again, or steps in which every call
//! fails.

use crate::steps::cycles::Cycles;
use crate::words;
use agentd_protocol::{LoopLimits, ToolOutcome, ToolStatus};
use serde::Serialize;
use serde_json::Value;

/// The error message of an attempt that the stutter guard failed.
pub(crate) const STUTTER: &str = "the answer repeats the same few characters over and over";

/// How often the model is told that every call fails before the turn ends.
const FAILING_TOLD: u32 = 3;

/// How many answers in a row may be cut off within a call: each costs a whole output limit.
const CUT_CALLS: u32 = 2;

/// The guards' counters for a turn.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Guards {
    /// The number of nudges since the last tool call.
    pub nudges: u32,
    /// Steps in a row in which every call failed, since the model was last warned.
    pub failing_steps: u32,
    /// How often in a row the model was warned about failing steps without a successful one since.
    pub failing_told: u32,
    /// The fingerprint of the last call's name and arguments.
    pub last_call: u64,
    /// How often in a row that call was made.
    pub repeats: u32,
    /// The value of `repeats` when the model was warned.
    pub told_at: Option<u32>,
    /// Answers without a call while the turn had produced no text at all.
    pub empty_answers: u32,
    /// Answers in a row that the output limit cut off within a call.
    #[serde(skip_serializing_if = "is_zero")]
    pub cut_calls: u32,
    /// The last steps. The states of golden logs lack it.
    #[serde(skip)]
    pub cycles: Cycles,
}

/// A count that older states lack is left out while it is zero.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_zero(count: &u32) -> bool {
    *count == 0
}

impl Guards {
    /// Counts a call that the model proposes.
    pub(crate) fn called(&mut self, name: &str, input: &Value) {
        self.nudges = 0;
        let print = fingerprint(name, input);
        if self.repeats > 0 && self.last_call == print {
            self.repeats = self.repeats.saturating_add(1);
        } else {
            self.last_call = print;
            self.repeats = 1;
            self.told_at = None;
        }
    }

    /// Counts an answer that was cut off within a call, or was not.
    pub(crate) const fn answered(&mut self, cut: bool) {
        self.cut_calls = if cut { self.cut_calls.saturating_add(1) } else { 0 };
    }

    /// Whether the model may make a call that was cut off again, with less in it.
    pub(crate) const fn may_cut_again(&self) -> bool {
        self.cut_calls > 0 && self.cut_calls <= CUT_CALLS
    }

    /// Records that the model was given the note that was due.
    pub(crate) fn told(&mut self, limits: &LoopLimits) {
        if self.repeating(limits) {
            self.told_at = Some(self.repeats);
        }
        self.cycles.tell(limits);
        if self.failing(limits) {
            self.failing_steps = 0;
            self.failing_told = self.failing_told.saturating_add(1);
        }
    }

    /// Counts a finished step in which a call went well, or one was denied. A denial is an answer, of a person or a rule,
    /// and no failure of a tool: the model is warned all the same, but the turn does not end because of it.
    pub(crate) fn step(&mut self, any_ok: bool, any_denied: bool, calls: impl Iterator<Item = u64>) {
        self.cycles.step(calls);
        self.failing_steps = if any_ok {
            0
        } else {
            self.failing_steps.saturating_add(1)
        };
        if any_ok || any_denied {
            self.failing_told = 0;
        }
    }

    /// The model has been warned the maximum number of times, and every call still fails.
    pub(crate) fn hopeless(&self, limits: &LoopLimits) -> bool {
        self.failing_told >= FAILING_TOLD && self.failing(limits)
    }

    /// The model was warned, and made the same call again.
    pub(crate) fn looping(&self) -> bool {
        self.told_at.is_some_and(|told| self.repeats > told)
    }

    /// Whether one of these calls would be one repetition too many.
    pub(crate) fn would_loop<'a>(&self, calls: impl IntoIterator<Item = (&'a str, &'a Value)>) -> bool {
        let mut ahead = self.clone();
        calls.into_iter().any(|(name, input)| {
            ahead.called(name, input);
            ahead.looping()
        })
    }

    /// The note that the model gets before its next call, if any.
    pub(crate) fn note(&self, limits: &LoopLimits) -> Option<String> {
        let repeating = self.repeating(limits).then(|| words::repeating(self.repeats));
        let cycle = self.cycles.found(limits);
        let cycling = cycle.map(|(length, times)| words::cycling(length, times));
        let failing = self.failing(limits).then(|| words::failing(self.failing_steps));
        let notes: Vec<String> = [repeating, cycling, failing].into_iter().flatten().collect();
        (!notes.is_empty()).then(|| notes.join("\n"))
    }

    fn repeating(&self, limits: &LoopLimits) -> bool {
        limits.repeated_calls > 0 && self.repeats >= limits.repeated_calls && self.told_at.is_none()
    }

    fn failing(&self, limits: &LoopLimits) -> bool {
        limits.failing_steps > 0 && self.failing_steps >= limits.failing_steps
    }
}

/// A hash of a call with its result.
pub(crate) fn print_of(name: &str, input: &Value, outcome: &ToolOutcome) -> u64 {
    let mut hash = Fnv(fingerprint(name, input));
    hash.bytes(&[u8::from(outcome.status == ToolStatus::Ok)]);
    hash.bytes(outcome.llm_text.as_bytes());
    hash.0
}

/// A hash that is equal for equal calls, whatever the order of their arguments. Stable across versions, because
/// the states of golden logs contain it.
fn fingerprint(name: &str, input: &Value) -> u64 {
    let mut hash = Fnv(0xcbf2_9ce4_8422_2325);
    hash.bytes(name.to_ascii_lowercase().as_bytes());
    hash.value(input);
    hash.0
}

struct Fnv(u64);

impl Fnv {
    fn bytes(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
        // A separator byte that never occurs in UTF-8 text keeps "ab","c" apart from "a","bc".
        self.0 = (self.0 ^ 0xff).wrapping_mul(0x0100_0000_01b3);
    }

    fn value(&mut self, value: &Value) {
        match value {
            Value::Null | Value::Bool(_) | Value::Number(_) => self.bytes(value.to_string().as_bytes()),
            Value::String(text) => {
                self.bytes(b"\"");
                self.bytes(text.as_bytes());
            }
            Value::Array(items) => {
                self.bytes(b"[");
                items.iter().for_each(|item| self.value(item));
                self.bytes(b"]");
            }
            Value::Object(fields) => {
                let mut fields: Vec<_> = fields.iter().collect();
                fields.sort_by_key(|(name, _)| *name);
                self.bytes(b"{");
                for (name, field) in fields {
                    self.bytes(name.as_bytes());
                    self.value(field);
                }
                self.bytes(b"}");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_order_of_arguments_does_not_make_another_call() {
        assert_eq!(
            fingerprint("Bash", &json!({"a": 1, "b": {"c": 2, "d": [3]}})),
            fingerprint("bash", &json!({"b": {"d": [3], "c": 2}, "a": 1}))
        );
        assert_ne!(
            fingerprint("Bash", &json!({"a": "1"})),
            fingerprint("Bash", &json!({"a": 1}))
        );
        assert_ne!(
            fingerprint("Bash", &json!(["ab", "c"])),
            fingerprint("Bash", &json!(["a", "bc"]))
        );
    }

    #[test]
    fn another_call_in_between_starts_the_count_again() {
        let limits = LoopLimits::default();
        let mut guards = Guards::default();
        for name in ["Ls", "Ls", "Grep", "Ls", "Ls"] {
            guards.called(name, &json!({}));
        }
        assert_eq!((guards.repeats, guards.note(&limits)), (2, None));
        guards.called("Ls", &json!({}));
        assert_eq!(guards.note(&limits), Some(words::repeating(3)));
        guards.told(&limits);
        assert!(guards.note(&limits).is_none() && !guards.looping());
        assert!(guards.would_loop([("Ls", &json!({}))]));
        assert!(!guards.would_loop([("Grep", &json!({})), ("Ls", &json!({}))]));
    }

    #[test]
    fn a_model_is_told_three_times_that_everything_fails_and_one_call_that_goes_well_forgives_all() {
        let limits = LoopLimits::default();
        let mut guards = Guards::default();
        let mut fail = |guards: &mut Guards| {
            let told = guards.note(&limits).is_some() && !guards.hopeless(&limits);
            guards.told(&limits);
            guards.step(false, false, std::iter::empty());
            told
        };
        let told = |guards: &mut Guards, fail: &mut dyn FnMut(&mut Guards) -> bool| {
            (0..12).filter(|_| fail(guards)).count()
        };
        assert_eq!(told(&mut guards, &mut fail), 3);
        assert!(guards.hopeless(&limits), "{guards:?}");
        guards.step(true, false, std::iter::empty());
        assert!(!guards.hopeless(&limits) && guards.note(&limits).is_none());
        assert_eq!(told(&mut guards, &mut fail), 3);
    }

    #[test]
    fn zero_switches_the_counting_guards_off() {
        let limits = LoopLimits {
            repeated_calls: 0,
            failing_steps: 0,
            ..LoopLimits::default()
        };
        let mut guards = Guards {
            failing_steps: 9,
            ..Guards::default()
        };
        for _ in 0..9 {
            guards.called("Ls", &json!({}));
        }
        assert_eq!(guards.note(&limits), None);
    }
}
