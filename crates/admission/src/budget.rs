//! The memory budget for requests: a limit on the frames and bodies of all connections that are being read or answered.

use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Bytes per permit.
const UNIT: usize = 1_024;
/// Permits reserved for each connection: small requests do not wait for the large ones of others.
const OWN: usize = 64;

/// The memory that all connections share.
#[derive(Debug)]
pub struct Budget {
    room: Arc<Semaphore>,
    units: u32,
}

impl Budget {
    /// A budget of this many bytes.
    #[must_use]
    pub fn new(bytes: u64) -> Self {
        let most = u32::try_from(Semaphore::MAX_PERMITS).unwrap_or(u32::MAX);
        let units = u32::try_from(bytes / UNIT as u64).map_or(most, |units| units.clamp(1, most));
        Self {
            room: Arc::new(Semaphore::new(usize::try_from(units).unwrap_or(usize::MAX))),
            units,
        }
    }

    /// Creates the account of a connection.
    #[must_use]
    pub fn account(self: &Arc<Self>) -> Account {
        Account {
            shared: Arc::clone(self),
            own: Arc::new(Semaphore::new(OWN)),
        }
    }
}

/// One connection's account: memory comes from its own allowance first, then from the shared budget.
#[derive(Debug)]
pub struct Account {
    shared: Arc<Budget>,
    own: Arc<Semaphore>,
}

/// Memory that is reserved until this is dropped.
#[derive(Debug)]
pub struct Hold {
    _permits: OwnedSemaphorePermit,
}

impl Account {
    /// Reserves memory for a frame; waits until there is room. The caller sets the deadline.
    pub async fn take(&self, bytes: usize) -> Option<Hold> {
        let units = u32::try_from(bytes.div_ceil(UNIT).max(1)).unwrap_or(u32::MAX);
        let permits = match Arc::clone(&self.own).try_acquire_many_owned(units) {
            Ok(permits) => permits,
            Err(_) => {
                // A frame larger than the whole budget takes the whole budget.
                let units = units.min(self.shared.units);
                // The semaphore is never closed.
                let room = Arc::clone(&self.shared.room);
                room.acquire_many_owned(units).await.ok()?
            }
        };
        Some(Hold { _permits: permits })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt as _;

    fn now(account: &Account, bytes: usize) -> Option<Hold> {
        account.take(bytes).now_or_never().flatten()
    }

    #[test]
    fn i6_the_budget_is_granted_up_to_its_last_unit() {
        let budget = Arc::new(Budget::new(200 << 10));
        let (a, b) = (budget.account(), budget.account());
        let first = now(&a, 100 << 10).unwrap();
        let second = now(&b, 100 << 10).unwrap();
        assert!(now(&b, (64 << 10) + 1).is_none());
        drop(first);
        assert!(now(&b, (100 << 10) + 1).is_none());
        assert!(now(&b, 100 << 10).is_some());
        drop(second);
        assert_eq!(budget.room.available_permits(), 200);
    }

    #[test]
    fn i6_small_frames_do_not_wait_for_large_ones_and_are_bounded_too() {
        let budget = Arc::new(Budget::new(100 << 10));
        let (large, small) = (budget.account(), budget.account());
        let _all = now(&large, 100 << 10).unwrap();
        let held: Vec<Hold> = (0..64).filter_map(|_| now(&small, 1_000)).collect();
        assert_eq!(held.len(), 64);
        assert!(now(&small, 1).is_none());
        assert!(now(&large, 64 << 10).is_some(), "its own allowance is untouched");
    }

    #[test]
    fn a_frame_larger_than_the_budget_takes_all_of_it() {
        let budget = Arc::new(Budget::new(100 << 10));
        assert!(now(&budget.account(), (100 << 10) + 4).is_some());
    }
}
