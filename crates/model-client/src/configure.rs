//! A configuration that was read again while calls are in flight.

use crate::state::Admission;
use agentd_protocol::Timestamp;
use agentd_settings::RatesConfig;

impl<T> Admission<T> {
    /// Takes over new limits and names. Calls in flight go on, also those with a credential that is gone.
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
