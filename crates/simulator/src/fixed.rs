//! Values that are the same in every run, built once: compiling rules and patterns takes longer than most runs.

use crate::options::{Knob, Options};
use crate::rules::Rules;
use agentd_protocol::HookEvent;
use agentd_settings::ToolsConfig;
use agentd_tools::Registry;
use agentd_turn::{CheckpointRule, Config, ContextRules, OnExpiry, SideRules};
use std::sync::{Arc, LazyLock};

static REGISTRY: LazyLock<Registry> = LazyLock::new(|| Registry::builtin(&ToolsConfig::default()));
static RULES: LazyLock<Result<Rules, String>> = LazyLock::new(Rules::new);
type Configs = Vec<((bool, bool, bool, u32), Arc<Config>)>;
/// Indexed by whether hooks are configured, whether questions escalate, whether models are asked outside of turns, and
/// when files are recorded.
static CONFIGS: LazyLock<Configs> = LazyLock::new(|| {
    let all = (0..24_u32).map(|n| (n & 1 > 0, n & 2 > 0, n & 4 > 0, n >> 3));
    all.map(|index| (index, Arc::new(config(index)))).collect()
});

pub(crate) fn registry() -> Registry {
    REGISTRY.clone()
}

pub(crate) fn rules() -> Result<Rules, String> {
    RULES.clone()
}

pub(crate) fn config_of(options: &Options) -> Arc<Config> {
    let wanted = (
        options.get(Knob::Hooks) > 0,
        options.get(Knob::Alone) == 3,
        options.get(Knob::Sides) > 0,
        options.get(Knob::Checkpoints),
    );
    let found = CONFIGS.iter().find(|(of, _)| *of == wanted);
    found.map_or_else(Arc::default, |(_, config)| Arc::clone(config))
}

fn config((hooks, escalates, sides, checkpoints): (bool, bool, bool, u32)) -> Config {
    let heard = HookEvent::ALL
        .into_iter()
        .filter(|event| hooks && !event.is_of_call());
    Config {
        intent_patterns: vec!["(?i)let me [a-z]+:$".into()],
        hooks: heard.collect(),
        checkpoints: match checkpoints {
            0 => CheckpointRule::Off,
            1 => CheckpointRule::Turn,
            _ => CheckpointRule::Step,
        },
        on_expiry: match escalates {
            true => OnExpiry::Escalate { levels: 1 },
            false => OnExpiry::Deny,
        },
        context: ContextRules {
            keep_recent_tokens: 600,
            reserve_tokens: 400,
            prune_protect_tokens: 800,
            prune_min_tokens: 300,
            ..ContextRules::default()
        },
        max_children: 2,
        side: match sides {
            true => SideRules {
                model: "session".into(),
                titles: true,
                summaries: true,
                intents: true,
                intent_below_permille: 900,
                max_output: 200,
                within_ms: 20_000,
            },
            false => SideRules::default(),
        },
        ..Config::default()
    }
}
