//! Node-wide settings for all sessions; a session's own settings are in its log.

use crate::checkpoints::CheckpointRule;
use crate::context::ContextRules;
use crate::planning::intent_guard::IntentMatcher;
use crate::side::SideRules;
use agentd_protocol::HookEvent;

/// What happens to an approval when it expires.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnExpiry {
    /// The call is denied.
    #[default]
    Deny,
    /// It stays open.
    Wait,
    /// It stays open for several more rounds of the same length; then the call is denied.
    Escalate {
        /// The number of rounds.
        levels: u32,
    },
}

/// Settings of the core that may change with a restart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// Regular expressions for an announced action, matched against the end of the assistant's text.
    pub intent_patterns: Vec<String>,
    /// Retries after the first attempt.
    pub max_retries: u32,
    /// Attempts of one call to find the items that a provider refuses.
    pub max_omissions: u32,
    /// The first back-off, in milliseconds; doubles each time.
    pub base_ms: u64,
    /// The longest back-off that we choose ourselves, in milliseconds.
    pub cap_ms: u64,
    /// How long a model call may stay parked for a rate limit, quota or credential, counted from its first failure.
    pub park_ms: u64,
    /// Time limit for judging a step's calls; calls still unjudged then are denied (I7).
    pub judge_timeout_ms: u64,
    /// What happens to an approval when it expires.
    pub on_expiry: OnExpiry,
    /// The most inputs that may be queued.
    pub max_queue: usize,
    /// The most bytes of partial text to keep.
    pub max_partial_bytes: usize,
    /// The most open sub-agents of one session; further calls of this kind wait.
    pub max_children: u32,
    /// How deep sub-agents may be nested below the root; 0: none are allowed.
    pub max_depth: u32,
    /// The events for which hooks are configured.
    pub hooks: Vec<HookEvent>,
    /// How often the hooks at a turn's end may make it continue.
    pub stop_rounds: u32,
    /// How long conversations are made shorter.
    pub context: ContextRules,
    /// When the files of the working directory are recorded.
    pub checkpoints: CheckpointRule,
    /// Whether commands set up the own workspaces of sessions.
    pub setup: bool,
    /// What models are asked outside of the turns.
    pub side: SideRules,
    /// The compiled `intent_patterns`; construct it with `Default`, it compiles on first use.
    pub intent: IntentMatcher,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            intent_patterns: Vec::new(),
            max_retries: 5,
            max_omissions: 12,
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
            checkpoints: CheckpointRule::Off,
            setup: false,
            side: SideRules::default(),
            intent: IntentMatcher::default(),
        }
    }
}
