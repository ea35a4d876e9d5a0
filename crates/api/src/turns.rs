//! Allows one request at a time for each idempotency key: a second one waits for the first and finds its answer.

use crate::idempotency::key_busy;
use agentd_protocol::{Fault, Principal};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;
use tokio::sync::{Mutex as Gate, OwnedMutexGuard};

/// The principal and its key.
type Owner = (Principal, String);

/// The requests with a key that are in progress. Bounded by the number of requests.
#[derive(Debug, Default)]
pub(crate) struct KeyTurns {
    gates: Mutex<HashMap<Owner, Weak<Gate<()>>>>,
}

/// The right to carry out the request of a key; ends when dropped.
#[derive(Debug)]
pub(crate) struct KeyTurn {
    _gate: OwnedMutexGuard<()>,
}

impl KeyTurns {
    /// Waits, no longer than `within`, until no other request with this key is in progress.
    pub(crate) async fn enter(&self, who: &Principal, key: &str, within: Duration) -> Result<KeyTurn, Fault> {
        let gate = self.gate(who, key);
        let entered = tokio::time::timeout(within, gate.lock_owned()).await;
        let gate = entered.map_err(|_| key_busy())?;
        Ok(KeyTurn { _gate: gate })
    }

    fn gate(&self, who: &Principal, key: &str) -> Arc<Gate<()>> {
        let mut gates = self.gates.lock().unwrap_or_else(PoisonError::into_inner);
        gates.retain(|_, gate| gate.strong_count() > 0);
        let slot = gates.entry((who.clone(), key.to_owned())).or_default();
        slot.upgrade().unwrap_or_else(|| {
            let gate = Arc::default();
            *slot = Arc::downgrade(&gate);
            gate
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOON: Duration = Duration::from_secs(1);

    #[tokio::test]
    async fn the_second_request_of_a_key_waits_for_the_first_and_other_keys_do_not() {
        let (turns, ana) = (KeyTurns::default(), Principal::user("ana"));
        let first = turns.enter(&ana, "k", SOON).await.unwrap();
        assert!(turns.enter(&ana, "other", SOON).await.is_ok());
        assert!(turns.enter(&Principal::user("bob"), "k", SOON).await.is_ok());
        let late = turns.enter(&ana, "k", Duration::ZERO).await.unwrap_err();
        assert_eq!(late.code, "key_busy");
        let second = turns.enter(&ana, "k", SOON);
        let (second, ()) = tokio::join!(second, async { drop(first) });
        assert!(second.is_ok());
        drop(second);
        turns.gate(&ana, "z");
        assert_eq!(turns.gates.lock().unwrap().len(), 1, "what is over is forgotten");
    }
}
