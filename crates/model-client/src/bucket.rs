//! Token buckets: the rate limits of one key, per minute. Pure.

use agentd_actor_kit::Ask;
use agentd_protocol::{RateBucket, RateKind, Timestamp, Usage};
use agentd_provider::{Gauge, Rates};
use agentd_settings::RatesConfig;

const MINUTE_MS: i128 = 60_000;
/// All limits are capped at this value, which is as good as unlimited.
const LARGEST: u64 = 1_000_000_000_000;
/// Bursts are a sixth of a configured limit per minute, so that a server with fixed windows never sees a double share.
const BURST: u64 = 6;
/// The most minutes that one huge call can put a bucket into debt.
const LONGEST_DEBT: i128 = 10;
/// Few answers use their full output limit, so the estimate is capped; the rest is charged at the end.
const USUAL_OUTPUT: u64 = 1_024;

/// The cost of one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Charge {
    pub(crate) requests: u64,
    pub(crate) input: u64,
    pub(crate) output: u64,
}

impl Charge {
    /// The estimate for a call that has not started.
    pub(crate) fn of(ask: &Ask) -> Self {
        Self {
            requests: 1,
            input: ask.input_tokens,
            output: ask.output_tokens.min(USUAL_OUTPUT),
        }
    }

    /// The actual cost of an answered call, without tokens read from a prompt cache: most servers do not count those, and
    /// the others report what is left.
    pub(crate) const fn used(usage: &Usage) -> Self {
        Self {
            requests: 1,
            input: usage.input.saturating_add(usage.cache_write),
            output: usage.output,
        }
    }

    /// The cost of a failed request: the request counts, but its tokens do not.
    pub(crate) const fn turned_away() -> Self {
        Self {
            requests: 1,
            input: 0,
            output: 0,
        }
    }
}

/// One limit that refills steadily. The level is in sixty-thousandths, so that every millisecond adds whole units.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Bucket {
    per_minute: u64,
    capacity: u64,
    level: i128,
    at: Timestamp,
}

impl Bucket {
    fn full(per_minute: u64, capacity: u64, now: Timestamp) -> Self {
        let capacity = capacity.clamp(1, LARGEST);
        Self {
            per_minute: per_minute.clamp(1, LARGEST),
            capacity,
            level: i128::from(capacity) * MINUTE_MS,
            at: now,
        }
    }

    fn configured(per_minute: u64, now: Timestamp) -> Option<Self> {
        (per_minute > 0).then(|| Self::full(per_minute, per_minute / BURST, now))
    }

    /// Replaces a configured limit. What was used stays used, so that changing a limit back and forth gains nothing.
    fn resize(bucket: &mut Option<Self>, per_minute: u64, now: Timestamp) {
        let mut new = Self::configured(per_minute, now);
        if let (Some(new), Some(old)) = (new.as_mut(), bucket.as_ref()) {
            new.level -= i128::from(old.capacity) * MINUTE_MS - old.level(now);
        }
        *bucket = new;
    }

    fn level(&self, now: Timestamp) -> i128 {
        let refill = i128::from(now.since_ms(self.at)) * i128::from(self.per_minute);
        (self.level + refill).min(i128::from(self.capacity) * MINUTE_MS)
    }

    fn told(&self, kind: RateKind, now: Timestamp) -> RateBucket {
        RateBucket {
            kind,
            limit: self.capacity,
            per_minute: self.per_minute,
            left: u64::try_from(self.level(now) / MINUTE_MS).unwrap_or(0),
        }
    }

    /// Milliseconds until this amount is available. For amounts above the capacity, until the bucket is full.
    fn opens_in(&self, amount: u64, now: Timestamp) -> u64 {
        let wanted = i128::from(amount.min(self.capacity)) * MINUTE_MS;
        let missing = (wanted - self.level(now)).max(0);
        let per_ms = i128::from(self.per_minute);
        u64::try_from((missing + per_ms - 1) / per_ms).unwrap_or(u64::MAX)
    }

    /// Subtracts `taken` and adds `returned`.
    fn change(&mut self, taken: u64, returned: u64, now: Timestamp) {
        let most = i128::from(self.capacity) * MINUTE_MS;
        let least = -i128::from(self.per_minute) * MINUTE_MS * LONGEST_DEBT;
        let changed = self.level(now) + (i128::from(returned) - i128::from(taken)) * MINUTE_MS;
        self.level = changed.clamp(least, most);
        self.at = self.at.max(now);
    }

    /// Applies a server's report. Its remainder can only lower ours, because it does not include calls on their way.
    fn learn(bucket: &mut Option<Self>, gauge: &Gauge, now: Timestamp) {
        if let Some(limit) = gauge.limit.filter(|limit| *limit > 0) {
            let known = bucket.get_or_insert_with(|| Self::full(limit, limit, now));
            let level = known.level(now);
            if known.capacity != limit.min(LARGEST) {
                known.capacity = limit.min(LARGEST);
                known.per_minute = known.capacity;
            }
            known.per_minute = measured(gauge, limit).unwrap_or(known.per_minute);
            known.level = level.min(i128::from(known.capacity) * MINUTE_MS);
            known.at = known.at.max(now);
        }
        if let (Some(bucket), Some(remaining)) = (bucket.as_mut(), gauge.remaining) {
            bucket.level = bucket.level(now).min(i128::from(remaining) * MINUTE_MS);
            bucket.at = bucket.at.max(now);
        }
    }
}

