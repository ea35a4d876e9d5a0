//! `[permission.webhook]`: where agentd posts approval questions, and what happens if no answer comes in time.

use serde::{Deserialize, Serialize};

/// What happens to an expired approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnExpiry {
    /// Deny the call.
    #[default]
    Deny,
    /// Leave it open.
    Wait,
    /// Notify the next address of `escalate_to` and wait the same time again; after the last one, deny the call.
    Escalate,
}

/// `[permission.webhook]`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WebhookConfig {
    /// The address that receives each question; empty: none.
    pub url: String,
    /// The variable with the secret of the signature; empty: no signature.
    pub secret_env: String,
    /// Time limit for the receiver.
    pub timeout_ms: u64,
    /// Attempts after the first.
    pub retries: u32,
}

/// Whether this address can receive posts: http or https, a host, and no user.
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
