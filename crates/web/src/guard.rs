//! Decides which places may be reached: public addresses on the usual ports, and places that the operator opened. Pure.

use crate::address::{Closed, closed, closed_name};
use crate::error::WebError;
use crate::target::Target;
use agentd_settings::{Opened, OpenedPlace, WebConfig};
use std::net::IpAddr;
use url::Host;

const USUAL_PORTS: [u16; 2] = [80, 443];

/// The rules for reachable places.
#[derive(Debug, Clone)]
pub struct Guard {
    opened: Vec<Opened>,
}

impl Guard {
    /// A guard with the places that the configuration opens.
    ///
    /// # Errors
    /// An entry is invalid.
    pub fn new(config: &WebConfig) -> Result<Self, WebError> {
        let opened = config.opened().map_err(WebError::Config)?;
        Ok(Self { opened })
    }

    /// Judges an address before its name is looked up.
    ///
    /// # Errors
    /// It may not be reached, whatever its host name resolves to.
    pub fn check(&self, target: &Target) -> Result<(), WebError> {
        let refuse = |why| WebError::Refused {
            place: target.host().to_owned(),
            why,
        };
        let (host, port) = (target.host(), target.port());
        let named = |entry: &Opened| matches!(&entry.what, OpenedPlace::Host(name) if name == host);
        match target.url().host() {
            Some(Host::Ipv4(address)) => self.check_address(target, address.into()),
            Some(Host::Ipv6(address)) => self.check_address(target, address.into()),
            Some(Host::Domain(_)) => {
                let open = self.opened.iter().any(|entry| named(entry) && at(entry, port));
                if let Some(why) = closed_name(host).filter(|_| !open) {
                    return Err(refuse(why));
                }
                // An entry for the resolved address may still open the port.
                let possible =
                    USUAL_PORTS.contains(&port) || self.opened.iter().any(|entry| entry.port == Some(port));
                possible.then_some(()).ok_or_else(|| refuse(PORT))
            }
            None => Err(refuse("it has no host")),
        }
    }

    /// Judges one of the addresses that a host name resolves to.
    ///
    /// # Errors
    /// It may not be reached.
    pub fn check_address(&self, target: &Target, address: IpAddr) -> Result<(), WebError> {
        let (host, port) = (target.host(), target.port());
        let refuse = |why| {
            let literal = matches!(target.url().host(), Some(Host::Ipv4(_) | Host::Ipv6(_)));
            let place = if literal {
                host.to_owned()
            } else {
                format!("{host} ({address})")
            };
            WebError::Refused { place, why }
        };
        let covers = |entry: &Opened| match &entry.what {
            OpenedPlace::Net(net) => net.contains(&address),
            OpenedPlace::Host(name) => name == host && !matches!(closed(address), Some(Closed::Metadata(_))),
        };
        if let Some(closed) = closed(address)
            && !self.opened.iter().any(|entry| covers(entry) && at(entry, port))
        {
            return Err(refuse(closed.why()));
        }
        let own_port = |entry: &Opened| entry.port == Some(port) && covers(entry);
        if USUAL_PORTS.contains(&port) || self.opened.iter().any(own_port) {
            return Ok(());
        }
        Err(refuse(PORT))
    }
}

const PORT: &str = "only ports 80 and 443 are allowed";

/// Whether an entry covers a port.
fn at(entry: &Opened, port: u16) -> bool {
    entry
        .port
        .map_or_else(|| USUAL_PORTS.contains(&port), |own| own == port)
}

#[cfg(test)]
mod tests;
