//! Presets: named sets of loop settings, as far as this version has the settings. A preset never asks for more than there
//! is.

use crate::settings::Settings;
use agentd_protocol::{LoopLimits, OnDeny, OnLimit, Planning, Preset, ThinkingLevel, ToolProtocol};
use std::time::Duration;
use toml::Value;

/// What a preset stands for, of the settings that exist.
struct Values {
    max_turns: i32,
    turn_cap: u32,
    on_limit: OnLimit,
    intent_retries: u32,
    failing_steps: u32,
    stutter_guard: bool,
    on_deny: OnDeny,
    planning: bool,
    max_messages: u32,
}

/// A cap that no turn reaches, for the preset whose steps are unlimited.
const UNLIMITED: u32 = 1_000_000;

const fn values(preset: Preset) -> Values {
    let base = Values {
        max_turns: -1,
        turn_cap: 100,
        on_limit: OnLimit::Ask,
        intent_retries: 2,
        failing_steps: 3,
        stutter_guard: true,
        on_deny: OnDeny::Continue,
        planning: false,
        max_messages: 0,
    };
    match preset {
        Preset::Default | Preset::Clawd => base,
        Preset::Openclaw => Values {
            max_turns: 30,
            on_limit: OnLimit::Stop,
            intent_retries: 0,
            failing_steps: 0,
            ..base
        },
        Preset::Etcode => Values {
            turn_cap: UNLIMITED,
            on_limit: OnLimit::Stop,
            intent_retries: 0,
            failing_steps: 0,
            on_deny: OnDeny::Stop,
            ..base
        },
        Preset::React => Values {
            max_turns: 20,
            planning: true,
            on_limit: OnLimit::Stop,
            intent_retries: 0,
            failing_steps: 0,
            max_messages: 30,
            ..base
        },
    }
}

/// A preset as keys just above the defaults. `default` adds none.
pub(crate) fn layer(preset: Preset) -> Vec<(&'static str, &'static str, Value)> {
    if preset == Preset::Default {
        return Vec::new();
    }
    let values = values(preset);
    [
        ("loop", "max_turns", Value::try_from(values.max_turns)),
        ("loop", "turn_cap", Value::try_from(values.turn_cap)),
        ("loop", "on_limit", Value::try_from(values.on_limit)),
        (
            "loop",
            "incomplete_intent_retries",
            Value::try_from(values.intent_retries),
        ),
        ("loop", "failing_steps", Value::try_from(values.failing_steps)),
        ("loop", "stutter_guard", Value::try_from(values.stutter_guard)),
        ("loop", "planning", Value::try_from(values.planning)),
        ("loop", "intent_gate", Value::try_from(values.planning)),
        ("permission", "on_deny", Value::try_from(values.on_deny)),
        ("context", "max_messages", Value::try_from(values.max_messages)),
    ]
    .into_iter()
    .filter_map(|(section, key, value)| Some((section, key, value.ok()?)))
    .collect()
}

/// What one session asks for, over the daemon's settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LimitOverrides {
    /// Another preset than the daemon's.
    pub preset: Option<Preset>,
    /// Steps in a turn.
    pub max_turns: Option<i32>,
    /// Nobody watches.
    pub headless: bool,
    /// How hard the model is asked to think.
    pub thinking: Option<ThinkingLevel>,
}

fn ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

impl Settings {
    /// The loop's settings of one session: the daemon's, then another preset, then single values.
    #[must_use]
    pub fn limits(&self, overrides: LimitOverrides) -> LoopLimits {
        let mut limits = LoopLimits {
            max_turns: self.r#loop.max_turns,
            turn_cap: self.r#loop.turn_cap,
            on_limit: self.r#loop.on_limit,
            intent_retries: self.r#loop.incomplete_intent_retries,
            max_parallel_tools: self.r#loop.max_parallel_tools,
            on_deny: self.permission.on_deny,
            failing_steps: self.r#loop.failing_steps,
            repeated_calls: self.r#loop.repeated_calls,
            stutter_guard: self.r#loop.stutter_guard,
            headless: overrides.headless,
            ask_timeout_ms: self.permission.ask_timeout.map(ms),
            unattended_ms: self
                .permission
                .unattended_timeout
                .filter(|_| overrides.headless)
                .map(ms),
            thinking: overrides.thinking,
            tool_protocol: None,
            planning: Planning {
                enabled: self.r#loop.planning,
                intent_gate: self.r#loop.intent_gate,
                max_steps: self.r#loop.plan_steps,
                max_replans: self.r#loop.plan_changes,
            },
            max_messages: self.context.max_messages,
        };
        let preset = overrides.preset.unwrap_or(self.r#loop.preset);
        limits.tool_protocol = (preset == Preset::React).then_some(ToolProtocol::JsonText);
        if let Some(preset) = overrides.preset.filter(|preset| *preset != self.r#loop.preset) {
            let values = values(preset);
            limits.max_turns = values.max_turns;
            limits.turn_cap = values.turn_cap;
            limits.on_limit = values.on_limit;
            limits.intent_retries = values.intent_retries;
            limits.on_deny = values.on_deny;
            limits.failing_steps = values.failing_steps;
            limits.stutter_guard = values.stutter_guard;
            limits.planning.enabled = values.planning;
            limits.planning.intent_gate = values.planning;
            limits.max_messages = values.max_messages;
        }
        if let Some(max_turns) = overrides.max_turns {
            limits.max_turns = max_turns.max(-1);
        }
        limits
    }
}
