//! The circuit breaker of one provider: after repeated failures calls are suspended for a while, then one probe tests the
//! provider, then the other calls return in growing numbers. Pure.

use crate::health::LONGEST_WISH_MS;
use agentd_protocol::{CircuitState, FailureClass, Stamp, Timestamp};
use agentd_settings::SchedulerConfig;

/// After an outage, the total number of admitted calls doubles at this interval, starting from one.
const RAMP_STEP_MS: u64 = 500;

/// Whether the provider's circuit admits a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flow {
    Open,
    /// Not before this time.
    Until(Timestamp),
    /// A probe is in flight; all other calls wait for its result.
    Probing,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Working,
    /// Calls are suspended until this time.
    Broken {
        until: Timestamp,
    },
    Probing {
        number: u64,
    },
    /// The provider works again; this many calls were admitted since.
    Ramp {
        since: Timestamp,
        admitted: u32,
    },
}

/// The circuit of one provider.
#[derive(Debug, Clone)]
pub(crate) struct Circuit {
    state: State,
    threshold: u32,
    base_ms: u64,
    cap_ms: u64,
    permits: u32,
    failures: u32,
    /// How often the circuit opened since the provider last worked well.
    breaks: u32,
    class: FailureClass,
    /// Calls with a smaller number started before the circuit opened: their results are stale.
    fresh_from: u64,
}

impl Circuit {
    pub(crate) const fn new(config: &SchedulerConfig, permits: u32) -> Self {
        Self {
            state: State::Working,
            threshold: config.circuit_failures,
            base_ms: config.circuit_ms,
            cap_ms: config.circuit_cap_ms,
            permits,
            failures: 0,
            breaks: 0,
            class: FailureClass::Overloaded,
            fresh_from: 0,
        }
    }

    /// Changes the number of permits.
    pub(crate) const fn resize(&mut self, permits: u32) {
        self.permits = permits;
    }

    /// The class of the failures that opened the circuit.
    pub(crate) const fn class(&self) -> FailureClass {
        self.class
    }

    pub(crate) fn flow(&self, now: Timestamp) -> Flow {
        match self.state {
            State::Broken { until } if until > now => Flow::Until(until),
            State::Working | State::Broken { .. } => Flow::Open,
            State::Probing { .. } => Flow::Probing,
            State::Ramp { since, admitted } => {
                let steps = now.since_ms(since) / RAMP_STEP_MS;
                if admitted < allowed(steps) || allowed(steps) >= self.permits {
                    Flow::Open
                } else {
                    Flow::Until(since.plus_ms((steps + 1).saturating_mul(RAMP_STEP_MS)))
                }
            }
        }
    }

    /// The state for people.
    pub(crate) const fn told(&self) -> CircuitState {
        match self.state {
            State::Working => CircuitState::Closed,
            State::Broken { .. } => CircuitState::Open,
            State::Probing { .. } => CircuitState::HalfOpen,
            State::Ramp { .. } => CircuitState::Recovering,
        }
    }

    /// When the suspension ends, if that is known.
    pub(crate) fn broken_until(&self, now: Timestamp) -> Option<Timestamp> {
        match self.state {
            State::Broken { until } if until > now => Some(until),
            _ => None,
        }
    }

    /// A person reports that the problem is solved: the next call probes.
    pub(crate) fn try_again(&mut self, now: Timestamp) {
        if let State::Broken { until } = &mut self.state {
            *until = now.min(*until);
        }
    }

    /// Whether the circuit, rather than a limit, holds calls back; people are told so.
    pub(crate) fn holds(&self, now: Timestamp) -> bool {
        self.flow(now) != Flow::Open
    }

    /// Records the start of a call. Returns whether it is the probe.
    pub(crate) fn went(&mut self, number: u64, now: Timestamp) -> bool {
        match &mut self.state {
            State::Broken { .. } => {
                self.state = State::Probing { number };
                return true;
            }
            State::Ramp { since, admitted } => {
                *admitted = admitted.saturating_add(1);
                if allowed(now.since_ms(*since) / RAMP_STEP_MS) >= self.permits {
                    self.state = State::Working;
                    self.breaks = 0;
                }
            }
            State::Working | State::Probing { .. } => {}
        }
        false
    }

    /// Records that the provider answered a call, even if with a refusal.
    pub(crate) fn worked(&mut self, number: u64, now: Timestamp) {
        if number < self.fresh_from {
            return;
        }
        self.failures = 0;
        if self.is_probe(number) {
            self.state = State::Ramp {
                since: now,
                admitted: 0,
            };
        }
    }

    /// Records the end of a call that says nothing about the provider.
    pub(crate) fn ended(&mut self, number: u64, now: Timestamp) {
        if self.is_probe(number) {
            self.state = State::Broken { until: now };
        }
    }

    /// Records a failure of the provider. `next` is the number of the next call. Returns how long calls are suspended, if
    /// that is new.
    pub(crate) fn failed(
        &mut self,
        (number, next): (u64, u64),
        class: FailureClass,
        wish_ms: Option<u64>,
        stamp: &mut Stamp,
    ) -> Option<u64> {
        let now = stamp.at;
        let wish = wish_ms.filter(|wish| class == FailureClass::Overloaded && *wish > 0);
        if let Some(wish) = wish.map(|wish| wish.min(LONGEST_WISH_MS)) {
            let until = now.plus_ms(wish);
            if self.broken_until(now).is_some_and(|already| already >= until) {
                return None;
            }
            self.open(until, class, next);
            return Some(wish);
        }
        if number < self.fresh_from {
            return None;
        }
        self.failures = self.failures.saturating_add(1);
        let enough = self.threshold > 0 && self.failures >= self.threshold;
        if !enough && !self.is_probe(number) {
            return None;
        }
        let ms = self
            .base_ms
            .saturating_mul(1_u64.checked_shl(self.breaks).unwrap_or(u64::MAX))
            .min(self.cap_ms)
            .max(1);
        // A jitter from -25 to +25 per cent keeps several nodes from returning at the same time.
        let ms = ms - ms / 4 + stamp.next_u64() % (ms / 2 + 1);
        self.breaks = self.breaks.saturating_add(1).min(32);
        self.open(now.plus_ms(ms), class, next);
        Some(ms)
    }

    fn open(&mut self, until: Timestamp, class: FailureClass, next: u64) {
        self.state = State::Broken { until };
        self.class = class;
        self.failures = 0;
        self.fresh_from = next;
    }

    fn is_probe(&self, number: u64) -> bool {
        matches!(self.state, State::Probing { number: own } if own == number)
    }
}

fn allowed(steps: u64) -> u32 {
    1_u32
        .checked_shl(u32::try_from(steps).unwrap_or(u32::MAX))
        .unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests;
