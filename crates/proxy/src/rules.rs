//! The rules for which hosts a session may reach. Pure.

use agentd_settings::{OpenedPlace, Reachable};
use std::net::IpAddr;

/// The allowed ports of entries without a port.
const USUAL_PORTS: [u16; 2] = [80, 443];

/// The hosts that the operator listed.
#[derive(Debug, Clone, Default)]
pub struct Rules(Vec<Reachable>);

impl Rules {
    /// Allows these hosts and no others.
    #[must_use]
    pub const fn new(listed: Vec<Reachable>) -> Self {
        Self(listed)
    }

    /// Whether this host and port are listed, by name or as an address.
    pub(crate) fn names(&self, host: &str, port: u16) -> bool {
        let address = address(host);
        self.0.iter().any(|entry| {
            let same = match (&entry.place.what, address) {
                (OpenedPlace::Net(net), Some(address)) => net.contains(&address),
                (OpenedPlace::Host(name), None) => is_named(host, name, entry.below),
                (OpenedPlace::Net(_), None) | (OpenedPlace::Host(_), Some(_)) => false,
            };
            same && at(entry, port)
        })
    }

    /// Whether a connection to an address that is not public is allowed: only if the address itself is listed.
    pub(crate) fn opens(&self, address: IpAddr, port: u16) -> bool {
        self.0.iter().any(|entry| {
            let same = matches!(&entry.place.what, OpenedPlace::Net(net) if net.contains(&address));
            same && at(entry, port)
        })
    }
}

/// Parses a host that is written as an address. An unusual spelling counts as a name, which no host has.
pub(crate) fn address(host: &str) -> Option<IpAddr> {
    let inner = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    inner.unwrap_or(host).parse().ok()
}

/// Compares the name after checking each label's characters, so that nothing in front of the listed name can end the host
/// for another parser.
fn is_named(host: &str, name: &str, below: bool) -> bool {
    let host = host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase();
    let label = |label: &str| {
        !label.is_empty()
            && label
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
    };
    if !host.split('.').all(label) {
        return false;
    }
    if below {
        return host.strip_suffix(name).is_some_and(|left| left.ends_with('.'));
    }
    host == name
}

fn at(entry: &Reachable, port: u16) -> bool {
    entry
        .place
        .port
        .map_or_else(|| USUAL_PORTS.contains(&port), |own| own == port)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(listed: &[&str]) -> Rules {
        Rules::new(
            listed
                .iter()
                .map(|text| Reachable::parse(text).unwrap())
                .collect(),
        )
    }

    #[test]
    fn only_what_is_listed_is_reached_and_on_its_ports() {
        let rules = rules(&["crates.io", "*.github.com", "127.0.0.1:8080", "git.corp:2222"]);
        for (host, port) in [
            ("crates.io", 443),
            ("Crates.IO", 80),
            ("crates.io.", 443),
            ("api.github.com", 443),
            ("127.0.0.1", 8080),
            ("git.corp", 2222),
        ] {
            assert!(rules.names(host, port), "{host}:{port}");
        }
        for (host, port) in [
            ("crates.io", 22),
            ("crates.io.evil", 443),
            ("evil-crates.io", 443),
            ("static.crates.io", 443),
            ("github.com", 443),
            (".github.com", 443),
            ("evilgithub.com", 443),
            ("127.0.0.1", 80),
            ("127.1", 8080),
            ("0x7f.1", 8080),
            ("2130706433", 8080),
            ("[::ffff:127.0.0.1]", 8080),
            ("git.corp", 443),
            ("", 443),
        ] {
            assert!(!rules.names(host, port), "{host}:{port}");
        }
    }

    /// Each of these passed a suffix check with a listed name while a resolver or a server read another host.
    #[test]
    fn i7_redteam_a_host_that_only_ends_like_a_listed_one_is_not_reached() {
        let rules = rules(&["*.github.com", "crates.io"]);
        assert!(rules.names("api.github.com", 443), "positive control");
        for host in [
            // A NUL in a SOCKS5 or CONNECT host: the resolver stops there, the suffix check does not (reported for
            // the domain list of Claude Code's sandbox-runtime).
            "evil.example\0.github.com",
            // PortSwigger, URL validation bypass cheat sheet.
            "evil.example/.github.com",
            "evil.example#.github.com",
            "evil.example?.github.com",
            "evil.example\\.github.com",
            "evil.example%00.github.com",
            "x@evil.example:80#.github.com",
            "evil.example\r\n.github.com",
            "evil.example\u{3002}.github.com",
            "..github.com",
            "a..github.com",
            "crates.io\0",
            "crates.io..",
        ] {
            assert!(!rules.names(host, 443), "{host:?}");
        }
    }

    #[test]
    fn an_inner_address_is_opened_by_itself_and_not_by_a_name() {
        let rules = rules(&["wiki.corp", "10.0.0.0/8"]);
        assert!(rules.opens("10.1.2.3".parse().unwrap(), 443));
        assert!(!rules.opens("10.1.2.3".parse().unwrap(), 8080));
        assert!(!rules.opens("192.168.0.1".parse().unwrap(), 443));
    }
}
