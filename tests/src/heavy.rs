//! Tests that fill the processors, or whose nodes keep leases in real time. The other tests mostly wait, so more of them run at
//! once than there are processors; of these, only two do.

use tokio::sync::{Semaphore, SemaphorePermit};

static PLACES: Semaphore = Semaphore::const_new(2);

/// The right to load the machine. A test takes it once, before it starts anything, and keeps it to its end: a test that takes
/// a second one may wait for itself.
#[derive(Debug)]
pub struct Heavy {
    _place: SemaphorePermit<'static>,
}

impl Heavy {
    /// Waits until fewer than two other tests have it.
    ///
    /// # Panics
    /// Never: the semaphore is not closed.
    #[expect(clippy::expect_used, reason = "the semaphore is not closed")]
    pub async fn begin() -> Self {
        let place = PLACES.acquire().await.expect("the places stay");
        Self { _place: place }
    }
}

#[cfg(test)]
mod tests {
    use super::Heavy;
    use futures_util::FutureExt as _;

    #[tokio::test]
    async fn a_third_test_waits_until_one_has_ended() {
        let (first, _second) = (Heavy::begin().await, Heavy::begin().await);
        let third = Heavy::begin();
        let mut third = std::pin::pin!(third);
        assert!(third.as_mut().now_or_never().is_none());
        drop(first);
        third.await;
    }
}
