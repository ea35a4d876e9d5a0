//! A configured model and how it is, as clients see it.

use crate::call::FailureClass;
use crate::stamp::Timestamp;
use serde::{Deserialize, Serialize};

/// A configured model as `model.list` shows it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelStatus {
    /// Its configured name.
    pub name: String,
    /// The provider's name.
    pub provider: String,
    /// The provider's model id.
    pub model: String,
    /// The dialect.
    pub dialect: String,
    /// Whether a credential is there.
    pub usable: bool,
    /// Why not, or which credential.
    pub note: String,
    /// Whether it is the default.
    pub default: bool,
    /// Tokens of its window; 0: not known.
    #[serde(default)]
    pub context_window: u64,
    /// Model calls running now at its provider.
    pub running: u32,
    /// Model calls waiting for a permit at its provider.
    pub waiting: u32,
    /// The provider is told to wait until then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused_until: Option<Timestamp>,
    /// How its credentials are.
    #[serde(default)]
    pub credentials: Vec<CredentialStatus>,
    /// Whether its server answers is not known: it needs no key, did not answer when the daemon started, and was not called
    /// since.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub untried: bool,
    /// The last call to its provider that told something of it; absent: none since the daemon started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_call: Option<LastCall>,
}

/// How the last call to a provider ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastCall {
    /// When.
    pub at: Timestamp,
    /// Why it failed; absent: the provider answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<FailureClass>,
}

/// How one credential of a provider is, for one model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CredentialStatus {
    /// Its name; the key itself is never shown.
    pub name: String,
    /// What can be expected of it.
    pub health: CredentialHealth,
    /// Model calls running on it.
    pub running: u32,
    /// It is not used before then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
    /// Why it is not used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<FailureClass>,
    /// Failures in a row that count against it.
    pub failures: u32,
}

/// What can be expected of a credential.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CredentialHealth {
    /// It works as far as we know.
    Ok,
    /// It failed and is left alone for a while.
    Cooling,
    /// One call finds out whether it works again.
    Probing,
}
