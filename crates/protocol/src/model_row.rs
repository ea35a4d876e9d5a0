//! A configured model and its health, as clients see them.

use crate::call::FailureClass;
use crate::stamp::Timestamp;
use crate::usage::Price;
use serde::{Deserialize, Serialize};

/// A configured model as `model.list` shows it.
#[expect(
    clippy::struct_excessive_bools,
    reason = "facts about a model that do not depend on each other"
)]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ModelStatus {
    /// Its configured name.
    pub name: String,
    /// The provider's name.
    pub provider: String,
    /// The provider's model id.
    pub model: String,
    /// The dialect.
    pub dialect: String,
    /// Whether it has a credential.
    pub usable: bool,
    /// Why it is not usable, or which credential it uses.
    pub note: String,
    /// Whether it is the default.
    pub default: bool,
    /// The size of its context window in tokens; 0: unknown.
    #[serde(default)]
    pub context_window: u64,
    /// Whether it takes images.
    #[serde(default)]
    pub images: bool,
    /// Whether the list of models or the configuration says so; otherwise it is a careful guess.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub images_known: bool,
    /// Its price, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price: Option<Price>,
    /// Model calls that its provider is running now.
    pub running: u32,
    /// Model calls that wait for a permit of its provider.
    pub waiting: u32,
    /// How many calls its provider may run at once on this node; in a fleet, the node's share of the limit.
    #[serde(default)]
    pub permits: u32,
    /// No call to the provider starts before this time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused_until: Option<Timestamp>,
    /// The circuit breaker of its provider.
    #[serde(default)]
    pub circuit: CircuitState,
    /// The health of its credentials.
    #[serde(default)]
    pub credentials: Vec<CredentialStatus>,
    /// It is unknown whether its server answers: it needs no key, did not answer when the daemon started, and was not
    /// called since.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub untried: bool,
    /// The last call that revealed the state of its provider; absent: none since the daemon started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_call: Option<LastCall>,
}

/// How the last call to a provider ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct LastCall {
    /// When it ended.
    pub at: Timestamp,
    /// Why it failed; absent: the provider answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<FailureClass>,
}

/// The health of one credential of a provider, for one model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct CredentialStatus {
    /// Its name; the key itself is never shown.
    pub name: String,
    /// Its health.
    pub health: CredentialHealth,
    /// Model calls that use it now.
    pub running: u32,
    /// It is not used before this time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
    /// Why it is not used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<FailureClass>,
    /// Consecutive failures that count against it.
    pub failures: u32,
    /// Its rate limits for this model, as configured or as the provider reported; of two limits of a kind, the one with less
    /// left.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub buckets: Vec<RateBucket>,
}

/// A rate limit that refills steadily.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct RateBucket {
    /// The resource that it limits.
    pub kind: RateKind,
    /// The most that can be left.
    pub limit: u64,
    /// How much refills in a minute.
    pub per_minute: u64,
    /// The remaining amount.
    pub left: u64,
}

/// The unit of a rate limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum RateKind {
    /// Requests.
    Requests,
    /// Input tokens.
    InputTokens,
    /// Output tokens.
    OutputTokens,
}

/// The state of a provider's circuit breaker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum CircuitState {
    /// Calls go through.
    #[default]
    Closed,
    /// Calls are suspended after repeated failures.
    Open,
    /// A single call tests the provider.
    HalfOpen,
    /// The provider works again, and calls return in growing numbers.
    Recovering,
}

/// The health of a credential.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum CredentialHealth {
    /// It works, as far as we know.
    Ok,
    /// It failed and is not used for a while.
    Cooling,
    /// A single call tests whether it works again.
    Probing,
}
