//! The look-ups under way.

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::net::{IpAddr, ToSocketAddrs as _};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

/// The result. An error is kept as its kind and message, because every requester gets a copy.
type Found = Result<Vec<IpAddr>, (io::ErrorKind, String)>;
/// The receivers of a result; `None` while the look-up runs.
type Asked = watch::Receiver<Option<Found>>;
/// Blocks until the result is known.
type LookUp = dyn Fn(&str) -> io::Result<Vec<IpAddr>> + Send + Sync;

pub(crate) struct Pool {
    slots: Arc<Semaphore>,
    open: Mutex<HashMap<String, Asked>>,
    look_up: Box<LookUp>,
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool")
            .field("slots", &self.slots)
            .finish_non_exhaustive()
    }
}

/// The system's look-up.
pub(crate) fn system(host: &str) -> io::Result<Vec<IpAddr>> {
    let found = (host, 0).to_socket_addrs()?;
    Ok(found.map(|address| address.ip()).collect())
}

impl Pool {
    pub(crate) fn new(
        slots: usize,
        look_up: impl Fn(&str) -> io::Result<Vec<IpAddr>> + Send + Sync + 'static,
    ) -> Arc<Self> {
        Arc::new(Self {
            slots: Arc::new(Semaphore::new(slots)),
            open: Mutex::default(),
            look_up: Box::new(look_up),
        })
    }

    /// Waits for slots and for the result, without a deadline. The look-up continues if the caller drops the future.
    pub(crate) async fn look_up(
        self: &Arc<Self>,
        own: &Arc<Semaphore>,
        host: &str,
    ) -> io::Result<Vec<IpAddr>> {
        let under_way = self.open().get(host).cloned();
        let mut asked = match under_way {
            Some(asked) => asked,
            None => {
                // Takes the requester's own slot first: while it waits for that, it holds no slot that others need.
                let slots = [take(own).await?, take(&self.slots).await?];
                self.ask(host, slots)?
            }
        };
        let found = asked
            .wait_for(Option::is_some)
            .await
            .ok()
            .and_then(|found| found.clone());
        match found {
            Some(Ok(addresses)) => Ok(addresses),
            Some(Err((kind, why))) => Err(io::Error::new(kind, why)),
            None => Err(io::Error::other("the lookup ended without an answer")),
        }
    }

    /// Starts a look-up, unless another requester has started it. The slots are free again when its thread ends.
    fn ask(self: &Arc<Self>, host: &str, slots: [OwnedSemaphorePermit; 2]) -> io::Result<Asked> {
        let mut open = self.open();
        if let Some(asked) = open.get(host) {
            return Ok(asked.clone());
        }
        let (tell, asked) = watch::channel(None);
        let looking = Looking {
            pool: Arc::clone(self),
            host: host.to_owned(),
        };
        open.insert(host.to_owned(), asked.clone());
        drop(open);
        let look_up = move || {
            let found = (looking.pool.look_up)(&looking.host);
            // From now on, new requests start a new look-up.
            drop(looking);
            drop(slots);
            tell.send_replace(Some(found.map_err(|error| (error.kind(), error.to_string()))));
        };
        std::thread::Builder::new()
            .name("agentd-names".to_owned())
            .spawn(look_up)?;
        Ok(asked)
    }

    fn open(&self) -> MutexGuard<'_, HashMap<String, Asked>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A look-up under way. It also ends when the look-up panics, or when no thread can be started.
struct Looking {
    pool: Arc<Pool>,
    host: String,
}

impl Drop for Looking {
    fn drop(&mut self) {
        self.pool.open().remove(&self.host);
    }
}

async fn take(slots: &Arc<Semaphore>) -> io::Result<OwnedSemaphorePermit> {
    Arc::clone(slots).acquire_owned().await.map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Names;
    use std::sync::mpsc::{Receiver, Sender, channel};
    use std::time::Duration;
    use tokio::task::JoinSet;

    const FOUND: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 7));

    /// A pool that finds names starting with `dead` once the sender is dropped; it reports each look-up.
    fn pool(slots: usize) -> (Arc<Pool>, Sender<()>, Receiver<String>) {
        let (thaw, ice) = channel::<()>();
        let ice = Mutex::new(ice);
        let (began, begun) = channel();
        let pool = Pool::new(slots, move |host| {
            began.send(host.to_owned()).unwrap();
            match host {
                host if host.starts_with("dead") => drop(ice.lock().unwrap().recv()),
                "unknown" => return Err(io::Error::new(io::ErrorKind::NotFound, "no such name")),
                _ => {}
            }
            Ok(vec![FOUND])
        });
        (pool, thaw, begun)
    }

    const LONG: Duration = Duration::from_secs(600);

    #[tokio::test]
    async fn i6_names_that_are_never_answered_cost_their_own_requester_only() {
        let (pool, thaw, begun) = pool(3);
        let (one, other) = (
            Names::with(&pool, 2, Duration::from_millis(50)),
            Names::with(&pool, 2, LONG),
        );
        let mut asking = JoinSet::new();
        for n in 0..10 {
            let one = one.clone();
            asking.spawn(async move { one.look_up(&format!("dead-{n}")).await });
        }
        while let Some(ended) = asking.join_next().await {
            let error = ended.unwrap().unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::TimedOut, "{error}");
            assert!(error.to_string().contains("dead-"), "{error}");
        }
        assert_eq!(begun.try_iter().count(), 2, "a requester has two threads");
        assert_eq!(other.look_up("alive").await.unwrap(), [FOUND]);
        drop(thaw);
        let again = Names { within: LONG, ..one };
        assert_eq!(again.look_up("alive").await.unwrap(), [FOUND]);
    }

    #[tokio::test]
    async fn all_who_ask_for_a_name_share_one_look_up() {
        let (pool, thaw, begun) = pool(8);
        let mut asking = JoinSet::new();
        for _ in 0..20 {
            let names = Names::with(&pool, 1, LONG);
            asking.spawn(async move { names.look_up("dead").await });
        }
        while begun.try_recv().is_err() {
            tokio::task::yield_now().await;
        }
        drop(thaw);
        for found in asking.join_all().await {
            assert_eq!(found.unwrap(), [FOUND]);
        }
        assert_eq!(begun.try_iter().count(), 0, "there was one look-up");
        assert_eq!(pool.slots.available_permits(), 8, "no slot is lost");
    }

    #[tokio::test]
    async fn an_error_is_told_and_the_next_one_asks_again() {
        let (pool, _thaw, begun) = pool(1);
        let names = Names::with(&pool, 1, LONG);
        for _ in 0..2 {
            let error = names.look_up("unknown").await.unwrap_err();
            assert_eq!(
                (error.kind(), error.to_string()),
                (io::ErrorKind::NotFound, "no such name".to_owned())
            );
        }
        assert_eq!(begun.try_iter().count(), 2);
        assert_eq!(
            names.look_up("192.0.2.9").await.unwrap(),
            ["192.0.2.9".parse::<IpAddr>().unwrap()]
        );
        assert_eq!(begun.try_iter().count(), 0, "an address needs no look-up");
    }

    #[test]
    fn the_machine_knows_itself() {
        assert!(system("localhost").unwrap().iter().all(IpAddr::is_loopback));
    }
}
