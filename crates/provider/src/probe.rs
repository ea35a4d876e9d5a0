//! Finds the model servers on this machine, and asks them for their models.

mod ask;

use agentd_settings::{Dialect, Settings};
use reqwest::Client;
use std::collections::BTreeMap;
use std::time::Duration;

/// The time limit of one answer of a local server.
const WITHIN: Duration = Duration::from_millis(300);

/// A model server that answered.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LocalServer {
    /// The name under `[providers]`.
    pub provider: String,
    /// The models that it offers.
    pub models: Vec<String>,
    /// The context windows that it reported, by model, in tokens.
    pub windows: BTreeMap<String, u64>,
    /// The models that, it reports, accept images.
    pub seeing: Vec<String>,
    /// The number of calls that it runs at the same time.
    pub slots: Option<u32>,
}

/// The configured local providers that need no key: name and address.
#[must_use]
pub fn local_servers(settings: &Settings) -> Vec<(String, String)> {
    let local = |url: &str| {
        ["://127.0.0.1", "://localhost", "://[::1]"]
            .iter()
            .any(|host| url.contains(host))
    };
    let asked = |dialect: Dialect| match dialect {
        Dialect::OpenaiChat | Dialect::LlamaCompletion | Dialect::Ollama => true,
        Dialect::Anthropic | Dialect::OpenaiResponses | Dialect::Gemini | Dialect::Scripted => false,
    };
    let mut found: Vec<(String, String)> = settings
        .providers
        .iter()
        .filter(|(_, provider)| asked(provider.dialect) && provider.credentials.is_empty())
        .filter(|(_, provider)| local(&provider.base_url))
        .map(|(name, provider)| (name.clone(), provider.base_url.clone()))
        .collect();
    // Ollama first, then llama.cpp, then all others.
    found.sort_by_key(|(_, url)| (!url.contains(":11434"), !url.contains(":8080")));
    found
}

/// Asks all configured local servers for their models, in parallel, for at most 600 ms. Returns those that answer,
/// in the order of [`local_servers`].
pub async fn probe_local(client: &Client, settings: &Settings) -> Vec<LocalServer> {
    probe_within(client, settings, WITHIN).await
}

/// The same, for at most twice `within`.
async fn probe_within(client: &Client, settings: &Settings, within: Duration) -> Vec<LocalServer> {
    let probes = local_servers(settings)
        .into_iter()
        .map(|(provider, url)| async move {
            let dialect = settings.providers.get(&provider)?.dialect;
            let wanted: Vec<&str> = settings
                .models
                .values()
                .filter(|model| model.provider == provider)
                .map(|model| model.model.as_str())
                .collect();
            let found = match dialect {
                Dialect::Ollama => ask::ollama(client, &url, &wanted, within).await,
                Dialect::Anthropic
                | Dialect::OpenaiChat
                | Dialect::OpenaiResponses
                | Dialect::Gemini
                | Dialect::LlamaCompletion
                | Dialect::Scripted => ask::others(client, &url, within).await,
            };
            found.map(|found| LocalServer { provider, ..found })
        });
    futures_util::future::join_all(probes)
        .await
        .into_iter()
        .flatten()
        .collect()
}

/// The server's name for a model: the same, the same followed by a tag, or none.
pub(crate) fn named<'a>(models: &'a [String], wanted: &str) -> Option<&'a String> {
    let exact = models.iter().find(|model| *model == wanted);
    let tagged = |model: &&String| model.strip_prefix(wanted).is_some_and(|tag| tag.starts_with(':'));
    exact.or_else(|| models.iter().find(tagged))
}

#[cfg(test)]
mod tests;
