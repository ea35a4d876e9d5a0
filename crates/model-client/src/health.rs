//! The health of one credential for one model, and its cooldowns. Pure.
//!
//! Only failures of the credential count: time-outs and overloaded servers do not.

use agentd_protocol::{CredentialHealth, FailureClass, Timestamp};
use agentd_settings::SchedulerConfig;

/// The failure count is reset this long after the last cooldown.
const FORGET_MS: u64 = 24 * 60 * 60 * 1_000;
/// A server's request for a longer wait is cut to this.
pub(crate) const LONGEST_WISH_MS: u64 = 24 * 60 * 60 * 1_000;

/// The first cooldown after a rate limit that names no wait.
const SILENT_MS: u64 = 2_000;

/// The lengths of cooldowns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cooldowns {
    base_ms: u64,
    cap_ms: u64,
    quota_ms: u64,
    quota_cap_ms: u64,
}

impl Cooldowns {
    pub(crate) const fn of(config: &SchedulerConfig) -> Self {
        Self {
            base_ms: config.cooldown_ms,
            cap_ms: config.cooldown_cap_ms,
            quota_ms: config.quota_cooldown_ms,
            quota_cap_ms: config.quota_cooldown_cap_ms,
        }
    }

    /// The cooldown after this many consecutive failures: fivefold each time, for a quota twofold. A rate limit without a
    /// stated wait is usually short, and a probe costs little: it starts small and doubles up to the base of the others.
    fn after(&self, class: FailureClass, failures: u32) -> u64 {
        let (base, factor, cap) = match class {
            FailureClass::QuotaExhausted => (self.quota_ms, 2_u64, self.quota_cap_ms),
            FailureClass::RateLimited => (SILENT_MS, 2, self.base_ms),
            _ => (self.base_ms, 5, self.cap_ms),
        };
        base.saturating_mul(factor.saturating_pow(failures.saturating_sub(1)))
            .min(cap)
    }
}

/// Whether the credential's health admits a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Well {
    Yes,
    /// Yes, as the probe.
    Probe,
    /// A probe is in flight; all other calls wait for its result.
    Probing,
    /// Not before this time.
    No {
        until: Timestamp,
        class: FailureClass,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum State {
    #[default]
    Ok,
    Cooling {
        until: Timestamp,
        class: FailureClass,
    },
    Probing {
        number: u64,
        class: FailureClass,
    },
}

/// The health of one credential for one model.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Health {
    state: State,
    /// The server asked to wait until this time; that is not a failure of the credential.
    paused: Option<Timestamp>,
    failures: u32,
    /// The end of the last cooldown.
    cooled: Timestamp,
    /// Calls with a smaller number started before the last failure was known: their results are stale.
    fresh_from: u64,
}

impl Health {
    pub(crate) fn well(&self, now: Timestamp) -> Well {
        let paused = self.paused.filter(|until| *until > now);
        match self.state {
            State::Cooling { until, class } if until > now => Well::No {
                until: paused.map_or(until, |paused| paused.max(until)),
                class,
            },
            State::Ok | State::Cooling { .. } if paused.is_some() => Well::No {
                until: paused.unwrap_or(now),
                class: FailureClass::RateLimited,
            },
            State::Ok => Well::Yes,
            State::Cooling { .. } => Well::Probe,
            State::Probing { .. } => Well::Probing,
        }
    }

    /// A person reports that the problem is solved: the next call probes, and a failed probe makes nothing worse.
    pub(crate) fn try_again(&mut self, now: Timestamp) {
        if let Well::No { class, .. } = self.well(now) {
            self.paused = None;
            self.failures = self.failures.saturating_sub(1);
            self.state = State::Cooling { until: now, class };
        }
    }

    /// The key may have changed: probes again if the old one was refused or out of quota.
    pub(crate) fn try_another_key(&mut self, now: Timestamp) {
        if let State::Cooling {
            class: FailureClass::Auth | FailureClass::QuotaExhausted,
            ..
        } = self.state
        {
            self.try_again(now);
        }
    }

    /// Records the start of a call. Returns whether it is the probe.
    pub(crate) fn went(&mut self, number: u64) -> bool {
        if let State::Cooling { class, .. } = self.state {
            self.state = State::Probing { number, class };
            return true;
        }
        false
    }

    /// Records that the server accepted a call: the credential works.
    pub(crate) fn succeeded(&mut self, number: u64) {
        if number >= self.fresh_from {
            self.state = State::Ok;
            self.failures = 0;
        }
    }

    /// Records the end of a call that says nothing about the credential. If it was the probe, another call must probe.
    pub(crate) fn ended(&mut self, number: u64, now: Timestamp) {
        if let State::Probing { number: own, class } = self.state
            && own == number
        {
            self.state = State::Cooling { until: now, class };
        }
    }

    /// Records a failure of the credential: its rate limit, its quota, or the key itself. `next` is the number of the
    /// next call. Returns the length of the cooldown or pause, unless it is already known.
    pub(crate) fn failed(
        &mut self,
        call: (u64, u64),
        class: FailureClass,
        wish_ms: Option<u64>,
        cooldowns: &Cooldowns,
        now: Timestamp,
    ) -> Option<u64> {
        let (number, next) = call;
        let wish = wish_ms
            .filter(|wish| *wish > 0)
            .map(|wish| wish.min(LONGEST_WISH_MS));
        if let (FailureClass::RateLimited, Some(wish)) = (class, wish) {
            if matches!(self.state, State::Probing { number: own, .. } if own == number) {
                self.state = State::Ok;
            }
            let until = now.plus_ms(wish);
            let longer = self.paused.is_none_or(|paused| paused < until);
            self.paused = self.paused.max(Some(until));
            return longer.then_some(wish);
        }
        if number < self.fresh_from {
            return None;
        }
        if now.since_ms(self.cooled) >= FORGET_MS {
            self.failures = 0;
        }
        self.failures = self.failures.saturating_add(1);
        self.fresh_from = next;
        let ms = wish.unwrap_or_else(|| cooldowns.after(class, self.failures));
        self.cooled = now.plus_ms(ms);
        self.state = State::Cooling {
            until: self.cooled,
            class,
        };
        Some(ms)
    }

    /// For people: the state, until when, why, and the number of consecutive failures.
    pub(crate) fn told(
        &self,
        now: Timestamp,
    ) -> (CredentialHealth, Option<Timestamp>, Option<FailureClass>, u32) {
        match (self.well(now), self.state) {
            (Well::No { until, class }, _) => {
                (CredentialHealth::Cooling, Some(until), Some(class), self.failures)
            }
            (_, State::Probing { class, .. } | State::Cooling { class, .. }) => {
                (CredentialHealth::Probing, None, Some(class), self.failures)
            }
            (_, State::Ok) => (CredentialHealth::Ok, None, None, self.failures),
        }
    }
}

#[cfg(test)]
mod tests;
