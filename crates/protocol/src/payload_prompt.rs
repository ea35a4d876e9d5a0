//! The sources of a session's system prompt, as they were when the session was created.

use serde::{Deserialize, Serialize};

/// Everything in a system prompt that comes from outside the program. The session keeps it, so that the prompt has the
/// same bytes for the session's whole life, even if the files change.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(default)]
pub struct PromptSources {
    /// The model family whose template is used: `anthropic`, `openai`, `gemini`, `local`; empty: none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub template: String,
    /// The parts, in the order of the prompt.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<PromptPart>,
}

/// One part of a system prompt, read from a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct PromptPart {
    /// The kind of the part.
    pub kind: PromptPartKind,
    /// The path of the file; for a list, the listed things.
    pub source: String,
    /// Its text; empty if it was left out.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// Why it was left out, in whole or in part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// The kind of a system prompt part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum PromptPartKind {
    /// The operator's instructions for all projects.
    Operator,
    /// Instructions of the project.
    Project,
    /// The prompt of a custom agent.
    Agent,
    /// The list of skills.
    Skills,
    /// A map of the source tree.
    Map,
    /// The list of custom agents for the description of the tool Task.
    Agents,
    /// A newer kind.
    #[serde(other)]
    Unknown,
}

/// Answer of `session.prompt`: the system prompt and its sources.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct PromptShown {
    /// The sources, in order.
    pub sources: Vec<PromptSource>,
    /// The whole prompt.
    pub text: String,
}

/// Answer of `session.commands`, one row per command: what a typed input may begin with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct CommandRow {
    /// The name, without the slash.
    pub name: String,
    /// What it does; for a built-in command also its arguments.
    pub help: String,
    /// Whether a file defines it.
    pub file: bool,
}

/// One source of a system prompt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct PromptSource {
    /// `environment`, `base`, `template anthropic`, `plan`, the path of a file, `skills`, `appended`.
    pub name: String,
    /// Whether it is in the prompt.
    pub loaded: bool,
    /// Its length in bytes.
    pub bytes: u64,
    /// Why it is missing, in whole or in part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}
