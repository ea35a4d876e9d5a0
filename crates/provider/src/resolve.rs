//! Resolves settings into models: finds keys, applies what local servers report, notes what is missing, picks a default.

mod credentials;
mod default;

use crate::capabilities::{Capabilities, Size};
use crate::probe::{LocalServer, named};
use crate::registry::{Entry, Registry};
use crate::script::Script;
use crate::spec::{Compat, Deadlines, ModelSpec};
use agentd_protocol::ToolProtocol;
use agentd_settings::{Dialect, ModelConfig, ProviderConfig, Settings};
use credentials::{credentials, in_headers, secret};
use default::choose_default;
use std::io::Read as _;
use std::path::PathBuf;
use std::sync::Arc;

/// Looks up an environment variable; only the binary reads the environment, not this crate.
pub type Lookup<'a> = &'a dyn Fn(&str) -> Option<String>;

/// The longest script.
const LONGEST_SCRIPT: u64 = 16 << 20;

/// Resolves all configured models. `local` are the servers on this machine that answered.
#[must_use]
pub fn resolve(settings: &Settings, env: Lookup<'_>, local: &[LocalServer]) -> Registry {
    let mut registry = Registry::default();
    for config in settings
        .providers
        .values()
        .flat_map(|provider| &provider.credentials)
    {
        // A missing key is reported by the models that need it.
        let found = secret(config, env).ok().filter(|secret| !secret.is_empty());
        registry.keys.extend(found);
    }
    for provider in settings.providers.values() {
        registry.keys.extend(in_headers(provider));
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
    let server = local.iter().find(|server| server.provider == model.provider);
    let built = match provider {
        Some(provider) => build(settings, (name, model), provider, env, server),
        None => Err(format!(
            "there is no provider {} under [providers]",
            model.provider
        )),
    };
    let (spec, notes) = match built {
        Ok((spec, notes)) => (Ok(Arc::new(spec)), notes.join("; ")),
        Err(reason) => (Err(reason), String::new()),
    };
    let untried = spec.as_ref().is_ok_and(|spec| {
        spec.credentials.is_empty() && spec.dialect != Dialect::Scripted && server.is_none()
    });
    Entry {
        untried,
        leaving: false,
        provider: model.provider.clone(),
        model: spec
            .as_ref()
            .map_or_else(|_| model.model.clone(), |spec| spec.model.clone()),
        dialect: provider.map(|provider| provider.dialect),
        spec,
        note: notes,
    }
}

/// A model that is not a chat model: its server is not probed.
pub(crate) fn spec_of(
    settings: &Settings,
    name: &str,
    model: &ModelConfig,
    env: Lookup<'_>,
) -> Result<ModelSpec, String> {
    let provider = settings
        .providers
        .get(&model.provider)
        .ok_or_else(|| format!("there is no provider {} under [providers]", model.provider))?;
    build(settings, (name, model), provider, env, None).map(|(spec, _)| spec)
}

/// Builds a model, with notes for people.
fn build(
    settings: &Settings,
    (name, model): (&str, &ModelConfig),
    provider: &ProviderConfig,
    env: Lookup<'_>,
    server: Option<&LocalServer>,
) -> Result<(ModelSpec, Vec<String>), String> {
    let script = match provider.dialect {
        Dialect::Scripted => Some(Arc::new(script(&model.model)?)),
        _ if provider.base_url.is_empty() => {
            return Err(format!("providers.{}.base_url is empty", model.provider));
        }
        Dialect::Anthropic
        | Dialect::OpenaiChat
        | Dialect::OpenaiResponses
        | Dialect::Gemini
        | Dialect::LlamaCompletion
        | Dialect::Ollama => None,
    };
    let called = server.map_or(&model.model, |server| called(server, &model.model));
    let capabilities = Capabilities::of(provider.dialect, called, &model.capabilities);
    let (credentials, missing) = credentials(provider, env)?;
    let mut spec = ModelSpec {
        name: name.to_owned(),
        provider: model.provider.clone(),
        dialect: provider.dialect,
        base_url: provider.base_url.trim_end_matches('/').to_owned(),
        model: called.clone(),
        context_window: model.context_window,
        max_output: model.max_output,
        price: model.price,
        tool_protocol: match provider.dialect {
            // A raw completion has no native tool calls.
            Dialect::LlamaCompletion => ToolProtocol::JsonText,
            _ => model.tool_protocol,
        },
        fallbacks: model.fallbacks.clone(),
        credentials,
        headers: provider
            .headers
            .iter()
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect(),
        deadlines: Deadlines::from(&settings.retry),
        max_concurrent: provider.max_concurrent,
        compat: Compat::of(provider.dialect, &provider.base_url, called, &provider.compat),
        cache_hour: false,
        temperature: model.temperature.filter(|_| capabilities.temperature),
        thinking: model.thinking,
        stream: provider.stream,
        record: Some(&model.record)
            .filter(|path| !path.is_empty())
            .map(PathBuf::from),
        capabilities,
        script,
    };
    let mut notes = notes(&spec, model, missing);
    if let Some(server) = server {
        notes.extend(learn(&mut spec, model, server));
    }
    Ok((spec, notes))
}

/// A local server's name for a model; if it does not have the model, its first one.
fn called<'a>(server: &'a LocalServer, model: &'a String) -> &'a String {
    match named(&server.models, model) {
        // The server accepts the name without its tag, so requests keep using that.
        Some(_) => model,
        None => server.models.first().unwrap_or(model),
    }
}

/// Applies what a local server reported: it knows its limits better than the configuration.
fn learn(spec: &mut ModelSpec, model: &ModelConfig, server: &LocalServer) -> Option<String> {
    let full = named(&server.models, &spec.model)?;
    if server.seeing.contains(full) && model.capabilities.images.is_none() {
        spec.capabilities.images = true;
    }
    if let Some(slots) = server.slots {
        spec.max_concurrent = spec.max_concurrent.min(slots);
    }
    let window = server.windows.get(full).copied()?;
    if window >= spec.context_window {
        return None;
    }
    spec.fit_into(window);
    Some(format!(
        "the context window of the server is {window} tokens instead of {}",
        model.context_window
    ))
}

fn notes(spec: &ModelSpec, model: &ModelConfig, missing: Vec<String>) -> Vec<String> {
    let names: Vec<&str> = spec
        .credentials
        .iter()
        .map(|credential| credential.name.as_str())
        .collect();
    let mut notes = vec![match names.as_slice() {
        [] if spec.model != model.model => {
            format!("the server has {} instead of {}", spec.model, model.model)
        }
        [] => "needs no credential".to_owned(),
        [one] => format!("credential {one}"),
        several => format!("credentials {}", several.join(", ")),
    }];
    notes.extend(missing);
    let size = Size::of(spec.dialect, &spec.model);
    let window = size
        .context_window
        .filter(|known| *known < spec.context_window)
        .map(|known| {
            format!(
                "context_window {} exceeds the model's {known}",
                spec.context_window
            )
        });
    let output = size
        .max_output
        .filter(|known| *known < spec.max_output)
        .map(|known| format!("max_output {} exceeds the model's {known}", spec.max_output));
    notes.extend(window.into_iter().chain(output));
    notes
}

fn script(model: &str) -> Result<Script, String> {
    if matches!(model, "" | "builtin") {
        return Ok(Script::builtin());
    }
    let text = read_bounded(model, LONGEST_SCRIPT)?;
    Script::parse(model, &text).map_err(|error| error.to_string())
}

fn read_bounded(path: &str, limit: u64) -> Result<String, String> {
    let mut text = String::new();
    let read = std::fs::File::open(path).and_then(|file| file.take(limit + 1).read_to_string(&mut text));
    match read {
        Ok(_) if text.len() as u64 > limit => Err(format!("{path} is longer than {limit} bytes")),
        Ok(_) => Ok(text),
        Err(error) => Err(format!("cannot read {path}: {error}")),
    }
}

#[cfg(test)]
mod tests;
