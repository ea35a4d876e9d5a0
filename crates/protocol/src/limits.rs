//! Limits and budgets, and the settings that a session records in its log.

use crate::summary::is_zero;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A hard budget; 0 means no limit.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(default)]
pub struct Budget {
    /// Tokens of all kinds.
    pub tokens: u64,
    /// US dollars.
    pub usd: f64,
    /// Milliseconds of wall time inside turns (waiting for a person does not count).
    pub time_ms: u64,
    /// Steps.
    pub steps: u64,
}

/// A change of a budget: what is absent stays as it is.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(default, deny_unknown_fields)]
pub struct BudgetChange {
    /// Tokens of all kinds; 0 removes the limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// US dollars; 0 removes the limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usd: Option<f64>,
    /// Milliseconds of wall time inside turns; 0 removes the limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_ms: Option<u64>,
    /// Steps; 0 removes the limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steps: Option<u64>,
}

impl BudgetChange {
    /// The budget with this change.
    #[must_use]
    pub fn over(&self, now: Budget) -> Budget {
        Budget {
            tokens: self.tokens.unwrap_or(now.tokens),
            usd: self.usd.unwrap_or(now.usd),
            time_ms: self.time_ms.unwrap_or(now.time_ms),
            steps: self.steps.unwrap_or(now.steps),
        }
    }
}

impl From<Budget> for BudgetChange {
    /// Changes all of it.
    fn from(budget: Budget) -> Self {
        Self {
            tokens: Some(budget.tokens),
            usd: Some(budget.usd),
            time_ms: Some(budget.time_ms),
            steps: Some(budget.steps),
        }
    }
}

/// How long a model call took.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(default)]
pub struct Latency {
    /// Milliseconds to the first content.
    pub first_ms: u64,
    /// Milliseconds in total.
    pub total_ms: u64,
}

/// What happens at the step limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum OnLimit {
    /// Ask a person whether to continue (headless sessions stop).
    Ask,
    /// End the turn with reason `max_turns`.
    Stop,
    /// One last model call without tools that sums up; then the turn ends with `max_turns`.
    Summarize,
}

/// The effect of a denied tool call on the turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum OnDeny {
    /// The model learns of the denial and continues.
    Continue,
    /// The turn ends with reason `denied`.
    Stop,
}

/// A named set of loop settings (see the table in the contract).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Preset {
    /// Our own defaults.
    Default,
    /// For sessions that work like Claude Code: many steps, and a question at the limit.
    Clawd,
    /// Short runs that stop at the limit.
    Openclaw,
    /// No step limit; stops at a denial.
    Etcode,
    /// Plans, few steps, and tool calls in the text, for small models.
    React,
}

impl Preset {
    /// The name, as the configuration writes it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::Clawd => "clawd",
            Self::Openclaw => "openclaw",
            Self::Etcode => "etcode",
            Self::React => "react",
        }
    }
}

/// How tool calls are judged if no rule matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "kebab-case")]
pub enum PermissionMode {
    /// Reads run; writes and commands ask.
    Default,
    /// Writes inside the working directory run as well.
    AcceptEdits,
    /// Only reads run; everything else is denied.
    Plan,
    /// Everything runs, except for what a deny rule forbids.
    Yolo,
}

impl PermissionMode {
    /// The name on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::AcceptEdits => "accept-edits",
            Self::Plan => "plan",
            Self::Yolo => "yolo",
        }
    }

    /// The stricter of two modes.
    #[must_use]
    pub const fn stricter(self, other: Self) -> Self {
        if self.rank() <= other.rank() { self } else { other }
    }

    const fn rank(self) -> u8 {
        match self {
            Self::Plan => 0,
            Self::Default => 1,
            Self::AcceptEdits => 2,
            Self::Yolo => 3,
        }
    }
}

impl std::fmt::Display for PermissionMode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// How strongly a command is confined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum SandboxLevel {
    /// No kernel sandbox.
    None,
    /// Landlock and seccomp.
    Confined,
    /// Namespaces as well.
    Isolated,
}

/// How hard a model thinks before it answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum ThinkingLevel {
    /// Not at all.
    Off,
    /// As little as possible.
    Minimal,
    /// A little.
    Low,
    /// The usual amount.
    Medium,
    /// A lot.
    High,
    /// As much as possible.
    Max,
}

impl ThinkingLevel {
    /// All levels, from none to most.
    pub const ALL: [Self; 6] = [
        Self::Off,
        Self::Minimal,
        Self::Low,
        Self::Medium,
        Self::High,
        Self::Max,
    ];

