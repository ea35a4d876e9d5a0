//! A question as a person sees it: typed lines, the same in every face, and what an answer to it rests on.

use crate::ids::{ApprovalId, SessionId};
use serde::{Deserialize, Serialize};

/// The source of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum QuestionVoice {
    /// agentd's own text.
    Ours,
    /// agentd's warning.
    Risk,
    /// The action to be approved.
    Content,
    /// Text from the model.
    Model,
}

/// The meaning of a part of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum QuestionMark {
    /// agentd's words in place of something invisible or repeated.
    Hidden,
    /// A line that a diff adds.
    Added,
    /// A line that a diff removes.
    Removed,
}

/// A part of a line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct QuestionSpan {
    /// The text; it has no control characters and no line breaks.
    pub text: String,
    /// Its meaning, if it is not plain text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mark: Option<QuestionMark>,
}

/// A line of a question, not wrapped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct QuestionLine {
    /// The source of the line.
    pub voice: QuestionVoice,
    /// The name of the fact that the line states.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// The text is not agentd's: whoever shows it puts a bar before each of its rows.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub quoted: bool,
    /// The parts of the line.
    pub spans: Vec<QuestionSpan>,
}

/// `approval.question`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(default, deny_unknown_fields)]
pub struct ApprovalQuestionParams {
    /// The approval, an unambiguous prefix of it, or a session with exactly one open approval.
    #[serde(skip_serializing_if = "crate::command::is_default")]
    pub approval: String,
}

/// Answer of `approval.question`: an open question in full.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ApprovalQuestion {
    /// The approval.
    pub approval: ApprovalId,
    /// The session that asks.
    pub session: SessionId,
    /// All that a person must see before an answer other than `deny`.
    pub lines: Vec<QuestionLine>,
    /// The hash of the lines; an answer repeats it.
    pub shown: String,
}

/// What an answer rests on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Basis {
    /// A person saw the question; the hash of its lines.
    Shown(String),
    /// A program decided by a rule of its own, without showing the question.
    Policy,
}
