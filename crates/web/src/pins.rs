//! The judged addresses: the only ones that the HTTP client can connect to.

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};

/// One host with its judged addresses; the client can resolve no other host.
#[derive(Debug, Clone, Default)]
pub(crate) struct Pins(Arc<Mutex<Pinned>>);

/// A host, and its addresses.
type Pinned = Option<(String, Vec<IpAddr>)>;

impl Pins {
    /// Replaces the pinned host.
    pub(crate) fn set(&self, host: &str, addresses: Vec<IpAddr>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some((host.to_owned(), addresses));
    }

    fn of(&self, host: &str) -> Option<Vec<SocketAddr>> {
        let pinned = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (_, addresses) = pinned.as_ref().filter(|(own, _)| own == host)?;
        // The client takes the port from the URL.
        Some(addresses.iter().map(|ip| SocketAddr::new(*ip, 0)).collect())
    }
}

impl Resolve for Pins {
    fn resolve(&self, name: Name) -> Resolving {
        let found = self.of(name.as_str());
        Box::pin(async move {
            let addresses = found.ok_or("no verdict covers this host")?;
            Ok(Box::new(addresses.into_iter()) as Addrs)
        })
    }
}
