//! Settings -> models: finds the keys, says what is missing, chooses the default.

use crate::probe::LocalServer;
use crate::registry::{Entry, Registry};
use crate::script::Script;
use crate::secret::Secret;
use crate::spec::{Compat, Credential, Deadlines, ModelSpec, dialect_name};
use agentd_settings::{
    Credential as CredentialConfig, CredentialSource, Dialect, ModelConfig, ProviderConfig,
};
use agentd_settings::{Settings, ToolProtocol};
use std::io::Read as _;
use std::sync::Arc;

/// How the value of an environment variable is found; the binary reads the environment, not this crate.
pub type Lookup<'a> = &'a dyn Fn(&str) -> Option<String>;

/// The longest key file and the longest script.
const LONGEST_KEY: u64 = 64 << 10;
const LONGEST_SCRIPT: u64 = 16 << 20;

/// Resolves all configured models. `local` are the servers that answered on this machine.
#[must_use]
pub fn resolve(settings: &Settings, env: Lookup<'_>, local: &[LocalServer]) -> Registry {
    let mut registry = Registry::default();
    for config in settings
        .providers
        .values()
        .flat_map(|provider| &provider.credentials)
    {
        // What cannot be found is told where a model needs it.
        let found = secret(config, env).ok().filter(|secret| !secret.is_empty());
        registry.keys.extend(found);
    }
    for (name, model) in &settings.models {
        let entry = resolve_one(settings, name, model, env, local);
        registry.models.insert(name.clone(), entry);
    }
    choose_default(settings, &mut registry, local);
    registry
}

fn resolve_one(
    settings: &Settings,
    name: &str,
    model: &ModelConfig,
    env: Lookup<'_>,
    local: &[LocalServer],
) -> Entry {
    let provider = settings.providers.get(&model.provider);
    let spec = match provider {
        Some(provider) => build(settings, name, model, provider, env),
        None => Err(format!(
            "there is no provider {} under [providers]",
            model.provider
        )),
    };
    let spec = spec.map(|spec| with_local_name(spec, local));
    let note = spec.as_ref().map(|spec| note(spec, model)).unwrap_or_default();
    Entry {
        provider: model.provider.clone(),
        model: spec
            .as_ref()
            .map_or_else(|_| model.model.clone(), |spec| spec.model.clone()),
        dialect: provider.map(|provider| provider.dialect),
        spec: spec.map(Arc::new),
        note,
    }
}

fn note(spec: &ModelSpec, model: &ModelConfig) -> String {
    match spec.credential() {
        Some(credential) => format!("credential {}", credential.name),
        None if spec.model != model.model => format!("the server has {} and not {}", spec.model, model.model),
        None => "needs no credential".to_owned(),
    }
}

/// A local server that does not have the configured model is asked for the first that it has.
fn with_local_name(mut spec: ModelSpec, local: &[LocalServer]) -> ModelSpec {
    let Some(server) = local.iter().find(|server| server.provider == spec.provider) else {
        return spec;
    };
    let tagged = format!("{}:", spec.model);
    let has = server
        .models
        .iter()
        .any(|model| *model == spec.model || model.starts_with(&tagged));
    if let (false, Some(first)) = (has, server.models.first()) {
        spec.model.clone_from(first);
    }
    spec
}

fn build(
    settings: &Settings,
    name: &str,
    model: &ModelConfig,
    provider: &ProviderConfig,
    env: Lookup<'_>,
) -> Result<ModelSpec, String> {
    if model.tool_protocol == ToolProtocol::JsonText {
        return Err("tool_protocol = \"json-text\" is not available yet; use \"native\"".to_owned());
    }
    let script = match provider.dialect {
        Dialect::Scripted => Some(Arc::new(script(&model.model)?)),
        Dialect::Anthropic | Dialect::OpenaiChat if provider.base_url.is_empty() => {
            return Err(format!("providers.{}.base_url is empty", model.provider));
        }
        Dialect::Anthropic | Dialect::OpenaiChat => None,
        other @ (Dialect::OpenaiResponses | Dialect::Gemini | Dialect::LlamaCompletion | Dialect::Ollama) => {
            let name = dialect_name(other);
            return Err(format!(
                "dialect {name} is not available yet; use anthropic, openai-chat or scripted"
            ));
        }
    };
    Ok(ModelSpec {
        name: name.to_owned(),
        provider: model.provider.clone(),
        dialect: provider.dialect,
        base_url: provider.base_url.trim_end_matches('/').to_owned(),
        model: model.model.clone(),
        context_window: model.context_window,
        max_output: model.max_output,
        price: model.price,
        tool_protocol: model.tool_protocol,
        fallbacks: model.fallbacks.clone(),
        credentials: credentials(provider, env)?,
        headers: Vec::new(),
        deadlines: Deadlines::from(&settings.retry),
        max_concurrent: provider.max_concurrent,
        compat: Compat::of(provider.dialect, &provider.base_url),
        script,
    })
}

