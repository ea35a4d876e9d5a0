//! The host of an address pattern: labels, compared from the right.

use crate::glob::{LazyGlob, check_glob};
use globset::GlobBuilder;
use url::Host;

/// A pattern over hosts.
#[derive(Debug, Clone)]
pub(crate) enum HostPattern {
    /// Every host.
    Any,
    /// This host, in its canonical form.
    Exactly(String),
    /// The labels of the host from the right; `None` matches any one label.
    Labels {
        /// From the right.
        labels: Vec<Option<String>>,
        /// One or more labels precede them.
        below: bool,
    },
    /// A glob over the whole name, in rules that forbid.
    Like(LazyGlob),
}

impl HostPattern {
    /// Parses a host. In a rule that forbids, a wildcard may be anywhere in the name and match anything.
    pub(crate) fn parse(text: &str, broad: bool) -> Result<Self, String> {
        let text = text.strip_suffix('.').unwrap_or(text);
        if text.is_empty() {
            return Err("it names no host".to_owned());
        }
        if text.contains('%') {
            return Err(format!("the host {text:?} contains a `%`"));
        }
        if matches!(text, "*" | "**") {
            return Ok(Self::Any);
        }
        let wild = text.contains(['*', '?', '{']) || (text.contains('[') && !text.starts_with('['));
        if !wild {
            return plain(text).map(Self::Exactly);
        }
        if broad {
            return like(text);
        }
        labels(text)
    }

    /// Whether it matches every host.
    pub(crate) const fn is_everything(&self) -> bool {
        matches!(self, Self::Any)
    }

    /// Whether a host in canonical form matches.
    pub(crate) fn matches(&self, host: &str) -> bool {
        match self {
            Self::Any => true,
            Self::Exactly(name) => name == host,
            Self::Like(glob) => glob.is_match(host),
            Self::Labels { labels, below } => {
                let mut rest = host.rsplit('.');
                let fits = labels
                    .iter()
                    .all(|label| rest.next().is_some_and(|part| fits(label.as_deref(), part)));
                let mut more = rest;
                let first = more.next();
                fits && first.is_some() == *below
                    && first.into_iter().chain(more).all(|part| !part.is_empty())
            }
        }
    }
}

fn fits(label: Option<&str>, part: &str) -> bool {
    label.map_or_else(|| !part.is_empty(), |label| label == part)
}

/// A host in canonical form: lower case, ASCII, an IP address in dotted decimal form or in brackets.
fn plain(text: &str) -> Result<String, String> {
    Host::parse(text)
        .map(|host| host.to_string())
        .map_err(|_| format!("{text:?} is not a host"))
}

fn like(text: &str) -> Result<HostPattern, String> {
    if !text.is_ascii() {
        return Err(format!("write the host {text:?} in its ASCII form (xn--...)"));
    }
    check_glob(text)?;
    let built = GlobBuilder::new(text)
        .literal_separator(false)
        .case_insensitive(true)
        .build();
    LazyGlob::new(built.map_err(|error| error.kind().to_string())?).map(HostPattern::Like)
}

/// `*.docs.rs`, `a.*.docs.rs`, `10.0.0.*`.
fn labels(text: &str) -> Result<HostPattern, String> {
    let mut parts: Vec<&str> = text.split('.').collect();
    let address = parts.len() == 4
        && parts
            .iter()
            .all(|part| *part == "*" || part.parse::<u8>().is_ok());
    let below = !address && matches!(parts.first(), Some(&"*" | &"**"));
    if below {
        parts.remove(0);
    }
    let literal = |part: &str| {
        let whole = part == "*";
        if !whole && part.contains(['*', '?', '[', ']', '{', '}', ',']) {
            return Err(format!(
                "in the host {text:?}, a `*` must stand for whole labels, as in *.docs.rs"
            ));
        }
        if whole {
            return Ok(None);
        }
        plain(part)
            .map(Some)
            .map_err(|_| format!("{part:?} is not a label of a host"))
    };
    // The parser would read a number as an IP address; here it is a label.
    let read = |part: &&str| match part.parse::<u32>() {
        Ok(number) => Ok(Some(number.to_string())),
        Err(_) => literal(part),
    };
    let labels: Vec<Option<String>> = parts.iter().rev().map(read).collect::<Result<_, _>>()?;
    let numeric = |label: &Option<String>| {
        label
            .as_ref()
            .is_some_and(|label| label.starts_with(|c: char| c.is_ascii_digit()))
    };
    match labels.first() {
        Some(last) if address || (last.is_some() && !numeric(last)) => {
            Ok(HostPattern::Labels { labels, below })
        }
        _ => Err(format!(
            "the host {text:?} must end with a name, or be an address of four numbers such as 10.0.0.*"
        )),
    }
}
