//! What a store needs from time to time: deleted sessions and old keys go for good.

use agentd_actor_kit::Clock;
use agentd_protocol::Timestamp;
use agentd_store::Backend;
use std::sync::Arc;
use std::time::Duration;

/// Before the first round: a start has better things to do.
const FIRST: Duration = Duration::from_secs(300);
/// Between two rounds.
const EVERY: Duration = Duration::from_secs(3_600);
/// A deleted session can be looked for (by its tombstone) this long: seven days.
const KEEP_DELETED_MS: u64 = 7 * 24 * 3_600 * 1_000;

/// Purges until it is dropped.
pub(crate) async fn upkeep(backend: Arc<dyn Backend>, clock: Clock) {
    let mut rounds = tokio::time::interval_at(tokio::time::Instant::now() + FIRST, EVERY);
    loop {
        rounds.tick().await;
        let before = Timestamp(clock.now().0.saturating_sub(KEEP_DELETED_MS));
        match backend.purge(before).await {
            Ok(0) => {}
            Ok(sessions) => tracing::info!(sessions, "deleted sessions are gone for good"),
            Err(error) => tracing::warn!(%error, "the store could not be purged; tried again in an hour"),
        }
    }
}
