//! `[tools.web]`: what WebFetch can reach.

use ipnet::IpNet;
use serde::{Deserialize, Serialize};
use std::net::{IpAddr, SocketAddr};

/// `[tools.web]`: limits of WebFetch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WebConfig {
    /// Whether agents have the tool.
    pub enabled: bool,
    /// Bytes of an answer that are read; the rest is dropped.
    pub max_bytes: u64,
    /// The time limit of one call, including redirects.
    pub timeout_ms: u64,
    /// Non-public hosts, addresses and networks that WebFetch may reach, with `:PORT` for ports other than 80 and 443.
    pub allow_private: Vec<String>,
}

impl WebConfig {
    /// The entries of `allow_private`.
    ///
    /// # Errors
    /// The first entry that is not a network, an address or a host.
    pub fn opened(&self) -> Result<Vec<Opened>, String> {
        self.allow_private
            .iter()
            .map(|text| Opened::parse(text).ok_or_else(|| text.clone()))
            .collect()
    }
}

/// An entry of `allow_private`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Opened {
    /// The place.
    pub what: OpenedPlace,
    /// The only port; absent: 80 and 443.
    pub port: Option<u16>,
}

/// A place that an entry allows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OpenedPlace {
    /// Addresses.
    Net(IpNet),
    /// A host name in lower case.
    Host(String),
}

impl Opened {
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let net = |net: IpNet, port| Self {
            what: OpenedPlace::Net(net),
            port,
        };
        if let Ok(range) = text.parse::<IpNet>() {
            return Some(net(range, None));
        }
        if let Ok(address) = text.parse::<IpAddr>() {
            return Some(net(address.into(), None));
        }
        if let Ok(address) = text.parse::<SocketAddr>() {
            return Some(net(address.ip().into(), Some(address.port())));
        }
        let (host, port) = match text.split_once(':') {
            Some((host, port)) => (host, Some(port.parse().ok().filter(|port| *port != 0)?)),
            None => (text, None),
        };
        let named = host.split('.').all(|label| {
            !label.is_empty()
                && label
                    .chars()
                    .all(|c| c.is_ascii_alphanumeric() || "-_".contains(c))
        });
        // A name that ends in a number is a mistyped address.
        let numeric = host
            .rsplit('.')
            .next()
            .is_some_and(|label| label.starts_with(|c: char| c.is_ascii_digit()));
        (named && !numeric).then(|| Self {
            what: OpenedPlace::Host(host.to_ascii_lowercase()),
            port,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_networks_addresses_or_hosts() {
        let net = |text: &str| OpenedPlace::Net(text.parse().unwrap());
        let host = |text: &str| OpenedPlace::Host(text.to_owned());
        for (text, what, port) in [
            ("10.0.0.0/8", net("10.0.0.0/8"), None),
            ("fd00::/8", net("fd00::/8"), None),
            ("10.1.2.3", net("10.1.2.3/32"), None),
            ("::1", net("::1/128"), None),
            ("127.0.0.1:8080", net("127.0.0.1/32"), Some(8080)),
            ("[::1]:8080", net("::1/128"), Some(8080)),
            ("Wiki.Corp.internal", host("wiki.corp.internal"), None),
            ("localhost:3000", host("localhost"), Some(3000)),
        ] {
            assert_eq!(Opened::parse(text), Some(Opened { what, port }), "{text}");
        }
        for text in [
            "",
            "*",
            "http://a",
            "a/b",
            "a:b",
            "a:0",
            "a:70000",
            "10.0.0.0/33",
            "10.0.0",
            "127.1",
            "a..b",
        ] {
            assert_eq!(Opened::parse(text), None, "{text}");
        }
    }

    #[test]
    fn an_invalid_entry_is_named() {
        let config = WebConfig {
            allow_private: vec!["10.0.0.0/8".to_owned(), "10.0.0".to_owned()],
            ..WebConfig::default()
        };
        assert_eq!(config.opened(), Err("10.0.0".to_owned()));
    }
}
