//! Payloads of events about a session, its inputs, notes, limits and rules.

use crate::block::Block;
use crate::event::Seq;
use crate::grant::Reach;
use crate::ids::{ApprovalId, InputId, SessionId};
use crate::limits::{Budget, LoopLimits, PermissionMode};
use crate::payload_context::{AttachedFile, CompactionCause};
use crate::payload_prompt::PromptSources;
use crate::payload_subagent::Lineage;
use crate::usage::Usage;
use crate::vocabulary::{Delivery, Labels, LimitKind, NoteKind, Recovered};
use crate::workspace::Workspace;
use serde::{Deserialize, Serialize};

/// `session.created`: the session exists.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct SessionCreated {
    /// The title that people see.
    pub title: String,
    /// The project's name: by default the last part of the working directory.
    pub project: String,
    /// The absolute working directory.
    pub workdir: String,
    /// The name of the model, as configured.
    pub model: String,
    /// The permission mode.
    pub mode: PermissionMode,
    /// The agent definition that it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Free labels.
    #[serde(default)]
    pub labels: Labels,
    /// Labels that a node must have to run it.
    #[serde(default, skip_serializing_if = "Labels::is_empty")]
    pub requires: Labels,
    /// The session that created it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<SessionId>,
    /// The loop's settings.
    pub limits: LoopLimits,
    /// The hard budget.
    pub budget: Budget,
    /// The offered tools, by canonical name; fixed for the life of the session.
    #[serde(default)]
    pub tools: Vec<String>,
    /// Replaces the base prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_prompt: Option<String>,
    /// Appended to the system prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub append_system_prompt: Option<String>,
    /// Permission rules given at creation: `allow Tool(x)`, `deny Tool(x)`, `ask Tool(x)`.
    #[serde(default)]
    pub rules: Vec<String>,
    /// Set for a sub-agent, which works for its parent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lineage: Option<Box<Lineage>>,
    /// The other sources of the system prompt; absent in logs of older versions, whose files are read again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<Box<PromptSources>>,
    /// The title is derived from the first input, because none was given; a model may replace it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub derived_title: bool,
    /// The session's own workspace; absent if it works in a directory that it shares with others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<Box<Workspace>>,
}

impl SessionCreated {
    /// The project to which grants belong: what its workspace was made from, or else its directory.
    #[must_use]
    pub fn place(&self) -> &str {
        let workspace = self.workspace.as_ref();
        workspace.map_or(&self.workdir, |workspace| &workspace.source)
    }
}

/// `session.updated`: settings changed; absent fields are unchanged.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct SessionUpdated {
    /// New title.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// New model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// New mode.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<PermissionMode>,
    /// New labels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub labels: Option<Labels>,
    /// New budget.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<Budget>,
    /// A summary of the work so far, in a few sentences.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
}

/// `session.paused`: no new model call starts until the session is resumed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct SessionPaused {
    /// Why it was paused.
    pub reason: String,
}

/// `session.resumed`: the session may continue.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct SessionResumed {
    /// Why it was resumed.
    pub reason: String,
}

/// `session.closed`: the session takes no more input.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct SessionClosed {
    /// Why it was closed.
    pub reason: String,
}

/// `input.accepted`: an input is durable.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct InputAccepted {
    /// Its id.
    pub input: InputId,
    /// The sender's idempotency key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// How it joins.
    pub delivery: Delivery,
    /// The content of the input.
    #[serde(default)]
    pub content: Vec<Block>,
    /// The model for the turn that the input starts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The agent for the turn that the input starts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
}

/// `input.cancelled`: an input left the queue before it joined the conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct InputCancelled {
    /// The cancelled input.
    pub input: InputId,
    /// Why, if someone other than the sender withdrew it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// `note.injected`: agentd itself added a note for the model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct NoteInjected {
    /// The reason for the note.
    pub kind: NoteKind,
    /// The text of the note.
    pub text: String,
}

/// `context.compacted`: a summary replaced old messages.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ContextCompacted {
    /// The first replaced event.
    pub from_seq: Seq,
    /// The last replaced event.
    pub to_seq: Seq,
    /// The summary.
    pub summary: String,
    /// Tokens before.
    pub tokens_before: u64,
    /// Tokens after.
    pub tokens_after: u64,
    /// Why the conversation was compacted.
    #[serde(default)]
    pub cause: CompactionCause,
    /// The configured name of the model that wrote the summary; absent: no model did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summarised_by: Option<String>,
    /// Why that model read the conversation retold in parts and uncached; absent: it read the cached
    /// conversation itself, or no model wrote the summary.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retold_because: Option<String>,
    /// The tokens that the summary cost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// The cost of the summary in US dollars.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// Files that were read or changed last, if the summary removes them from the conversation.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<AttachedFile>,
}

/// `context.truncated`: from here on the model sees long tool results cut to head and tail; the log keeps them whole.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ContextTruncated {
    /// The bytes kept of each result.
    pub max_result_bytes: u64,
    /// How many results were cut.
    pub results: u32,
    /// Tokens before.
    pub tokens_before: u64,
    /// Tokens after.
    pub tokens_after: u64,
}

/// `limit.reached`: a limit was hit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct LimitReached {
    /// The limit that was hit.
    pub limit: LimitKind,
    /// The value of the limit.
    pub value: f64,
    /// The consequence: `ask`, `stop` or `summarize`.
    pub action: String,
}

/// `warning.raised`: a person should look at this.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct WarningRaised {
    /// A stable code.
    pub code: String,
    /// The warning.
    pub message: String,
}

/// `session.recovered`: after a restart, the work that was in flight and how it was closed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct SessionRecovered {
    /// Each piece of work in flight.
    #[serde(default)]
    pub closed: Vec<Recovered>,
}

/// `session.moved`: another node runs the session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct SessionMoved {
    /// The new node.
    pub node: String,
    /// The fencing number of the node.
    pub epoch: u64,
    /// The new working directory, if a person named one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workdir: Option<String>,
}

/// `rule.added`: an always-rule of the fleet-wide stream.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct RuleAdded {
    /// The rule: `allow Bash(cargo test)`.
    pub rule: String,
    /// The approval that created the rule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<ApprovalId>,
    /// How far it reaches; absent: everywhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reach: Option<Reach>,
}

/// `rule.removed`: an always-rule was revoked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct RuleRemoved {
    /// The rule.
    pub rule: String,
    /// The reach of the rule; absent: the one that holds everywhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reach: Option<Reach>,
}
