//! `[permission.webhook]`: who is told that a person is asked, and what happens when nobody answers in time.

use serde::{Deserialize, Serialize};

/// What an approval does whose time is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnExpiry {
    /// The call is denied.
    #[default]
    Deny,
    /// It stays open.
    Wait,
    /// The next of `escalate_to` is told, and it stays open for the same time again; after the last it is denied.
    Escalate,
}

/// `[permission.webhook]`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct WebhookConfig {
    /// Where each question is posted; empty: nowhere.
    pub url: String,
    /// The variable that holds the secret of the signature; empty: no signature.
    pub secret_env: String,
    /// How long a receiver may take.
    pub timeout_ms: u64,
    /// Tries after the first.
    pub retries: u32,
}

impl Default for WebhookConfig {
    fn default() -> Self {
        Self {
            url: String::new(),
            secret_env: String::new(),
            timeout_ms: 5_000,
            retries: 5,
        }
    }
}

/// Whether something can be posted there: http or https, a host, and no user.
pub(crate) fn is_address(url: &str) -> bool {
    let rest = url
        .strip_prefix("https://")
        .or_else(|| url.strip_prefix("http://"));
    rest.is_some_and(|rest| {
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        !authority.is_empty()
            && !authority.contains('@')
            && !url.chars().any(|c| c.is_control() || c.is_whitespace())
    })
}
