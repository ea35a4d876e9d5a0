//! The frames that a subscription pushes, and its channel to the viewer.

use agentd_protocol::{CaughtUp, Delta, Fault, Lagged, Synced};
use bytes::Bytes;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep};

/// A push of a subscription.
#[derive(Debug, Clone)]
pub enum Push {
    /// An event as stored.
    Event {
        /// The JSON line.
        json: Bytes,
        /// Its position in the fleet's order; only in `fleet.watch`.
        cursor: Option<u64>,
    },
    /// A live fragment.
    Delta(Arc<Delta>),
    /// Caught up with the log.
    Synced(Box<Synced>),
    /// Caught up with the fleet.
    CaughtUp(CaughtUp),
    /// The viewer was too slow; the missed events come from the log.
    Lagged(Lagged),
    /// The subscription ended.
    Ended {
        /// A stable code: `end`, `deleted`, `failed`, `revoked`, `unavailable`.
        code: &'static str,
        /// A message for people.
        message: String,
        /// The cursor at which a `fleet.watch` ended.
        cursor: Option<u64>,
    },
}

/// A push with its subscription.
#[derive(Debug, Clone)]
pub struct Pushed {
    /// The subscription.
    pub sub: u64,
    /// The push.
    pub push: Push,
}

/// Why a subscription stops.
#[derive(Debug)]
pub(crate) enum Stop {
    /// The viewer no longer receives.
    ViewerGone,
    /// It is over, or cannot continue; the viewer is notified.
    Ended(&'static str, String),
}

impl Stop {
    /// The token of the viewer ended.
    pub(crate) fn revoked() -> Self {
        Self::Ended("revoked", "the token was revoked or has expired".to_owned())
    }
}

/// The channel to the viewer. Bounded: a slow viewer makes the subscription wait, and thus lag.
#[derive(Debug)]
pub(crate) struct Out {
    pub(crate) sub: u64,
    pub(crate) queue: mpsc::Sender<Pushed>,
}

impl Out {
    pub(crate) async fn push(&self, push: Push) -> Result<(), Stop> {
        self.queue
            .send(Pushed { sub: self.sub, push })
            .await
            .map_err(|_| Stop::ViewerGone)
    }
}

/// How long a subscription waits for a store or a feed that is restarting.
const PATIENCE: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(250);

/// Retries until it succeeds. Temporary failures are retried after a pause; permanent ones are not.
pub(crate) async fn patiently<T, F>(mut attempt: impl FnMut() -> F) -> Result<T, Stop>
where
    F: Future<Output = Result<T, Fault>>,
{
    let deadline = Instant::now() + PATIENCE;
    use agentd_protocol::FaultClass::{Busy, NotFound, Storage, Timeout, Unavailable};
    loop {
        let fault = match attempt().await {
            Ok(done) => return Ok(done),
            Err(fault) => fault,
        };
        match fault.class {
            NotFound => return Err(Stop::Ended("deleted", fault.message)),
            Busy | Storage | Timeout | Unavailable if Instant::now() < deadline => sleep(PAUSE).await,
            Busy | Storage | Timeout | Unavailable => return Err(Stop::Ended("unavailable", fault.message)),
            _ => return Err(Stop::Ended("failed", fault.message)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_store_that_does_not_answer_for_long_is_told_as_temporary() {
        let begun = Instant::now();
        let failed =
            patiently(|| async { Err::<(), _>(Fault::unavailable("busy", "the store is slow")) }).await;
        assert!(matches!(failed, Err(Stop::Ended("unavailable", _))), "{failed:?}");
        assert!(begun.elapsed() >= PATIENCE);
    }

    #[tokio::test(start_paused = true)]
    async fn a_lasting_fault_ends_a_subscription_at_once() {
        let begun = Instant::now();
        let failed =
            patiently(|| async { Err::<(), _>(Fault::invalid("damaged", "the log is damaged")) }).await;
        assert!(matches!(failed, Err(Stop::Ended("failed", _))), "{failed:?}");
        assert_eq!(begun.elapsed(), Duration::ZERO);
    }
}
