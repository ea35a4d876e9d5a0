//! What a session's system prompt was made from, as it was read when the session was created.

use serde::{Deserialize, Serialize};

/// Everything in a system prompt that comes from outside the program. It is kept with the session, so that the prompt has
/// the same bytes for the session's life, whatever becomes of the files.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct PromptSources {
    /// The family of models whose words are used: `anthropic`, `openai`, `gemini`, `local`; empty: none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub template: String,
    /// The parts, in the order of the prompt.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<PromptPart>,
}

/// One part of a system prompt that was read from a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PromptPart {
    /// What it is.
    pub kind: PromptPartKind,
    /// The file's path; of a list, what it lists.
    pub source: String,
    /// What it says; empty when it was left out.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// Why it was left out, or what of it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// What a part of a system prompt is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PromptPartKind {
    /// The operator's instructions for all projects.
    Operator,
    /// Instructions of the project.
    Project,
    /// The words of a custom agent.
    Agent,
    /// The list of skills.
    Skills,
    /// A map of the source tree.
    Map,
    /// The list of custom agents, which the tool Task tells of.
    Agents,
    /// Something newer.
    #[serde(other)]
    Unknown,
}

/// Answer of `session.prompt`: the system prompt and what it is made from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PromptShown {
    /// The sources, in order.
    pub sources: Vec<PromptSource>,
    /// The whole prompt.
    pub text: String,
}

/// One source of a system prompt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PromptSource {
    /// `environment`, `base`, `template anthropic`, `plan`, the path of a file, `skills`, `appended`.
    pub name: String,
    /// Whether it is in the prompt.
    pub loaded: bool,
    /// Its length in bytes.
    pub bytes: u64,
    /// Why it is not, or what of it is not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}
