//! Permanent rules that people made, as clients see them.

use crate::event::Seq;
use crate::grant::Reach;
use crate::ids::ApprovalId;
use crate::principal::Principal;
use crate::stamp::Timestamp;
use serde::{Deserialize, Serialize};

/// `rule.remove`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct RemoveRuleParams {
    /// The rule's number from `rule.list`, or its text: `allow Bash(cargo test)`.
    pub rule: String,
}

/// One row of `rule.list`: an always-rule in force.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct RuleRow {
    /// Its number, which is never reused.
    pub number: Seq,
    /// The rule: `allow Bash(cargo test)`.
    pub rule: String,
    /// When it took effect.
    pub added_at: Timestamp,
    /// Who made it.
    pub by: Principal,
    /// The approval that created it.
    pub approval: Option<ApprovalId>,
    /// How far it reaches; absent: in every directory, with every content.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reach: Option<Reach>,
}