    /// The name in the configuration and the log.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Minimal => "minimal",
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::Max => "max",
        }
    }
}

/// How tool calls are exchanged with a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "kebab-case")]
pub enum ToolProtocol {
    /// As the provider's own tool calls.
    #[default]
    Native,
    /// As JSON in the text, with the results as user messages.
    JsonText,
}

/// The loop settings of one session, fixed in `session.created`, so that folding the log needs no configuration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct LoopLimits {
    /// -1: up to `turn_cap`; 0: chat disabled; N: at most min(N, `turn_cap`) steps in a turn.
    pub max_turns: i32,
    /// The hard cap on steps in a turn (seeds 000/001: 100).
    pub turn_cap: u32,
    /// What happens at the cap.
    pub on_limit: OnLimit,
    /// How many times the model is nudged after it announced a tool call but made none.
    pub intent_retries: u32,
    /// How many read calls run at the same time.
    pub max_parallel_tools: u32,
    /// The effect of a denial on the turn.
    pub on_deny: OnDeny,
    /// After this many steps in a row in which every call failed, agentd tells the model to stop and explain; 0: off.
    pub failing_steps: u32,
    /// The same call with the same arguments this many times in a row earns a note, once more ends the turn; 0: off.
    pub repeated_calls: u32,
    /// The longest cycle of steps with the same calls and results that counts as a repetition; 0: off.
    #[serde(default = "longest_cycle", skip_serializing_if = "is_longest_cycle")]
    pub longest_cycle: u32,
    /// Whether to abort an attempt that repeats one short unit again and again.
    pub stutter_guard: bool,
    /// Unattended: limits raise no question.
    pub headless: bool,
    /// Approvals expire after this many milliseconds; absent: never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ask_timeout_ms: Option<u64>,
    /// Without an attached viewer that may decide, a call is denied after this many milliseconds; absent: it waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unattended_ms: Option<u64>,
    /// How hard the model thinks; absent: the model's configuration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thinking: Option<ThinkingLevel>,
    /// How tool calls are exchanged with the model; absent: the model's configuration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_protocol: Option<ToolProtocol>,
    /// The maximum number of tokens per answer; absent: the model's configuration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_output: Option<u32>,
    /// Of an output that is too long, the model also sees the lines around words of the last input.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub keyword_windows: bool,
    /// The maximum number of messages per request; 0: no limit.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub max_messages: u32,
    /// Explicit planning.
    #[serde(default)]
    pub planning: Planning,
    /// Where the values come from that are not built-in defaults: the key of a limit (`turn_cap`, `budget.tokens`) and
    /// its source, in words.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub from: BTreeMap<String, String>,
}

/// Logs of older versions do not have the value, and it is left out where it is the default.
const fn longest_cycle() -> u32 {
    4
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_longest_cycle(length: &u32) -> bool {
    *length == longest_cycle()
}

/// Explicit planning: a turn may begin with a plan and then work through its steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(default)]
pub struct Planning {
    /// Turns begin with a plan.
    pub enabled: bool,
    /// Inputs are classified first: small talk and questions about abilities get no plan.
    pub intent_gate: bool,
    /// The maximum number of steps per plan.
    pub max_steps: u32,
    /// The maximum number of changes to a plan.
    pub max_replans: u32,
}

impl Default for Planning {
    fn default() -> Self {
        Self {
            enabled: false,
            intent_gate: false,
            max_steps: 12,
            max_replans: 2,
        }
    }
}

impl Default for LoopLimits {
    fn default() -> Self {
        Self {
            max_turns: -1,
            turn_cap: 100,
            on_limit: OnLimit::Ask,
            intent_retries: 2,
            max_parallel_tools: 8,
            on_deny: OnDeny::Continue,
            failing_steps: 3,
            repeated_calls: 3,
            longest_cycle: longest_cycle(),
            stutter_guard: true,
            headless: false,
            ask_timeout_ms: None,
            unattended_ms: None,
            thinking: None,
            tool_protocol: None,
            max_output: None,
            keyword_windows: false,
            max_messages: 0,
            planning: Planning::default(),
            from: BTreeMap::new(),
        }
    }
}

impl LoopLimits {
    /// How many steps a turn may take; `None` if chat is disabled.
    #[must_use]
    pub fn step_cap(&self) -> Option<u32> {
        match u32::try_from(self.max_turns) {
            Ok(0) => None,
            Ok(n) => Some(n.min(self.turn_cap)),
            Err(_) => Some(self.turn_cap),
        }
    }
}
