//! The interface of a requester.

use crate::pool::{Pool, system};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, LazyLock};
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::time::timeout;

/// The deadline of a request for the addresses of a name.
const WITHIN: Duration = Duration::from_secs(15);
/// The maximum number of look-ups under way for all sessions.
const OF_SESSIONS: usize = 64;
/// The maximum number of look-ups under way for one session.
const OF_ONE_SESSION: usize = 4;
/// The maximum number of look-ups for what the operator configured: model and tool servers, webhooks.
const OF_OPERATOR: usize = 32;

static SESSIONS: LazyLock<Arc<Pool>> = LazyLock::new(|| Pool::new(OF_SESSIONS, system));
static OPERATOR: LazyLock<Arc<Pool>> = LazyLock::new(|| Pool::new(OF_OPERATOR, system));

/// Looks up names for one requester. Clones share its slots.
#[derive(Debug, Clone)]
pub struct Names {
    pub(crate) pool: Arc<Pool>,
    pub(crate) own: Arc<Semaphore>,
    pub(crate) within: Duration,
}

impl Names {
    /// For one session, or for one piece of its work.
    #[must_use]
    pub fn of_session() -> Self {
        Self::with(&SESSIONS, OF_ONE_SESSION, WITHIN)
    }

    /// For servers that the operator configured. Sessions take no slots from these.
    #[must_use]
    pub fn of_operator() -> Self {
        Self::with(&OPERATOR, OF_OPERATOR, WITHIN)
    }

    pub(crate) fn with(pool: &Arc<Pool>, own: usize, within: Duration) -> Self {
        Self {
            pool: Arc::clone(pool),
            own: Arc::new(Semaphore::new(own)),
            within,
        }
    }

    /// The addresses of a name, or of a literal address.
    ///
    /// # Errors
    /// The name has no address, or there is no answer in time. The system's look-up may then continue.
    pub async fn look_up(&self, host: &str) -> io::Result<Vec<IpAddr>> {
        if let Ok(address) = host.parse() {
            return Ok(vec![address]);
        }
        let found = timeout(self.within, self.pool.look_up(&self.own, host)).await;
        found.unwrap_or_else(|_| {
            let why = format!(
                "no name server answered for {host} within {} ms",
                self.within.as_millis()
            );
            Err(io::Error::new(io::ErrorKind::TimedOut, why))
        })
    }
}

impl Resolve for Names {
    fn resolve(&self, name: Name) -> Resolving {
        let names = self.clone();
        Box::pin(async move {
            let found = names.look_up(name.as_str()).await?;
            // The port comes from the request's URL.
            let found = found.into_iter().map(|ip| SocketAddr::new(ip, 0));
            Ok(Box::new(found) as Addrs)
        })
    }
}
