//! An address, parsed once for all rules.

use percent_encoding::percent_decode_str;
use url::{Host, Url};

/// An address and its parts.
#[derive(Debug)]
pub(crate) struct Address {
    parts: Option<Parts>,
    /// The host as a different parser might see it.
    other: Option<String>,
}

/// The parts that patterns are compared with.
#[derive(Debug)]
pub(crate) struct Parts {
    pub(crate) scheme: String,
    host: String,
    pub(crate) port: Option<u16>,
    pub(crate) usual_port: bool,
    pub(crate) path: String,
    /// The percent-decoded path.
    pub(crate) decoded: String,
    /// The path has an encoded separator or dot: servers disagree about its meaning.
    pub(crate) ambiguous: bool,
    pub(crate) query: Option<String>,
}

impl Address {
    /// Parses an address.
    pub(crate) fn read(text: &str) -> Self {
        let parts = Url::parse(text).ok().and_then(|url| Parts::of(&url));
        let seen = textual_host(text).map(|host| host.trim_end_matches('.').to_ascii_lowercase());
        // Another spelling of the same host does not count as a different host.
        let same = |seen: &String| {
            let spelled = Host::parse(seen).map(|host| host.to_string());
            parts
                .as_ref()
                .is_some_and(|parts| spelled.is_ok_and(|spelled| spelled == parts.host))
        };
        Self {
            other: seen.filter(|seen| !same(seen)),
            parts,
        }
    }

    /// Its parts; `None` when it cannot be parsed.
    pub(crate) const fn parts(&self) -> Option<&Parts> {
        self.parts.as_ref()
    }

    /// Whether parsers disagree about its host.
    pub(crate) const fn is_disputed(&self) -> bool {
        self.other.is_some()
    }

    /// The host; with `broad`, also the one that a careless parser sees.
    pub(crate) fn hosts(&self, broad: bool) -> impl Iterator<Item = &str> {
        let host = self.parts.iter().map(|parts| parts.host.as_str());
        host.chain(self.other.as_deref().filter(|_| broad))
    }
}

impl Parts {
    fn of(url: &Url) -> Option<Self> {
        let host = url.host_str()?.trim_end_matches('.');
        let path = url.path().to_owned();
        let lower = path.to_ascii_lowercase();
        Some(Self {
            scheme: url.scheme().to_owned(),
            host: host.to_owned(),
            port: url.port_or_known_default(),
            usual_port: url.port().is_none(),
            decoded: percent_decode_str(&path).decode_utf8_lossy().into_owned(),
            ambiguous: ["%2f", "%5c", "%2e", "%00", "%25"]
                .iter()
                .any(|code| lower.contains(code)),
            query: url.query().map(str::to_owned),
            path,
        })
    }
}

/// Whether an address is plain enough for a rule to allow it: http or https, no user, no unusual character.
pub(crate) fn is_plain(url: &str) -> bool {
    let rest = url
        .strip_prefix("https://")
        .or_else(|| url.strip_prefix("http://"));
    rest.is_some_and(|rest| {
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        !authority.is_empty()
            && authority
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || ".-:".contains(c))
            && rest
                .chars()
                .all(|c| c.is_ascii_graphic() && !"\\\"<>`".contains(c))
            && !rest.split(['/', '?', '#']).any(|part| part == "..")
    })
}

/// The pattern that covers the whole site of a plain address: its host, with the port if that is not the default.
pub(crate) fn site(url: &str) -> Option<String> {
    let parts = Address::read(url)
        .parts
        .filter(|parts| is_plain(url) && !parts.host.is_empty())?;
    let Parts { scheme, host, .. } = &parts;
    Some(match parts.port {
        Some(port) if !parts.usual_port => format!("{scheme}://{host}:{port}/**"),
        _ => format!("domain:{host}"),
    })
}

/// The host found by looking only at the text.
fn textual_host(url: &str) -> Option<&str> {
    let (_, rest) = url.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next()?;
    let host = authority.rsplit('@').next()?;
    if host.starts_with('[') {
        return host.find(']').and_then(|end| host.get(..=end));
    }
    host.split(':').next()
}