fn script(model: &str) -> Result<Script, String> {
    if matches!(model, "" | "builtin") {
        return Ok(Script::builtin());
    }
    let text = read_bounded(model, LONGEST_SCRIPT)?;
    Script::parse(model, &text).map_err(|error| error.to_string())
}

/// All keys that are there; an error that names every fix when the provider needs one and none is.
fn credentials(provider: &ProviderConfig, env: Lookup<'_>) -> Result<Vec<Credential>, String> {
    let (mut found, mut missing) = (Vec::new(), Vec::new());
    for config in &provider.credentials {
        match secret(config, env) {
            Ok(secret) if !secret.is_empty() => found.push(Credential {
                name: config.name.clone(),
                found_in: config
                    .env
                    .clone()
                    .or_else(|| config.file.clone())
                    .unwrap_or_default(),
                secret,
            }),
            Ok(_) => missing.push(format!("credential {} is empty", config.name)),
            Err(reason) => missing.push(reason),
        }
    }
    if found.is_empty() && !missing.is_empty() {
        Err(missing.join("; "))
    } else {
        Ok(found)
    }
}

fn secret(config: &CredentialConfig, env: Lookup<'_>) -> Result<Secret, String> {
    match config.source() {
        Some(CredentialSource::Env(variable)) => env(variable)
            .filter(|value| !value.trim().is_empty())
            .map(|value| Secret::new(&value))
            .ok_or_else(|| format!("set {variable} in the environment of agentd and start it again")),
        Some(CredentialSource::File(path)) => read_bounded(path, LONGEST_KEY).map(|text| Secret::new(&text)),
        Some(CredentialSource::Exec(_)) => Err(format!(
            "credential {}: exec is not available yet; use env or file",
            config.name
        )),
        None => Err(format!(
            "credential {} needs exactly one of env, file and exec",
            config.name
        )),
    }
}

fn read_bounded(path: &str, limit: u64) -> Result<String, String> {
    let mut text = String::new();
    let read = std::fs::File::open(path).and_then(|file| file.take(limit + 1).read_to_string(&mut text));
    match read {
        Ok(_) if text.len() as u64 > limit => Err(format!("{path} is longer than {limit} bytes")),
        Ok(_) => Ok(text),
        Err(error) => Err(format!("{path} cannot be read: {error}")),
    }
}

/// The order: what is configured, a key in the environment, a local server, the scripted model.
fn choose_default(settings: &Settings, registry: &mut Registry, local: &[LocalServer]) {
    let configured = settings.model.default.as_str();
    if !matches!(configured, "" | "auto") {
        configured.clone_into(&mut registry.default);
        "it is model.default of the configuration".clone_into(&mut registry.why);
        return;
    }
    let keyed = |dialect: Dialect| {
        let found = |spec: &&Arc<ModelSpec>| spec.dialect == dialect && spec.credential().is_some();
        registry
            .models
            .values()
            .filter_map(|entry| entry.spec.as_ref().ok())
            .find(found)
    };
    if let Some(spec) = keyed(Dialect::Anthropic).or_else(|| keyed(Dialect::OpenaiChat)) {
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
    let why = "no credential is in the environment and no local model server answers";
    let scripted = |entry: &&Entry| entry.dialect == Some(Dialect::Scripted) && entry.spec.is_ok();
    let found = registry
        .models
        .values()
        .find(scripted)
        .and_then(|entry| entry.spec.as_ref().ok());
    match found.map(|spec| spec.name.clone()) {
        Some(name) => (registry.default, registry.why) = (name, why.to_owned()),
        None => registry.insert_scripted_default("scripted", Script::builtin(), why),
    }
}

#[cfg(test)]
mod tests;
