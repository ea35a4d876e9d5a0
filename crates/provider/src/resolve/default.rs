//! Chooses the default model, for sessions that name none.

use crate::probe::LocalServer;
use crate::registry::Registry;
use agentd_settings::{Dialect, Settings, ways_to_a_model};

/// The rank of a dialect among those with a key.
const fn place(dialect: Dialect) -> u8 {
    match dialect {
        Dialect::Anthropic => 0,
        Dialect::OpenaiChat => 1,
        Dialect::OpenaiResponses => 2,
        Dialect::Gemini => 3,
        Dialect::LlamaCompletion | Dialect::Ollama | Dialect::Scripted => 4,
    }
}

/// The order: the configured model, one with a key in the environment, a local server. A scripted model is never chosen: its
/// answers would pass for those of a real one.
pub(super) fn choose_default(settings: &Settings, registry: &mut Registry, local: &[LocalServer]) {
    let configured = settings.model.default.as_str();
    if !matches!(configured, "" | "auto") {
        configured.clone_into(&mut registry.default);
        "set by model.default in the configuration".clone_into(&mut registry.why);
        return;
    }
    let specs = registry
        .models
        .values()
        .filter_map(|entry| entry.spec.as_ref().ok());
    let keyed = specs.filter(|spec| spec.credential(None).is_some());
    // Models of equal rank: the first by name.
    if let Some(spec) = keyed.min_by_key(|spec| place(spec.dialect)) {
        let why = format!("provider {} has a credential", spec.provider);
        (registry.default, registry.why) = (spec.name.clone(), why);
        return;
    }
    let at = |server: &LocalServer| {
        let mut specs = registry
            .models
            .values()
            .filter_map(|entry| entry.spec.as_ref().ok());
        specs.find(|spec| spec.provider == server.provider).cloned()
    };
    if let Some(spec) = local.iter().find_map(at) {
        let why = format!("a model server answers at {}", spec.base_url);
        (registry.default, registry.why) = (spec.name.clone(), why);
        return;
    }
    registry.why = format!(
        "no provider has a credential, and no local model server answers; {}",
        ways_to_a_model(settings)
    );
}
