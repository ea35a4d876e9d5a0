//! `session.bulk`: one operation on many sessions.

use crate::command::is_default;
use crate::done::Done;
use crate::fault::Fault;
use serde::{Deserialize, Serialize};

/// An operation on many sessions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum BulkAction {
    /// Start no new model call.
    Pause,
    /// Continue.
    Resume,
    /// End the turn.
    Cancel,
    /// End the turn, its commands and its jobs at once.
    Kill,
    /// Accept no more input.
    Close,
    /// Remove the session.
    Delete,
}

/// `session.bulk`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(default, deny_unknown_fields)]
pub struct BulkParams {
    /// What to do with each session.
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub action: Option<BulkAction>,
    /// The sessions, at most 2,000.
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub sessions: Vec<String>,
    /// The reason.
    #[serde(skip_serializing_if = "is_default")]
    pub reason: Option<String>,
    /// `close` and `delete`: acts even while a session is running.
    #[serde(skip_serializing_if = "is_default")]
    pub force: bool,
}

/// Answer of `session.bulk`: an outcome per session, in the order of the request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct BulkDone {
    /// The outcomes.
    pub outcomes: Vec<BulkOutcome>,
}

/// What a bulk operation did with one session: either `done` or `fault`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct BulkOutcome {
    /// The session as given in the request.
    pub session: String,
    /// The result of the operation on this session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub done: Option<Done>,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<Fault>,
}