/// How fast a limit refills, in units per minute. Reported times are rounded, so a low usage gives no estimate.
fn measured(gauge: &Gauge, limit: u64) -> Option<u64> {
    let reset_ms = gauge.reset_ms.filter(|reset| *reset > 0)?;
    let used = limit.saturating_sub(gauge.remaining?);
    if used < limit.div_ceil(10) {
        return None;
    }
    let per_minute = u128::from(used) * 60_000 / u128::from(reset_ms);
    Some(u64::try_from(per_minute).unwrap_or(LARGEST).clamp(1, LARGEST))
}

/// The limits of one key: requests, input tokens, output tokens.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Buckets {
    requests: Option<Bucket>,
    input: Option<Bucket>,
    output: Option<Bucket>,
}

impl Buckets {
    /// The configured limits; 0 means unlimited.
    pub(crate) fn configured(rates: &RatesConfig, now: Timestamp) -> Self {
        Self {
            requests: Bucket::configured(rates.requests, now),
            input: Bucket::configured(rates.input_tokens, now),
            output: Bucket::configured(rates.output_tokens, now),
        }
    }

    /// Replaces the configured limits.
    pub(crate) fn resize(&mut self, rates: &RatesConfig, now: Timestamp) {
        Bucket::resize(&mut self.requests, rates.requests, now);
        Bucket::resize(&mut self.input, rates.input_tokens, now);
        Bucket::resize(&mut self.output, rates.output_tokens, now);
    }

    /// Milliseconds until a call with this cost may start.
    pub(crate) fn opens_in(&self, charge: &Charge, now: Timestamp) -> u64 {
        let wait = |bucket: &Option<Bucket>, amount| {
            bucket.as_ref().map_or(0, |bucket| bucket.opens_in(amount, now))
        };
        wait(&self.requests, charge.requests)
            .max(wait(&self.input, charge.input))
            .max(wait(&self.output, charge.output))
    }

    /// Subtracts `taken` and adds `returned`: the estimate when a call starts, the difference when it ends.
    pub(crate) fn change(&mut self, taken: &Charge, returned: &Charge, now: Timestamp) {
        let each = [
            (&mut self.requests, taken.requests, returned.requests),
            (&mut self.input, taken.input, returned.input),
            (&mut self.output, taken.output, returned.output),
        ];
        for (bucket, taken, returned) in each {
            if let Some(bucket) = bucket {
                bucket.change(taken, returned, now);
            }
        }
    }

    /// Each limit of these and the others; of two of a kind, the one with less left.
    pub(crate) fn told(&self, others: &Self, now: Timestamp) -> Vec<RateBucket> {
        let kinds = [
            (RateKind::Requests, &self.requests, &others.requests),
            (RateKind::InputTokens, &self.input, &others.input),
            (RateKind::OutputTokens, &self.output, &others.output),
        ];
        let told = kinds.into_iter().filter_map(|(kind, one, other)| {
            let both = one.iter().chain(other).map(|bucket| bucket.told(kind, now));
            both.min_by_key(|bucket| bucket.left)
        });
        told.collect()
    }

    /// Applies the limits that a server reported.
    pub(crate) fn learn(&mut self, rates: &Rates, now: Timestamp) {
        Bucket::learn(&mut self.requests, &rates.requests, now);
        Bucket::learn(&mut self.input, &rates.input_tokens, now);
        Bucket::learn(&mut self.output, &rates.output_tokens, now);
    }
}

/// Projects limits from headers of this age to now: limits refill while an answer streams.
pub(crate) fn aged(rates: &Rates, age_ms: u64) -> Rates {
    Rates {
        requests: aged_gauge(rates.requests, age_ms),
        input_tokens: aged_gauge(rates.input_tokens, age_ms),
        output_tokens: aged_gauge(rates.output_tokens, age_ms),
    }
}

fn aged_gauge(gauge: Gauge, age_ms: u64) -> Gauge {
    // Without a reported reset time, the limit is assumed to be per minute.
    let reset_ms = gauge.reset_ms.unwrap_or(60_000);
    if age_ms >= reset_ms {
        return Gauge {
            limit: gauge.limit,
            remaining: None,
            reset_ms: None,
        };
    }
    let remaining = gauge.remaining.map(|remaining| {
        let used = u128::from(gauge.limit.unwrap_or(remaining).saturating_sub(remaining));
        let back = used * u128::from(age_ms) / u128::from(reset_ms);
        remaining.saturating_add(u64::try_from(back).unwrap_or(u64::MAX))
    });
    Gauge {
        limit: gauge.limit,
        remaining,
        reset_ms: gauge.reset_ms.map(|reset| reset - age_ms),
    }
}

#[cfg(test)]
mod tests;
