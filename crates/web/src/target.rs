//! The form of an address that is judged and fetched: one spelling for each place.

use crate::error::WebError;
use std::fmt;
use url::{Host, Url};

/// The longest address.
const MAX_LEN: usize = 4_096;

/// An address with http or https, without a user, a fragment, or a dot at the end of its host; numeric addresses in any
/// spelling become dotted decimal, and host names ASCII.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target(Url);

impl Target {
    /// Parses an address into the form that must be judged.
    ///
    /// # Errors
    /// It is not an address, has another scheme or a user, or contains ambiguous characters.
    pub fn parse(text: &str) -> Result<Self, WebError> {
        let text = text.trim_matches(' ');
        let refuse = |why| {
            let shown: String = text.chars().take(200).collect();
            WebError::Address(shown, why)
        };
        if text.len() > MAX_LEN {
            return Err(refuse("it is too long"));
        }
        if text
            .chars()
            .any(|c| c.is_control() || c.is_whitespace() || c == '\\')
        {
            return Err(refuse("it contains a space, a control character or a backslash"));
        }
        let http = |scheme: &str| {
            text.get(..scheme.len())
                .is_some_and(|head| head.eq_ignore_ascii_case(scheme))
        };
        if !http("https://") && !http("http://") {
            return Err(refuse("it must begin with https:// or http://"));
        }
        let authority = text.split("://").nth(1).unwrap_or_default();
        let authority = authority.split(['/', '?', '#']).next().unwrap_or_default();
        if authority.contains('@') {
            return Err(refuse("it contains a user name"));
        }
        let mut url = Url::parse(text).map_err(|_| refuse("its host or port is malformed"))?;
        if let Some(Host::Domain(name)) = url.host() {
            let plain = name.trim_end_matches('.').to_owned();
            if plain != name {
                url.set_host(Some(&plain))
                    .map_err(|_| refuse("its host is malformed"))?;
            }
        }
        url.set_fragment(None);
        if url.host_str().is_none_or(str::is_empty) || !url.username().is_empty() || url.port() == Some(0) {
            return Err(refuse("its host or port is malformed"));
        }
        Ok(Self(url))
    }

    /// The whole address.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// The host's name or address.
    #[must_use]
    pub fn host(&self) -> &str {
        self.0.host_str().unwrap_or_default()
    }

    /// The port.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.0.port_or_known_default().unwrap_or_default()
    }
}

#[cfg(feature = "fetch")]
impl Target {
    pub(crate) const fn url(&self) -> &Url {
        &self.0
    }

    /// Resolves a `Location` header relative to this address.
    pub(crate) fn join(&self, location: &str) -> Result<Self, WebError> {
        let joined = self.0.join(location).map_err(|_| {
            WebError::Address(
                location.chars().take(200).collect(),
                "its host or port is malformed",
            )
        })?;
        Self::parse(joined.as_str())
    }

    /// Whether another address is on the same server: the same host and port, or an upgrade from http to https.
    pub(crate) fn same_server(&self, other: &Self) -> bool {
        let upgraded = self.0.scheme() == "http"
            && self.port() == 80
            && other.0.scheme() == "https"
            && other.port() == 443;
        let equal = self.0.scheme() == other.0.scheme() && self.port() == other.port();
        self.0.host() == other.0.host() && (upgraded || equal)
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_normalized() {
        for (text, expected) in [
            ("https://docs.rs", "https://docs.rs/"),
            (" HTTPS://Docs.RS:443/a/../b?c=d#e ", "https://docs.rs/b?c=d"),
            ("http://docs.rs./x", "http://docs.rs/x"),
            ("http://docs.rs:8080/", "http://docs.rs:8080/"),
            ("http://0x7f.1/", "http://127.0.0.1/"),
            ("http://2130706433/", "http://127.0.0.1/"),
            ("http://0177.0.0.01/", "http://127.0.0.1/"),
            ("http://127.1./", "http://127.0.0.1/"),
            ("http://１２７.0.0.1/", "http://127.0.0.1/"),
            ("https://bücher.example/", "https://xn--bcher-kva.example/"),
            ("https://docs%2ers/", "https://docs.rs/"),
            ("http://[::FFFF:127.0.0.1]/", "http://[::ffff:7f00:1]/"),
        ] {
            assert_eq!(Target::parse(text).unwrap().as_str(), expected, "{text}");
        }
    }

    #[test]
    fn redteam_35_odd_addresses_are_refused() {
        for text in [
            "",
            "docs.rs",
            "file:///etc/passwd",
            "ftp://docs.rs/",
            "javascript:alert(1)",
            "http:docs.rs",
            "https://",
            "https://./",
            "https://ana@docs.rs/",
            "https://ana:secret@docs.rs/",
            "https://@docs.rs/",
            "https://docs.rs@evil.example/",
            "https://docs.rs%40evil.example/",
            "https://evil\0.docs.rs/",
            "https://evil%00.docs.rs/",
            "https://docs.rs\\@evil.example/",
            "https://docs.rs/a\nb",
            "https://do\tcs.rs/",
            "https://docs.rs:0/",
            "https://docs.rs:99999/",
            "http://256.0.0.1/",
            "http://0x7f.0.0.0.1/",
            &format!("https://docs.rs/{}", "x".repeat(MAX_LEN)),
        ] {
            assert!(Target::parse(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn redirects_within_a_server_differ_from_others() {
        let from = Target::parse("http://docs.rs/a/b").unwrap();
        for (location, expected) in [
            ("c", Some(("http://docs.rs/a/c", true))),
            ("//docs.rs/x", Some(("http://docs.rs/x", true))),
            ("https://docs.rs/", Some(("https://docs.rs/", true))),
            ("https://docs.rs:8443/", Some(("https://docs.rs:8443/", false))),
            ("http://docs.rs:8080/", Some(("http://docs.rs:8080/", false))),
            (
                "https://docs.rs.evil.example/",
                Some(("https://docs.rs.evil.example/", false)),
            ),
            ("//evil.example", Some(("http://evil.example/", false))),
            ("https://docs.rs@evil.example/", None),
            ("file:///etc/passwd", None),
        ] {
            let to = from.join(location).ok();
            let seen = to.as_ref().map(|to| (to.as_str(), from.same_server(to)));
            assert_eq!(seen, expected, "{location}");
        }
        let secure = Target::parse("https://docs.rs/").unwrap();
        assert!(!secure.same_server(&from), "https to http is another server");
    }
}
