//! The names and addresses of this server, for the guard against DNS rebinding.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// What `Host` may be.
#[derive(Debug)]
pub(crate) struct Hosts {
    /// The names and addresses of the configuration.
    pub(crate) configured: Vec<String>,
    /// The address at which the server listens.
    pub(crate) listening: IpAddr,
}

impl Hosts {
    /// Whether a `Host` names this server, on a connection to this local address. An address counts only if the client could
    /// have connected to it: that of the listener, or, if it listens at all addresses, that of the connection.
    pub(crate) fn know(&self, host: &str, local: Option<IpAddr>) -> bool {
        let Some(name) = name(host) else { return false };
        let bare = name.trim_start_matches('[').trim_end_matches(']');
        let configured = |own: &String| own.eq_ignore_ascii_case(name) || own.eq_ignore_ascii_case(bare);
        if name.eq_ignore_ascii_case("localhost") || self.configured.iter().any(configured) {
            return true;
        }
        let address = if name.starts_with('[') {
            bare.parse::<Ipv6Addr>().map(IpAddr::V6)
        } else {
            name.parse::<Ipv4Addr>().map(IpAddr::V4)
        };
        let Ok(address) = address.map(|address| address.to_canonical()) else {
            return false;
        };
        let own = [Some(self.listening), local];
        let mut own = own.into_iter().flatten().map(|own| own.to_canonical());
        !address.is_unspecified() && own.any(|own| own == address)
    }
}

/// The part before the port. An address of version 6 keeps its brackets.
fn name(host: &str) -> Option<&str> {
    let after = match host.strip_prefix('[') {
        Some(rest) => rest.find(']')? + 2,
        None => host.find(':').unwrap_or(host.len()),
    };
    let (name, port) = host.split_at_checked(after)?;
    let digits = port.strip_prefix(':').unwrap_or("0");
    let good = port.is_empty() || port.starts_with(':');
    let good = good && digits.bytes().all(|byte| byte.is_ascii_digit()) && digits.parse::<u16>().is_ok();
    good.then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn knows(listening: &str, local: &str, host: &str) -> bool {
        let hosts = Hosts {
            configured: vec!["agents.example".to_owned(), "203.0.113.5".to_owned()],
            listening: listening.parse().unwrap(),
        };
        hosts.know(host, Some(local.parse().unwrap()))
    }

    #[test]
    fn names_and_addresses_of_this_server_are_known() {
        for (listening, local, host) in [
            ("127.0.0.1", "127.0.0.1", "127.0.0.1:7433"),
            ("127.0.0.1", "127.0.0.1", "localhost"),
            ("127.0.0.1", "127.0.0.1", "LOCALHOST:1"),
            ("127.0.0.1", "127.0.0.1", "Agents.Example:443"),
            ("127.0.0.1", "127.0.0.1", "203.0.113.5"),
            ("::1", "::1", "[::1]:7433"),
            ("0.0.0.0", "192.0.2.7", "192.0.2.7"),
            ("::", "::ffff:192.0.2.7", "192.0.2.7:80"),
            ("::", "2001:db8::7", "[2001:db8:0:0::7]"),
        ] {
            assert!(knows(listening, local, host), "{listening} {local} {host}");
        }
    }

    #[test]
    fn redteam_49_i7_other_names_and_addresses_are_unknown() {
        for host in [
            // Rebound names, also of services that turn an address into a name.
            "evil.example",
            "localhost.evil.example",
            "127.0.0.1.nip.io",
            "localtest.me",
            // The address "any", which reaches this machine from a page.
            "0.0.0.0",
            "0.0.0.0:7433",
            "[::]",
            "[::ffff:0.0.0.0]",
            // Other addresses, and other spellings.
            "192.0.2.8",
            "169.254.169.254",
            "127.0.0.2",
            "[::1]",
            "127.1",
            "0x7f.0.0.1",
            "0177.0.0.1",
            "2130706433",
            "::1",
            "127.0.0.1.",
            "localhost.",
            // Two readings.
            "evil@127.0.0.1",
            "127.0.0.1:80@evil.example",
            "127.0.0.1:x",
            "127.0.0.1:99999",
            "127.0.0.1:+1",
            "127.0.0.1:",
            "127.0.0.1:1:2",
            "[127.0.0.1]",
            "[[::1]]",
            "[::1",
            "127.0.0.1 evil",
            "127.0.0.1,evil.example",
            "localhost/",
            "",
        ] {
            assert!(!knows("127.0.0.1", "127.0.0.1", host), "{host}");
        }
        assert!(!knows("0.0.0.0", "192.0.2.7", "0.0.0.0"));
        assert!(!knows("0.0.0.0", "192.0.2.7", "127.0.0.1"));
    }
}
