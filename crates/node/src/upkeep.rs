//! Periodic work for the store: purges deleted sessions and old keys.

use agentd_actor_kit::Clock;
use agentd_protocol::Timestamp;
use agentd_store::Backend;
use std::sync::Arc;
use std::time::Duration;

/// The delay before the first round, to keep the start fast.
const FIRST: Duration = Duration::from_secs(300);
/// The interval between rounds.
const EVERY: Duration = Duration::from_secs(3_600);
/// How long a deleted session can still be found (by its tombstone): seven days.
const KEEP_DELETED_MS: u64 = 7 * 24 * 3_600 * 1_000;

/// Purges until it is dropped.
pub(crate) async fn upkeep(backend: Arc<dyn Backend>, clock: Clock) {
    let mut rounds = tokio::time::interval_at(tokio::time::Instant::now() + FIRST, EVERY);
    loop {
        rounds.tick().await;
        let before = Timestamp(clock.now().0.saturating_sub(KEEP_DELETED_MS));
        match backend.purge(before).await {
            Ok(0) => {}
            Ok(sessions) => tracing::info!(sessions, "purged deleted sessions"),
            Err(error) => tracing::warn!(%error, "could not purge the store; retrying in an hour"),
        }
    }
}
