//! The rules that people made for good, as clients see them.

use crate::event::Seq;
use crate::ids::ApprovalId;
use crate::principal::Principal;
use crate::stamp::Timestamp;
use serde::{Deserialize, Serialize};

/// `rule.remove`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RemoveRuleParams {
    /// The rule's number, as `rule.list` says it, or its text: `allow Bash(cargo test)`.
    pub rule: String,
}

/// One row of `rule.list`: an always-rule in force.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuleRow {
    /// Its number; none is used twice.
    pub number: Seq,
    /// The rule: `allow Bash(cargo test)`.
    pub rule: String,
    /// Since when it is in force.
    pub added_at: Timestamp,
    /// Who made it.
    pub by: Principal,
    /// The approval it comes from.
    pub approval: Option<ApprovalId>,
}
