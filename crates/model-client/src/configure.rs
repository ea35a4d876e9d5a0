//! Applies a reloaded configuration while calls are in flight.

use crate::state::Admission;
use agentd_protocol::Timestamp;
use agentd_settings::RatesConfig;
use agentd_store::Share;

impl<T> Admission<T> {
    /// Applies new limits and names. Calls in flight continue, even with a removed credential.
    pub fn configure(
        &mut self,
        permits: u32,
        credentials: Vec<String>,
        rates: &RatesConfig,
        patience_ms: u64,
        now: Timestamp,
    ) {
        self.limit = permits.max(1);
        self.patience_ms = patience_ms;
        self.rates = *rates;
        self.credentials.configure(credentials, now);
        self.resize(now);
    }

    /// Applies this node's share of the limits of a fleet. Calls in flight continue.
    pub fn share(&mut self, share: &Share, now: Timestamp) {
        self.queue.weigh(share);
        let permits = share.permits;
        if self.share != Some(permits) {
            self.share = Some(permits);
            self.resize(now);
        }
    }

    /// How many calls may be in flight.
    pub(super) fn permits(&self) -> u32 {
        self.share.map_or(self.limit, |share| share.min(self.limit))
    }

    fn resize(&mut self, now: Timestamp) {
        let permits = self.permits();
        self.circuit.resize(permits);
        let rates = part(&self.rates, permits, self.limit);
        self.credentials.resize(permits, &rates, now);
    }
}

/// The part of these rates that belongs to this many of all permits. 0 stays unlimited, and nothing else becomes 0.
fn part(rates: &RatesConfig, permits: u32, limit: u32) -> RatesConfig {
    let part = |rate: u64| {
        let part = u128::from(rate) * u128::from(permits) / u128::from(limit.max(1));
        u64::try_from(part).unwrap_or(rate).max(rate.min(1))
    };
    RatesConfig {
        requests: part(rates.requests),
        input_tokens: part(rates.input_tokens),
        output_tokens: part(rates.output_tokens),
    }
}
