//! What a subscription pushes, and the way out to its viewer.

use agentd_protocol::{CaughtUp, Delta, Fault, Lagged, Synced};
use bytes::Bytes;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep};

/// News of a subscription.
#[derive(Debug, Clone)]
pub enum Push {
    /// An event as stored.
    Event {
        /// The JSON line.
        json: Bytes,
        /// Its place in the fleet's order; only in `fleet.watch`.
        cursor: Option<u64>,
    },
    /// A live fragment.
    Delta(Arc<Delta>),
    /// Caught up with the log.
    Synced(Box<Synced>),
    /// Caught up with the fleet.
    CaughtUp(CaughtUp),
    /// The viewer was too slow; what it missed comes from the log.
    Lagged(Lagged),
    /// Over.
    Ended {
        /// A stable word: `end`, `deleted`, `failed`.
        code: &'static str,
        /// In words.
        message: String,
        /// Where a `fleet.watch` ended.
        cursor: Option<u64>,
    },
}

/// News and whose they are.
#[derive(Debug, Clone)]
pub struct Pushed {
    /// The subscription.
    pub sub: u64,
    /// What.
    pub push: Push,
}

/// Why a subscription stops.
#[derive(Debug)]
pub(crate) enum Stop {
    /// Nobody takes what it pushes.
    ViewerGone,
    /// It is over, or cannot go on; the viewer is told.
    Ended(&'static str, String),
}

/// The way to the viewer. Bounded: a slow viewer makes the subscription wait, and so lag.
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

/// How long a subscription bears with a store or a feed that is being restarted.
const PATIENCE: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(250);

/// Tries until it works. What is only down for a moment is tried again, with a pause; what is wrong is not.
pub(crate) async fn patiently<T, F>(mut attempt: impl FnMut() -> F) -> Result<T, Stop>
where
    F: Future<Output = Result<T, Fault>>,
{
    let deadline = Instant::now() + PATIENCE;
    loop {
        let fault = match attempt().await {
            Ok(done) => return Ok(done),
            Err(fault) => fault,
        };
        use agentd_protocol::FaultClass::{Busy, NotFound, Storage, Timeout, Unavailable};
        match fault.class {
            NotFound => return Err(Stop::Ended("deleted", fault.message)),
            Busy | Storage | Timeout | Unavailable if Instant::now() < deadline => sleep(PAUSE).await,
            _ => return Err(Stop::Ended("failed", fault.message)),
        }
    }
}
