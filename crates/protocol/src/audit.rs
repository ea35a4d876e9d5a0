//! Lines of the audit files.

use crate::stamp::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Parameters of `audit.query`. Lines must match all that is given.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(default, deny_unknown_fields)]
pub struct AuditParams {
    /// Only lines before this place; absent: from the newest line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    /// The most lines in the answer, at most 1,000; absent: 100.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
    /// Who did it: a principal, or a part of one, such as `token:ci`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub who: Option<String>,
    /// An event, such as `approval.decided`, or the beginning of one, such as `approval`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub event: Option<String>,
    /// The session, or the beginning of its id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// Not before this time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// Before this time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
}

/// A line of the audit files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct AuditLine {
    /// Its place: the number of its file and of its line in it.
    #[serde(default)]
    pub place: String,
    /// When it happened.
    pub at: Timestamp,
    /// Who did it.
    pub who: String,
    /// What happened.
    pub event: String,
    /// The session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// The other keys of the line, such as `what`, `why`, and the hashes `prev` and `hash`.
    #[serde(flatten)]
    pub more: Map<String, Value>,
}

/// Answer of `audit.query`: lines, newest first.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct AuditPage {
    /// The lines.
    pub items: Vec<AuditLine>,
    /// Pass this as `before` for older lines; absent: there are none. A page may be short, or empty, although there is a
    /// next one: one request does not search everything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// Answer of `audit.verify`: whether the hash chain of the audit files is intact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct AuditCheck {
    /// No line was changed, removed, added or moved.
    pub intact: bool,
    /// The files, oldest first.
    pub files: Vec<String>,
    /// The number of intact lines.
    pub lines: u64,
    /// The number of lines before the chain; nothing proves these.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unsealed: Option<u64>,
    /// The hash of the last intact line.
    #[serde(default)]
    pub head: Option<String>,
    /// Whether the chain begins with the very first line; if not, older files are missing.
    pub whole: bool,
    /// Older files are missing because the settings delete them: the chain has a record of it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub deletion_recorded: bool,
    /// Where it is broken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub broken: Option<AuditBroken>,
}

/// The place where a chain is broken.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct AuditBroken {
    /// The file.
    pub file: String,
    /// The line; absent if it is missing.
    #[serde(default)]
    pub line: Option<u64>,
    /// What is wrong.
    pub what: String,
}
