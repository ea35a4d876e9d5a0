//! What the node decides for all its sessions; a session's own settings are in its log.

use crate::context::ContextRules;
use crate::intent::IntentMatcher;
use crate::side::SideRules;
use agentd_protocol::HookEvent;

/// What an approval does whose time is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnExpiry {
    /// The call is denied.
    #[default]
    Deny,
    /// It stays open.
    Wait,
    /// It stays open for the same time again, this often; then the call is denied.
    Escalate {
        /// How often.
        levels: u32,
    },
}

/// Settings of the core that may change with a restart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// Regular expressions of an announced action; matched against the end of the assistant's text.
    pub intent_patterns: Vec<String>,
    /// Attempts after the first.
    pub max_retries: u32,
    /// The first back-off; doubles.
    pub base_ms: u64,
    /// The longest back-off of our own making.
    pub cap_ms: u64,
    /// A model call waits at rest for a rate limit, a quota or a credential at most so long since its first failure.
    pub park_ms: u64,
    /// Judging a step's calls may take this long; then what is unjudged is denied (I7).
    pub judge_timeout_ms: u64,
    /// What an approval does whose time is over.
    pub on_expiry: OnExpiry,
    /// Inputs that may wait.
    pub max_queue: usize,
    /// Bytes of partial text that are kept.
    pub max_partial_bytes: usize,
    /// Sub-agents of one session that may be open at the same time; other calls of them wait in line.
    pub max_children: u32,
    /// How deep sub-agents may go below the root; 0: there are none.
    pub max_depth: u32,
    /// What hooks are told of.
    pub hooks: Vec<HookEvent>,
    /// How often the hooks of a turn's end may have it go on.
    pub stop_rounds: u32,
    /// What becomes of long conversations.
    pub context: ContextRules,
    /// What models are asked beside the turns.
    pub side: SideRules,
    /// The compiled `intent_patterns`; construct it with `Default`, the rest is done when first needed.
    pub intent: IntentMatcher,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            intent_patterns: Vec::new(),
            max_retries: 5,
            base_ms: 1_000,
            cap_ms: 30_000,
            park_ms: 86_400_000,
            judge_timeout_ms: 10_000,
            on_expiry: OnExpiry::Deny,
            max_queue: 16,
            max_partial_bytes: 262_144,
            max_children: 8,
            max_depth: 3,
            hooks: Vec::new(),
            stop_rounds: 2,
            context: ContextRules::default(),
            side: SideRules::default(),
            intent: IntentMatcher::default(),
        }
    }
}
