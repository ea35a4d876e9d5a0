//! Usage by group and by day.

use crate::selector::Selector;
use crate::usage::Usage;
use serde::{Deserialize, Serialize};

/// `usage.query`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(default, deny_unknown_fields)]
pub struct UsageParams {
    /// Only usage of sessions with these labels: a selector, or a map of required labels.
    #[serde(skip_serializing_if = "crate::command::is_default")]
    pub labels: Selector,
    /// Group by `model`, `session`, or a label's name.
    #[serde(skip_serializing_if = "crate::command::is_default")]
    pub by: Option<String>,
}

/// Parameters of `usage.daily`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(default, deny_unknown_fields)]
pub struct DailyUsageParams {
    /// Only usage of sessions with these labels: a selector, or a map of required labels.
    pub labels: Selector,
    /// Group by `model` (the default) or a label's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// How many days, today included, from 1 to 62; absent: 31.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(minimum = 1, maximum = 62))]
    pub days: Option<u32>,
}

/// One row of `usage.daily`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct DailyUsageRow {
    /// The day in UTC, as `2026-11-24`.
    pub day: String,
    /// The group.
    pub group: String,
    /// Steps.
    pub steps: u64,
    /// Tokens.
    pub usage: Usage,
    /// US dollars.
    pub cost_usd: f64,
}
