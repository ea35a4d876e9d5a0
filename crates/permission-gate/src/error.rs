//! Errors of the gate.

use agentd_actor_kit::CallError;
use agentd_policy::PolicyError;
use agentd_protected::BadException;

/// Why the gate cannot start, or a rule cannot be stored.
#[derive(Debug, thiserror::Error)]
pub enum GateError {
    /// A configured or given rule cannot be parsed.
    #[error(transparent)]
    Rule(#[from] PolicyError),
    /// `permission.unprotected` has an invalid name.
    #[error("permission.unprotected: {0}")]
    Unprotected(#[from] BadException),
    /// The session store did not answer.
    #[error(transparent)]
    Call(#[from] CallError),
    /// The store refused the request.
    #[error("cannot read or write the rules: {0}")]
    Store(String),
    /// There are too many rules, or too many that wait to be stored.
    #[error("too many {0}")]
    TooMany(&'static str),
}
