//! Addresses: `https://docs.rs/**`, `domain:docs.rs`, `*`.

use crate::glob::LazyGlob;
use globset::GlobBuilder;

/// A pattern over addresses.
#[derive(Debug, Clone)]
pub(crate) enum UrlPattern {
    /// A glob over the whole address.
    Whole(LazyGlob),
    /// A glob over the host's name.
    Host(LazyGlob),
}

impl UrlPattern {
    /// Reads a pattern.
    pub(crate) fn parse(pattern: &str) -> Result<Self, String> {
        let glob = |text: &str| {
            let built = GlobBuilder::new(text)
                .literal_separator(false)
                .case_insensitive(true)
                .build();
            built.map(LazyGlob::new).map_err(|error| error.kind().to_string())
        };
        if let Some(host) = pattern.strip_prefix("domain:") {
            return glob(host).map(Self::Host);
        }
        if pattern.contains("://") || pattern == "*" || pattern == "**" {
            return glob(pattern).map(Self::Whole);
        }
        glob(pattern).map(Self::Host)
    }

    /// Whether an address fits.
    pub(crate) fn matches(&self, url: &str) -> bool {
        match self {
            Self::Whole(glob) => glob.is_match(url),
            Self::Host(glob) => host(url).is_some_and(|host| glob.is_match(host.trim_end_matches('.'))),
        }
    }
}

/// Whether an address is written so plainly that a rule may allow it: http or https, no user, no odd character.
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

/// The pattern of everything at the place of a plain address: its host, or its host and port where that is not the usual
/// one.
pub(crate) fn site(url: &str) -> Option<String> {
    let host = host(url).filter(|host| is_plain(url) && !host.is_empty())?;
    let (scheme, rest) = url.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next()?;
    let usual = if scheme == "https" { ":443" } else { ":80" };
    match authority.strip_prefix(host)? {
        "" => Some(format!("domain:{host}")),
        port if port == usual => Some(format!("domain:{host}")),
        _ => Some(format!("{scheme}://{authority}/**")),
    }
}

fn host(url: &str) -> Option<&str> {
    let (_, rest) = url.split_once("://")?;
    let authority = rest.split(['/', '?', '#', '\\']).next()?;
    let host = authority.rsplit('@').next()?;
    if let Some(v6) = host.strip_prefix('[') {
        return v6.split(']').next();
    }
    host.split(':').next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(pattern: &str, url: &str, expected: bool) {
        assert_eq!(
            UrlPattern::parse(pattern).unwrap().matches(url),
            expected,
            "{pattern} {url}"
        );
    }

    #[test]
    fn hosts_are_compared_as_hosts() {
        check("domain:docs.rs", "https://docs.rs/x", true);
        check("domain:docs.rs", "https://docs.rs.evil/x", false);
        check("domain:docs.rs", "https://docs.rs@evil/x", false);
        check("*.rs", "https://DOCS.rs:443/", true);
        check("https://docs.rs/**", "https://docs.rs/a/b", true);
        check("*", "https://anything", true);
    }

    #[test]
    fn the_place_of_an_address_is_its_host() {
        for (url, expected) in [
            ("https://docs.rs/x?y", Some("domain:docs.rs")),
            ("http://docs.rs:80/", Some("domain:docs.rs")),
            ("http://docs.rs:8080/a", Some("http://docs.rs:8080/**")),
            ("https://ana@docs.rs/", None),
            ("https://*/", None),
            ("https:///x", None),
        ] {
            assert_eq!(site(url).as_deref(), expected, "{url}");
            let allows = expected.is_none_or(|pattern| UrlPattern::parse(pattern).unwrap().matches(url));
            assert!(allows, "{url}");
        }
    }

    #[test]
    fn odd_addresses_are_not_plain() {
        assert!(is_plain("https://docs.rs/a?b=c"));
        for url in [
            "https://a@b/",
            "https://a\0b/",
            "file:///etc/passwd",
            "https://a\\b",
            "https:// a",
            "https://x/../y",
        ] {
            assert!(!is_plain(url), "{url:?}");
        }
    }
}
