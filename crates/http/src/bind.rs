//! Opens the address: the configured one, or any free one instead of the default.

use crate::error::HttpError;
use crate::tls::Tls;
use agentd_settings::HttpConfig;
use std::io::{Error, ErrorKind};
use std::net::SocketAddr;
use tokio::net::TcpListener;

/// An open address.
#[derive(Debug)]
pub struct Bound {
    pub(crate) listener: TcpListener,
    /// The address that clients use.
    pub address: SocketAddr,
    /// Whether the default port was taken, so that this is another one.
    pub moved: bool,
    pub(crate) tls: Option<Tls>,
}

impl Bound {
    /// The URL that clients use.
    #[must_use]
    pub fn url(&self) -> String {
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        format!("{scheme}://{}", self.address)
    }
}

/// Opens the address of the settings; `None` if HTTP is off. If it is the default (`fixed` is false) and taken, the system
/// chooses a free port.
///
/// # Errors
/// The address is taken or wrong, or reachable from other machines without encryption.
pub async fn bind(config: &HttpConfig, fixed: bool) -> Result<Option<Bound>, HttpError> {
    if config.listen == "off" {
        return Ok(None);
    }
    let wrong = |_| HttpError::NotAnAddress(config.listen.clone());
    let address: SocketAddr = config.listen.parse().map_err(wrong)?;
    let tls = if config.tls.is_on() {
        Some(Tls::open(&config.tls).await?)
    } else {
        None
    };
    if !address.ip().is_loopback() && tls.is_none() && !config.behind_proxy {
        return Err(HttpError::Unencrypted(address));
    }
    match TcpListener::bind(address).await {
        Ok(listener) => bound(listener, address, tls, false),
        Err(error) if error.kind() != ErrorKind::AddrInUse => Err(io(address, error)),
        Err(_) if fixed => Err(HttpError::InUse(address)),
        Err(_) => {
            let any = SocketAddr::new(address.ip(), 0);
            let listener = TcpListener::bind(any).await.map_err(|error| io(any, error))?;
            bound(listener, any, tls, true)
        }
    }
}

fn bound(
    listener: TcpListener,
    asked: SocketAddr,
    tls: Option<Tls>,
    moved: bool,
) -> Result<Option<Bound>, HttpError> {
    let address = listener.local_addr().map_err(|error| io(asked, error))?;
    Ok(Some(Bound {
        listener,
        address,
        moved,
        tls,
    }))
}

const fn io(address: SocketAddr, source: Error) -> HttpError {
    HttpError::Io { address, source }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(listen: &str) -> HttpConfig {
        HttpConfig {
            listen: listen.to_owned(),
            ..HttpConfig::default()
        }
    }

    #[tokio::test]
    async fn a_taken_port_is_replaced_only_if_it_is_the_default() {
        let taken = bind(&at("127.0.0.1:0"), true).await.unwrap().unwrap();
        let again = at(&taken.address.to_string());
        let refused = bind(&again, true).await.unwrap_err();
        assert!(matches!(refused, HttpError::InUse(address) if address == taken.address));
        let other = bind(&again, false).await.unwrap().unwrap();
        assert!(other.moved && other.address.port() != taken.address.port());
        assert!(bind(&at("off"), true).await.unwrap().is_none());
    }

    #[tokio::test]
    async fn an_address_beyond_loopback_needs_tls() {
        let refused = bind(&at("0.0.0.0:0"), true).await.unwrap_err();
        assert!(refused.to_string().contains("http.behind_proxy"), "{refused}");
        let proxied = HttpConfig {
            behind_proxy: true,
            ..at("0.0.0.0:0")
        };
        assert!(bind(&proxied, true).await.unwrap().is_some());
        let wrong = bind(&at("localhost"), true).await.unwrap_err();
        assert!(matches!(wrong, HttpError::NotAnAddress(_)));
    }
}
