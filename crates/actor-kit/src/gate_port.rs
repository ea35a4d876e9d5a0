//! What the permission gate understands.

use agentd_actor_core::Done;
use agentd_policy::{Judgement, Subject};
use agentd_protocol::{ApprovalId, EffectClass, PermissionMode, Principal, SessionId};
use agentd_settings::PermissionConfig;

/// A prepared call that wants a verdict.
#[derive(Debug, Clone)]
pub struct JudgeRequest {
    /// Whose.
    pub session: SessionId,
    /// The canonical tool name.
    pub tool: String,
    /// What the rules look at.
    pub subject: Subject,
    /// What it does to the world.
    pub effect: EffectClass,
    /// The session's mode.
    pub mode: PermissionMode,
    /// The session's working directory.
    pub workdir: String,
    /// Rules given when the session was created.
    pub rules: Vec<String>,
    /// Rules granted for the session by people.
    pub grants: Vec<String>,
    /// Those of them that stand for always-rules, and end with them.
    pub always: Vec<String>,
}

/// Messages of the permission gate. An unanswered [`GateMsg::Judge`] is a denial (I7).
#[derive(Debug)]
pub enum GateMsg {
    /// Judge a call.
    Judge {
        /// What.
        request: Box<JudgeRequest>,
        /// The judgement.
        done: Done<Judgement>,
    },
    /// Add an always-rule: appended to the fleet-wide stream, then in force.
    AddRule {
        /// The rule: `allow Bash(cargo test)`.
        rule: String,
        /// The approval it comes from.
        approval: Option<ApprovalId>,
        /// Who decided.
        by: Principal,
        /// Whether it is durable.
        done: Done<Result<(), String>>,
    },
    /// Take an always-rule back: appended to the fleet-wide stream, then out of force.
    RemoveRule {
        /// The rule, as the stream writes it.
        rule: String,
        /// Who wants it.
        by: Principal,
        /// Whether it was in force, once that is durable.
        done: Done<Result<bool, String>>,
    },
    /// The store answered for a pending rule (private).
    RuleStored {
        /// The rule.
        rule: String,
        /// Whether it is durable.
        stored: bool,
    },
    /// Replace the rules of the configuration.
    Configure {
        /// The new ones.
        permission: Box<PermissionConfig>,
        /// In force, or why the old ones stay.
        done: Done<Result<(), String>>,
    },
    /// Which of these tools are wholly denied and so not offered to a model.
    WhollyDenied {
        /// Canonical names.
        tools: Vec<String>,
        /// Rules given when the session was created.
        rules: Vec<String>,
        /// The denied ones.
        done: Done<Vec<String>>,
    },
    /// All rules in force with their sources, for people.
    Rules {
        /// `source: rule` lines.
        done: Done<Vec<String>>,
    },
}
