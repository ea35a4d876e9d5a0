//! What is the same in every run, made once: compiling rules and patterns takes longer than most runs.

use crate::options::{Knob, Options};
use crate::rules::Rules;
use agentd_protocol::HookEvent;
use agentd_settings::ToolsConfig;
use agentd_tools::Registry;
use agentd_turn::{Config, ContextRules, OnExpiry};
use std::sync::{Arc, LazyLock};

static REGISTRY: LazyLock<Registry> = LazyLock::new(|| Registry::builtin(&ToolsConfig::default()));
static RULES: LazyLock<Result<Rules, String>> = LazyLock::new(Rules::new);
/// By whether hooks are told, and whether questions escalate.
static CONFIGS: LazyLock<[[Arc<Config>; 2]; 2]> = LazyLock::new(|| {
    [false, true].map(|hooks| [false, true].map(|escalates| Arc::new(config(hooks, escalates))))
});

pub(crate) fn registry() -> Registry {
    REGISTRY.clone()
}

pub(crate) fn rules() -> Result<Rules, String> {
    RULES.clone()
}

pub(crate) fn config_of(options: &Options) -> Arc<Config> {
    let [[plain, escalating], [hooked, both]] = &*CONFIGS;
    let escalates = options.get(Knob::Alone) == 3;
    Arc::clone(match (options.get(Knob::Hooks) > 0, escalates) {
        (false, false) => plain,
        (false, true) => escalating,
        (true, false) => hooked,
        (true, true) => both,
    })
}

fn config(hooks: bool, escalates: bool) -> Config {
    let heard = HookEvent::ALL
        .into_iter()
        .filter(|event| hooks && !event.is_of_call());
    Config {
        intent_patterns: vec!["(?i)let me [a-z]+:$".into()],
        hooks: heard.collect(),
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
        ..Config::default()
    }
}
