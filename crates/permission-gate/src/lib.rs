//! The permission gate: judges tool calls, and stores the permanent rules that people added.
//!
//! Invariants: I7, an error or a panic while judging is a denial (`gate:error`), a gate that is down denies by not
//! answering, and it does not start without having read every rule; I1, a rule comes into force, and its command is
//! answered, only when the rule is durable. Open approvals are facts of the sessions' logs, not of this actor.
//!
//! Flow: `GateMsg::Judge` -> the rules of node, fleet and session -> `Judgement`;
//! `GateMsg::AddRule` -> append to the fleet-wide stream -> `GateMsg::RuleStored` -> in force.

mod actor;
mod error;
mod journal;
mod state;

pub use actor::{GateArgs, PermissionGate};
pub use error::GateError;
pub use state::{RuleProblem, check_rules, configured_rules};

#[cfg(test)]
mod tests;
