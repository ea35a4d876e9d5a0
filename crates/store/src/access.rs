//! The tokens of programs and people, and which content a token's labels reach.

use crate::blob::digits;
use agentd_protocol::{Labels, Principal, Timestamp, TokenRights};

/// The maximum number of tokens, ended ones included.
pub const MAX_TOKENS: usize = 4_096;

/// The maximum length of a token's name.
pub const MAX_TOKEN_NAME: usize = 63;

/// A token as it is stored: never the token itself, only its hash (I8).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredToken {
    /// Its name, which no other stored token has.
    pub name: String,
    /// SHA-256 of the token.
    pub hash: [u8; 32],
    /// The names of its scopes.
    pub scopes: Vec<String>,
    /// The labels that every session in its reach has; empty: all sessions.
    pub labels: Labels,
    /// Where and how its sessions may work; `None`: a version without rights created it, so that it has the default ones.
    pub rights: Option<TokenRights>,
    /// When it was created.
    pub created: Timestamp,
    /// Who created it.
    pub by: Principal,
    /// When it expires, if ever.
    pub expires: Option<Timestamp>,
    /// When it was last used, give or take a minute.
    pub used: Option<Timestamp>,
    /// When it was revoked.
    pub revoked: Option<Timestamp>,
}

impl StoredToken {
    /// When it ended or will end.
    fn end(&self) -> Option<Timestamp> {
        self.revoked.into_iter().chain(self.expires).min()
    }

    /// Whether it had ended before this time.
    pub(crate) fn ended_before(&self, time: Timestamp) -> bool {
        self.end().is_some_and(|end| end < time)
    }

    /// Whether it is valid at this time.
    #[must_use]
    pub fn is_live(&self, now: Timestamp) -> bool {
        self.end().is_none_or(|end| now < end)
    }
}

/// What users call a damaged token: its name, if it may be the name of a token, or else the start of its hash.
#[must_use]
pub fn damaged_token(name: &str, hash: &[u8]) -> String {
    let word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    if !name.is_empty() && name.len() <= MAX_TOKEN_NAME && name.chars().all(word) {
        return name.to_owned();
    }
    let start = hash.get(..hash.len().min(6)).unwrap_or_default();
    format!("#{}", digits(start))
}

/// Whether all wanted labels are among those that a session has.
pub(crate) fn carries(has: &Labels, wanted: &Labels) -> bool {
    wanted.iter().all(|(key, value)| has.get(key) == Some(value))
}
