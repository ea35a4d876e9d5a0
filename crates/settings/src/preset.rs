//! Presets: named sets of loop settings, limited to the settings that this version has. A preset never demands a
//! missing feature.

use crate::session::Shape;
use agentd_protocol::{OnDeny, OnLimit, Preset};
use toml::Value;

/// The settings of a preset. The guard against failing steps is not among them: it applies in every preset.
pub(crate) struct Values {
    pub(crate) max_turns: i32,
    pub(crate) turn_cap: u32,
    pub(crate) on_limit: OnLimit,
    pub(crate) intent_retries: u32,
    pub(crate) stutter_guard: bool,
    pub(crate) on_deny: OnDeny,
    pub(crate) planning: bool,
    pub(crate) max_messages: u32,
    pub(crate) shape: Shape,
}

/// A cap that no turn reaches, for presets with unlimited steps.
const UNLIMITED: u32 = 1_000_000;

pub(crate) const fn values(preset: Preset) -> Values {
    let base = Values {
        max_turns: -1,
        turn_cap: 100,
        on_limit: OnLimit::Ask,
        intent_retries: 2,
        stutter_guard: true,
        on_deny: OnDeny::Continue,
        planning: false,
        max_messages: 0,
        shape: Shape::HeadTail,
    };
    match preset {
        Preset::Default | Preset::Clawd => base,
        Preset::Openclaw => Values {
            max_turns: 30,
            on_limit: OnLimit::Stop,
            intent_retries: 0,
            ..base
        },
        Preset::Etcode => Values {
            turn_cap: UNLIMITED,
            on_limit: OnLimit::Stop,
            intent_retries: 0,
            on_deny: OnDeny::Stop,
            ..base
        },
        Preset::React => Values {
            max_turns: 20,
            planning: true,
            on_limit: OnLimit::Stop,
            intent_retries: 0,
            max_messages: 30,
            shape: Shape::Keywords,
            ..base
        },
    }
}

/// The keys of a preset, as a layer just above the defaults. `default` adds none.
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
        ("loop", "stutter_guard", Value::try_from(values.stutter_guard)),
        ("loop", "planning", Value::try_from(values.planning)),
        ("loop", "intent_gate", Value::try_from(values.planning)),
        ("permission", "on_deny", Value::try_from(values.on_deny)),
        ("context", "max_messages", Value::try_from(values.max_messages)),
        ("tools", "shape", Value::try_from(values.shape)),
    ]
    .into_iter()
    .filter_map(|(section, key, value)| Some((section, key, value.ok()?)))
    .collect()
}
