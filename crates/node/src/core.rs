//! Derives the settings of the pure core from the configuration.

use agentd_settings::{
    Checkpointing, ContextConfig, OnExpiry, PermissionConfig, Settings, SideCallsConfig, WorkspaceConfig,
};

/// Time limit for a verdict. The gate judges a call again after a hook changed its input.
fn judge_timeout_ms(settings: &Settings) -> u64 {
    let gate = agentd_turn::Config::default().judge_timeout_ms;
    let hooks = settings.hooks.longest_before();
    if hooks.is_zero() {
        return gate;
    }
    let hooks = u64::try_from(hooks.as_millis()).unwrap_or(u64::MAX);
    gate.saturating_mul(2).saturating_add(hooks)
}

/// What happens to an expired approval.
fn on_expiry(permission: &PermissionConfig) -> agentd_turn::OnExpiry {
    match permission.on_expiry {
        OnExpiry::Deny => agentd_turn::OnExpiry::Deny,
        OnExpiry::Wait => agentd_turn::OnExpiry::Wait,
        OnExpiry::Escalate => agentd_turn::OnExpiry::Escalate {
            levels: u32::try_from(permission.escalate_to.len()).unwrap_or(u32::MAX),
        },
    }
}

/// A share as thousandths.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a share between 0 and 1, as it was checked"
)]
fn permille(share: f64) -> u64 {
    (share * 1_000.0).round() as u64
}

/// The settings of side calls.
fn side_rules(config: &SideCallsConfig) -> agentd_turn::SideRules {
    agentd_turn::SideRules {
        model: config.model.clone(),
        titles: config.titles,
        summaries: config.summaries,
        intents: config.intents,
        intent_below_permille: u32::try_from(permille(config.intent_below)).unwrap_or(0),
        max_output: config.max_tokens,
        within_ms: config.timeout_ms,
    }
}

/// When and how a conversation is shortened.
fn context_rules(config: &ContextConfig) -> agentd_turn::ContextRules {
    agentd_turn::ContextRules {
        compact_at_permille: permille(config.compact_at),
        keep_recent_tokens: config.keep_recent_tokens,
        reserve_tokens: config.reserve_tokens,
        prune_protect_tokens: config.prune_protect_tokens,
        prune_min_tokens: config.prune_min_tokens,
        summary_ms: config.summary_timeout_ms,
        count_margin_permille: permille(config.count_margin),
        count_ms: config.count_timeout_ms,
    }
}

/// When files are recorded.
const fn checkpoint_rule(config: &WorkspaceConfig) -> agentd_turn::CheckpointRule {
    match config.checkpoint {
        Checkpointing::Off => agentd_turn::CheckpointRule::Off,
        Checkpointing::Turn => agentd_turn::CheckpointRule::Turn,
        Checkpointing::Step => agentd_turn::CheckpointRule::Step,
    }
}

/// The whole configuration of the core.
pub(crate) fn core_config(settings: &Settings) -> agentd_turn::Config {
    agentd_turn::Config {
        intent_patterns: settings.r#loop.intent_patterns.clone(),
        judge_timeout_ms: judge_timeout_ms(settings),
        hooks: settings.hooks.heard(),
        stop_rounds: settings.hooks.stop_rounds,
        max_children: settings.agents.max_children,
        max_depth: settings.agents.max_depth,
        max_retries: settings.retry.max_retries,
        max_omissions: settings.retry.max_omissions,
        base_ms: settings.retry.base_ms,
        cap_ms: settings.retry.cap_ms,
        park_ms: settings.retry.park_ms,
        on_expiry: on_expiry(&settings.permission),
        max_queue: settings.limits.queue_inputs as usize,
        context: context_rules(&settings.context),
        side: side_rules(&settings.side_calls),
        checkpoints: checkpoint_rule(&settings.workspace),
        setup: !settings.workspace.setup.is_empty(),
        ..agentd_turn::Config::default()
    }
}
