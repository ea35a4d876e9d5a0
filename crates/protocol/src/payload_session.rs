//! Payloads of events about a session, its inputs, notes, limits and rules.

use crate::block::Block;
use crate::event::Seq;
use crate::ids::{ApprovalId, InputId, SessionId};
use crate::limits::{Budget, LoopLimits, PermissionMode, Usage};
use crate::payload_context::{AttachedFile, CompactionCause};
use crate::payload_prompt::PromptSources;
use crate::payload_subagent::Lineage;
use crate::vocabulary::{Delivery, Labels, LimitKind, NoteKind, Recovered};
use serde::{Deserialize, Serialize};

/// `session.created`: the session exists.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SessionCreated {
    /// What people call it.
    pub title: String,
    /// The project's name: the last part of the working directory unless given.
    pub project: String,
    /// The absolute working directory.
    pub workdir: String,
    /// The name of the model, as configured.
    pub model: String,
    /// The permission mode.
    pub mode: PermissionMode,
    /// The agent definition it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Free labels.
    #[serde(default)]
    pub labels: Labels,
    /// The session that created it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<SessionId>,
    /// The loop's settings.
    pub limits: LoopLimits,
    /// The hard budget.
    pub budget: Budget,
    /// The tools offered, by canonical name; fixed for the session's life.
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
    /// It is a sub-agent, and works for its parent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lineage: Option<Box<Lineage>>,
    /// What the system prompt is made from besides this; absent in the logs of older versions, whose files are read again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<Box<PromptSources>>,
    /// Nobody gave the title: it was made from the first input, and a model may find a better one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub derived_title: bool,
}

/// `session.updated`: settings changed; absent fields did not.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
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
    /// What was done so far, in a few sentences.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
}

/// `session.paused`: no new model call starts until it is resumed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SessionPaused {
    /// Why.
    pub reason: String,
}

/// `session.resumed`: it may go on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SessionResumed {
    /// Why.
    pub reason: String,
}

/// `session.closed`: it takes no more input.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SessionClosed {
    /// Why.
    pub reason: String,
}

/// `input.accepted`: an input is durable.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InputAccepted {
    /// Its id.
    pub input: InputId,
    /// The sender's idempotency key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// How it joins.
    pub delivery: Delivery,
    /// What was said.
    #[serde(default)]
    pub content: Vec<Block>,
    /// The model for the turn it starts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The agent for the turn it starts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
}

/// `input.cancelled`: an input left the queue before it joined.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InputCancelled {
    /// Which.
    pub input: InputId,
    /// Why, when it was not its sender who took it back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// `note.injected`: what agentd itself added for the model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NoteInjected {
    /// Why.
    pub kind: NoteKind,
    /// The words.
    pub text: String,
}

/// `context.compacted`: old messages were replaced by a summary.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ContextCompacted {
    /// First.
    pub from_seq: Seq,
    /// Last.
    pub to_seq: Seq,
    /// The summary.
    pub summary: String,
    /// Before.
    pub tokens_before: u64,
    /// After.
    pub tokens_after: u64,
    /// Why.
    #[serde(default)]
    pub cause: CompactionCause,
    /// The configured name of the model that wrote the summary; absent: none did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summarised_by: Option<String>,
    /// What the summary cost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// The same in US dollars.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// Files that were read or changed last, as far as the summary takes them away.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<AttachedFile>,
}

/// `context.truncated`: from here on the model sees long tool results cut, head and tail. The log keeps them whole.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ContextTruncated {
    /// Bytes that are left of a result.
    pub max_result_bytes: u64,
    /// How many results were cut.
    pub results: u32,
    /// Before.
    pub tokens_before: u64,
    /// After.
    pub tokens_after: u64,
}

/// `limit.reached`: a limit was hit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LimitReached {
    /// Which.
    pub limit: LimitKind,
    /// Its value.
    pub value: f64,
    /// What follows: ask, stop, summarize.
    pub action: String,
}

/// `warning.raised`: something worth a person's attention.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WarningRaised {
    /// A stable word.
    pub code: String,
    /// What.
    pub message: String,
}

/// `session.recovered`: after a restart: what was in flight and how it was closed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SessionRecovered {
    /// Each thing in flight.
    #[serde(default)]
    pub closed: Vec<Recovered>,
}

/// `session.moved`: another node runs the session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SessionMoved {
    /// Which.
    pub node: String,
    /// Its fencing number.
    pub epoch: u64,
}

/// `rule.added`: an always-rule of the fleet-wide stream.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RuleAdded {
    /// The rule: `allow Bash(cargo test)`.
    pub rule: String,
    /// The approval it comes from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<ApprovalId>,
}

/// `rule.removed`: an always-rule was taken back.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RuleRemoved {
    /// The rule.
    pub rule: String,
}
