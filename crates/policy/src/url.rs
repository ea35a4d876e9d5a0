//! Addresses and patterns for them: `https://docs.rs/**`, `domain:*.docs.rs`, `*`.
//!
//! A pattern is parsed into scheme, host, port, path and query, and each part is compared with the same part of the
//! address, so that a wildcard never extends into the next part. An allow rule reads its pattern narrowly, a deny or ask
//! rule broadly: where an address is ambiguous, the rule that allows does not match and the rule that forbids does.

mod address;
mod host;

pub(crate) use address::{Address, is_plain, site};

use crate::glob::{LazyGlob, check_glob};
use globset::GlobBuilder;
use host::HostPattern;

const FORMS: &str =
    "write domain:docs.rs, domain:*.docs.rs, https://docs.rs/**, https://docs.rs:8080/api/** or *";

/// A pattern over addresses.
#[derive(Debug, Clone)]
pub(crate) struct UrlPattern {
    /// `http` or `https`, or either.
    scheme: Option<&'static str>,
    host: HostPattern,
    port: Port,
    /// Absent: any path.
    path: Option<LazyGlob>,
    query: Query,
    /// Whether the rule asks or forbids.
    broad: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Port {
    Any,
    /// The default port of the scheme.
    Usual,
    Only(u16),
}

#[derive(Debug, Clone)]
enum Query {
    Any,
    Absent,
    Like(LazyGlob),
}

impl UrlPattern {
    /// Parses a pattern. `broad` says that the rule asks or forbids.
    pub(crate) fn parse(pattern: &str, broad: bool) -> Result<Self, String> {
        Self::read(pattern, broad).map_err(|problem| format!("{problem}; {FORMS}"))
    }

    fn read(pattern: &str, broad: bool) -> Result<Self, String> {
        if pattern.contains(['\\', '@', '#']) || pattern.contains(char::is_whitespace) {
            return Err("an address pattern cannot contain `\\`, `@`, `#` or a space".to_owned());
        }
        if matches!(pattern, "*" | "**") {
            return Ok(Self::of_host(HostPattern::Any, Port::Any, broad));
        }
        let Some((scheme, rest)) = pattern.split_once("://") else {
            let place = pattern.strip_prefix("domain:").unwrap_or(pattern);
            if place.contains(['/', '?']) {
                return Err("a pattern with a path must begin with https:// or http://".to_owned());
            }
            let (host, port) = place_of(place, broad)?;
            return Ok(Self::of_host(host, port, broad));
        };
        let scheme = match scheme.to_ascii_lowercase().as_str() {
            "*" => None,
            "http" => Some("http"),
            "https" => Some("https"),
            other => return Err(format!("unsupported scheme {other:?}")),
        };
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (place, rest) = rest.split_at(end);
        let (host, port) = place_of(place, broad)?;
        let (path, query) = match rest.split_once('?') {
            Some((path, query)) => (path, Some(query)),
            None => (rest, None),
        };
        let everything =
            matches!(path, "/**") || (query.is_none() && (path.is_empty() || (broad && path == "/*")));
        let deep = path.ends_with("**");
        Ok(Self {
            scheme,
            path: if everything {
                None
            } else {
                Some(path_glob(path, broad)?)
            },
            query: match query {
                Some(query) => Query::Like(glob(query, !broad, broad)?),
                None if broad || everything || deep => Query::Any,
                None => Query::Absent,
            },
            ..Self::of_host(host, port, broad)
        })
    }

    const fn of_host(host: HostPattern, port: Port, broad: bool) -> Self {
        Self {
            scheme: None,
            host,
            port,
            path: None,
            query: Query::Any,
            broad,
        }
    }

    /// Whether every address matches.
    pub(crate) fn is_everything(&self) -> bool {
        self.scheme.is_none()
            && self.host.is_everything()
            && self.port == Port::Any
            && self.path.is_none()
            && matches!(self.query, Query::Any)
    }

    /// Whether an address matches. An unparsable one matches every pattern that asks or forbids, and none that allows.
    pub(crate) fn matches(&self, address: &Address) -> bool {
        if self.is_everything() {
            return true;
        }
        let Some(parts) = address.parts() else {
            return self.broad;
        };
        let port = match self.port {
            Port::Any => true,
            Port::Usual => parts.usual_port,
            Port::Only(port) => parts.port == Some(port),
        };
        let query = match (&self.query, parts.query.as_deref()) {
            (Query::Any, _) | (Query::Absent, None) => true,
            (Query::Absent, Some(_)) => false,
            (Query::Like(glob), query) => glob.is_match(query.unwrap_or_default()),
        };
        port && query
            && self.scheme.is_none_or(|scheme| scheme == parts.scheme)
            && (self.broad || !address.is_disputed())
            && address.hosts(self.broad).any(|host| self.host.matches(host))
            && self.path.as_ref().is_none_or(|glob| {
                if self.broad {
                    glob.is_match(&parts.path) || glob.is_match(&parts.decoded)
                } else {
                    !parts.ambiguous && glob.is_match(&parts.path)
                }
            })
    }
}

/// A host and its port. In an allow rule, a missing port means the default port.
fn place_of(place: &str, broad: bool) -> Result<(HostPattern, Port), String> {
    let (host, port) = match place.rfind(']') {
        Some(end) => place.split_at(end + 1),
        None => place.split_at(place.find(':').unwrap_or(place.len())),
    };
    let port = match port.strip_prefix(':') {
        None if port.is_empty() => {
            if broad {
                Port::Any
            } else {
                Port::Usual
            }
        }
        Some("*") => Port::Any,
        Some(digits) if digits.bytes().all(|byte| byte.is_ascii_digit()) => {
            let port = digits.parse().ok().filter(|port| *port != 0);
            Port::Only(port.ok_or_else(|| format!("{digits:?} is not a port"))?)
        }
        _ if place.contains('[') => return Err(format!("{port:?} is not a port")),
        _ => {
            return Err(format!(
                "{port:?} is not a port; an IPv6 address must be in brackets"
            ));
        }
    };
    Ok((HostPattern::parse(host, broad)?, port))
}

fn path_glob(path: &str, broad: bool) -> Result<LazyGlob, String> {
    let path = if path.is_empty() { "/" } else { path };
    let climbs = |part: &str| matches!(part.to_ascii_lowercase().replace("%2e", ".").as_str(), "." | "..");
    if path.split('/').any(climbs) {
        return Err("a resolved address never has `.` or `..` in its path".to_owned());
    }
    glob(path, !broad, broad)
}

/// A glob over one part of an address. In a rule that forbids, `*` crosses a `/` and case is ignored.
fn glob(text: &str, by_segment: bool, any_case: bool) -> Result<LazyGlob, String> {
    check_glob(text)?;
    let built = GlobBuilder::new(text)
        .literal_separator(by_segment)
        .case_insensitive(any_case)
        .build();
    LazyGlob::new(built.map_err(|error| error.kind().to_string())?)
}

#[cfg(test)]
mod tests;
