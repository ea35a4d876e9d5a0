//! The messages of the permission gate.

use agentd_actor_core::Done;
use agentd_policy::{Here, Judgement, Subject};
use agentd_protocol::{ApprovalId, EffectClass, Grant, PermissionMode, Principal, SessionId};
use agentd_settings::PermissionConfig;

/// A prepared call that needs a verdict.
#[derive(Debug, Clone)]
pub struct JudgeRequest {
    /// The session that makes the call.
    pub session: SessionId,
    /// The canonical tool name.
    pub tool: String,
    /// The part of the call that the rules examine.
    pub subject: Subject,
    /// The class of its effects.
    pub effect: EffectClass,
    /// The session's mode.
    pub mode: PermissionMode,
    /// The session's working directory.
    pub workdir: String,
    /// Rules given when the session was created.
    pub rules: Vec<String>,
    /// The session's project, and the state of the files that the call runs.
    pub here: Here,
    /// What people granted for the session.
    pub grants: Vec<Grant>,
    /// Those grants that stem from always-rules and end with them.
    pub always: Vec<Grant>,
}

/// Messages of the permission gate. An unanswered [`GateMsg::Judge`] is a denial (I7).
#[derive(Debug)]
pub enum GateMsg {
    /// Judge a call.
    Judge {
        /// The call.
        request: Box<JudgeRequest>,
        /// The judgement.
        done: Done<Judgement>,
    },
    /// Add an always-rule: appended to the fleet-wide stream, then in force.
    AddRule {
        /// The rule, `allow Bash(cargo test)`, and its reach.
        grant: Grant,
        /// The approval that created it.
        approval: Option<ApprovalId>,
        /// Who decided.
        by: Principal,
        /// Whether it is durable.
        done: Done<Result<(), String>>,
    },
    /// Revoke an always-rule: appended to the fleet-wide stream, then no longer in force.
    RemoveRule {
        /// The rule, as the stream writes it, and its reach.
        grant: Grant,
        /// The principal that revokes it.
        by: Principal,
        /// Whether it was in force, once the revocation is durable.
        done: Done<Result<bool, String>>,
    },
    /// The store answered for a pending rule (private).
    RuleStored {
        /// The rule.
        grant: Grant,
        /// Whether it is in force.
        stored: bool,
    },
    /// Read the stream of rules again: another node of the fleet wrote to it.
    Reread,
    /// Replace the rules of the configuration.
    Configure {
        /// The new rules.
        permission: Box<PermissionConfig>,
        /// Success once the rules are in force, or why the old ones stay.
        done: Done<Result<(), String>>,
    },
    /// Ask which of these tools are denied entirely and therefore not offered to a model.
    WhollyDenied {
        /// Canonical names.
        tools: Vec<String>,
        /// Rules given when the session was created.
        rules: Vec<String>,
        /// The denied tools.
        done: Done<Vec<String>>,
    },
    /// All rules in force with their sources, for people.
    Rules {
        /// `source: rule` lines.
        done: Done<Vec<String>>,
    },
}
