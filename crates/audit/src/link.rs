//! One line of the chain: its text, the hash of the line before it, and its own.

use sha2::{Digest as _, Sha256};
use std::fmt;
use std::str::FromStr;

/// Hex digits of a hash.
const DIGITS: usize = 64;
const PREV: &str = "\"prev\":\"";
const HASH: &str = ",\"hash\":\"";
const END: &str = "\"}";

/// The hash of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Link([u8; DIGITS / 2]);

/// A text that is not a hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a hash has 64 hexadecimal digits in lower case")]
pub struct BadLink;

impl Link {
    /// The predecessor of the very first line.
    pub const START: Self = Self([0; DIGITS / 2]);
}

impl fmt::Display for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl FromStr for Link {
    type Err = BadLink;

    fn from_str(text: &str) -> Result<Self, BadLink> {
        if text.len() != DIGITS || !text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')) {
            return Err(BadLink);
        }
        let mut hash = [0; DIGITS / 2];
        for (at, byte) in hash.iter_mut().enumerate() {
            let digits = text.get(at * 2..at * 2 + 2).ok_or(BadLink)?;
            *byte = u8::from_str_radix(digits, 16).map_err(|_| BadLink)?;
        }
        Ok(Self(hash))
    }
}

fn hash(object: &str) -> Link {
    Link(Sha256::digest(object.as_bytes()).into())
}

/// Seals a line: adds the hash of the line before it and its own hash, which covers all the rest. Also returns that own
/// hash. `None` if the text is not a JSON object on one line.
#[must_use]
pub fn seal(object: &str, prev: Link) -> Option<(String, Link)> {
    let open = object.strip_suffix('}')?;
    if !open.starts_with('{') || open.contains(['\n', '\r']) {
        return None;
    }
    let comma = if open == "{" { "" } else { "," };
    let with_prev = format!("{open}{comma}{PREV}{prev}{END}");
    let own = hash(&with_prev);
    let open = with_prev.strip_suffix('}')?;
    Some((format!("{open}{HASH}{own}{END}"), own))
}

/// The two hashes of a line (previous and own), and whether its own is right. `None` for a line that is not sealed.
#[must_use]
pub fn links_of(line: &str) -> Option<(Link, Link, bool)> {
    let (rest, own) = last_hash(line.strip_suffix(END)?)?;
    let with_prev = format!("{}}}", rest.strip_suffix(HASH)?);
    let (rest, prev) = last_hash(with_prev.strip_suffix(END)?)?;
    rest.strip_suffix(PREV)?;
    Some((prev, own, hash(&with_prev) == own))
}

fn last_hash(text: &str) -> Option<(&str, Link)> {
    let (rest, digits) = text.split_at_checked(text.len().checked_sub(DIGITS)?)?;
    Some((rest, digits.parse().ok()?))
}
