//! `[loop]`, `[tools]`, `[context]`, `[permission]`, `[budget]`: the initial settings of a session.

use crate::rules::RuleConfig;
use crate::web::WebConfig;
use crate::webhook::{OnExpiry, WebhookConfig};
use agentd_protected::{BadException, ProtectedPaths};
use agentd_protocol::{Budget, OnDeny, OnLimit, PermissionMode, Preset};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// `[loop]`: how long a turn continues, and when it stops.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LoopConfig {
    /// A named set of settings, below every value that is set explicitly.
    pub preset: Preset,
    /// Steps in a turn: -1 up to `turn_cap`, 0 chat disabled, N at most min(N, `turn_cap`).
    pub max_turns: i32,
    /// The hard cap on steps in a turn.
    pub turn_cap: u32,
    /// What happens at the hard cap.
    pub on_limit: OnLimit,
    /// How often agentd reminds a model that announced a tool call but did not make it.
    pub incomplete_intent_retries: u32,
    /// Regular expressions that recognize such an announcement.
    pub intent_patterns: Vec<String>,
    /// Concurrent read calls.
    pub max_parallel_tools: u32,
    /// Consecutive steps in which every call failed before agentd tells the model to stop; 0: off.
    pub failing_steps: u32,
    /// Identical calls in a row before agentd intervenes; 0: off.
    pub repeated_calls: u32,
    /// The longest cycle of steps with the same calls and results that counts as a repetition; 0: off.
    pub longest_cycle: u32,
    /// Abort an attempt that repeats one short unit again and again.
    pub stutter_guard: bool,
    /// Whether turns begin with a plan.
    pub planning: bool,
    /// Classify inputs first; small talk gets no plan.
    pub intent_gate: bool,
    /// Maximum number of steps in a plan.
    pub plan_steps: u32,
    /// How often the agent may change a plan.
    pub plan_changes: u32,
}

/// Which parts of a long result remain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Shape {
    /// The beginning and the end.
    #[default]
    HeadTail,
    /// Also the lines near words of the last input.
    Keywords,
}

/// `[tools]`: limits of tool calls.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolsConfig {
    /// Tools that sessions have in addition to the usual ones.
    pub more: Vec<String>,
    /// Lines of a result that the model reads.
    pub max_lines: u32,
    /// Bytes of a result that the model reads.
    pub max_bytes: u64,
    /// Bytes of a command's output that the model reads, if `max_bytes` is not smaller.
    pub bash_max_bytes: u64,
    /// Which parts of a long result remain.
    pub shape: Shape,
    /// The largest file that Read and Edit accept.
    pub max_file_bytes: u64,
    /// The largest image sent to a model, in bytes.
    pub max_image_bytes: u64,
    /// The longer side of such an image, in pixels.
    pub max_image_side: u32,
    /// The time limit of a command that names none.
    pub bash_timeout_ms: u64,
    /// The longest time limit that a command may name.
    pub bash_timeout_max_ms: u64,
    /// A command that still runs after this time becomes a background job; 0: off.
    pub bash_yield_ms: u64,
    /// Concurrent tool calls on this node.
    pub max_running: u32,
    /// Concurrent background jobs of a session.
    pub max_jobs: u32,
    /// Bytes of a command's output kept in full.
    pub spill_bytes: u64,
    /// Tokens of the map of a source tree unless the model asks for another length; 0: no such tool.
    pub repo_map_tokens: u32,
    /// Entries that agentd examines in a directory from which an approved command runs code.
    pub max_watched: u32,
    /// `[tools.web]`.
    pub web: WebConfig,
    /// The operator's directory of skills; resolved from `[agents]` when the daemon starts.
    #[serde(skip)]
    pub operator_directory: Option<String>,
    /// Whether agents can read a project's skills; from `[agents]`.
    #[serde(skip, default = "yes")]
    pub project_skills: bool,
    /// Whether there is a search index; from `[index]`.
    #[serde(skip, default = "yes")]
    pub search: bool,
}

/// The default of what another section may turn off.
const fn yes() -> bool {
    true
}

/// `[context]`: which parts of a long conversation are sent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ContextConfig {
    /// Compact at this share of the model's window.
    pub compact_at: f64,
    /// Tokens at the end that stay verbatim.
    pub keep_recent_tokens: u64,
    /// Tokens reserved for the answer.
    pub reserve_tokens: u64,
    /// Send at most this many messages; 0 off.
    pub max_messages: u32,
    /// Tokens of the newest tool results that are never cleared.
    pub prune_protect_tokens: u64,
    /// Clear old tool results if that frees this many tokens; 0: never.
    pub prune_min_tokens: u64,
    /// Time limit for a model's summary; 0: always summarize without a model.
    pub summary_timeout_ms: u64,
    /// Let the provider count if the estimate is this close to the compaction limit, as a share of it; 0: never.
    pub count_margin: f64,
    /// Time limit of a count.
    pub count_timeout_ms: u64,
}

/// `[permission]`: the modes, rules and approvals.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PermissionConfig {
    /// The mode of a session that names none.
    pub mode: PermissionMode,
    /// The operator's rules. The rules of all layers add up.
    pub rules: Vec<RuleConfig>,
    /// The built-in rules. A layer that sets this replaces them.
    pub builtin: Vec<RuleConfig>,
    /// Names of entries that are not protected, although they or entries below them start with a dot.
    pub unprotected: Vec<String>,
    /// How a denied call affects the turn.
    pub on_deny: OnDeny,
    /// How long an approval stays open; `None`: forever.
    #[serde(with = "crate::duration::or_never")]
    pub ask_timeout: Option<Duration>,
    /// What happens to an expired approval.
    pub on_expiry: OnExpiry,
    /// The addresses that `on_expiry = "escalate"` notifies, one after the other.
    pub escalate_to: Vec<String>,
    /// `[permission.webhook]`.
    pub webhook: WebhookConfig,
    /// How long a headless run waits for a client that may decide; `None`: forever.
    #[serde(with = "crate::duration::or_never")]
    pub unattended_timeout: Option<Duration>,
}

impl PermissionConfig {
    /// The protected paths of every working directory, without those that git's configuration names.
    ///
    /// # Errors
    /// An entry of `unprotected` is not a file name, or would unprotect git directories.
    pub fn protected(&self) -> Result<ProtectedPaths, BadException> {
        ProtectedPaths::new(self.unprotected.iter().map(String::as_str))
    }
}

/// `[budget]`: hard spending limits.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BudgetConfig {
    /// The budget of one session.
    pub session: SessionBudget,
}

/// A budget as users write it; 0: no limit.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SessionBudget {
    /// Tokens of all kinds.
    pub tokens: u64,
    /// US dollars.
    pub usd: f64,
    /// Time inside turns, without waiting for a person.
    #[serde(with = "crate::duration::plain")]
    pub time: Duration,
    /// Steps.
    pub steps: u64,
}

impl SessionBudget {
    /// The budget in the form of the log.
    #[must_use]
    pub fn budget(&self) -> Budget {
        Budget {
            tokens: self.tokens,
            usd: self.usd,
            time_ms: u64::try_from(self.time.as_millis()).unwrap_or(u64::MAX),
            steps: self.steps,
        }
    }
}
