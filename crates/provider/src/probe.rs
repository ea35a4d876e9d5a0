//! Looking for model servers on this machine.

use agentd_settings::{Dialect, Settings};
use reqwest::Client;
use serde_json::Value;
use std::time::Duration;
use tokio::time::timeout;

/// How long a local server may take to say what it has.
const WITHIN: Duration = Duration::from_millis(300);
/// The longest list of models that is read.
const LONGEST: usize = 1 << 20;

/// A model server that answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocalServer {
    /// The name under `[providers]`.
    pub provider: String,
    /// The models that it has.
    pub models: Vec<String>,
}

/// The configured providers on this machine that need no key: name and address.
#[must_use]
pub fn local_servers(settings: &Settings) -> Vec<(String, String)> {
    let local = |url: &str| {
        ["://127.0.0.1", "://localhost", "://[::1]"]
            .iter()
            .any(|host| url.contains(host))
    };
    let mut found: Vec<(String, String)> = settings
        .providers
        .iter()
        .filter(|(_, provider)| provider.dialect == Dialect::OpenaiChat && provider.credentials.is_empty())
        .filter(|(_, provider)| local(&provider.base_url))
        .map(|(name, provider)| (name.clone(), provider.base_url.clone()))
        .collect();
    // Ollama before llama.cpp before anything else.
    found.sort_by_key(|(_, url)| (!url.contains(":11434"), !url.contains(":8080")));
    found
}

/// Asks all configured local servers at the same time what they have, for at most 300 ms. Those that answer are
/// returned in the order of [`local_servers`].
pub async fn probe_local(client: &Client, settings: &Settings) -> Vec<LocalServer> {
    let probes = local_servers(settings)
        .into_iter()
        .map(|(provider, url)| async move {
            let models = timeout(WITHIN, list(client, &url)).await.ok().flatten()?;
            Some(LocalServer { provider, models })
        });
    futures_util::future::join_all(probes)
        .await
        .into_iter()
        .flatten()
        .collect()
}

async fn list(client: &Client, base_url: &str) -> Option<Vec<String>> {
    let url = format!("{}/models", base_url.trim_end_matches('/'));
    let mut response = client.get(url).send().await.ok()?.error_for_status().ok()?;
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.ok()? {
        body.extend_from_slice(&chunk);
        if body.len() > LONGEST {
            return None;
        }
    }
    let answer: Value = serde_json::from_slice(&body).ok()?;
    let models = answer.get("data")?.as_array()?;
    let names = models
        .iter()
        .filter_map(|model| model.get("id").and_then(Value::as_str));
    // Models that only embed cannot talk.
    let names: Vec<String> = names
        .filter(|name| !name.contains("embed"))
        .map(str::to_owned)
        .collect();
    (!names.is_empty()).then_some(names)
}
