//! Applies a reloaded configuration while calls are in flight.

use crate::state::Admission;
use agentd_protocol::Timestamp;
use agentd_settings::RatesConfig;

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
        self.permits = permits.max(1);
        self.patience_ms = patience_ms;
        self.circuit.resize(self.permits);
        self.credentials.configure(credentials, self.permits, rates, now);
    }
}
