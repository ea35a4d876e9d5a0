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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::http_client;
    use agentd_settings::ProviderConfig;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    /// Settings with one provider on this machine that answers with `body`, or not at all.
    async fn settings(body: Option<&'static str>) -> (Settings, tokio::task::JoinHandle<()>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base_url = format!("http://{}/v1", listener.local_addr().unwrap());
        let server = tokio::spawn(async move {
            let (mut socket, _) = listener.accept().await.unwrap();
            let mut request = [0; 1_024];
            let read = socket.read(&mut request).await.unwrap();
            assert!(request[..read].starts_with(b"GET /v1/models HTTP/1.1\r\n"));
            let Some(body) = body else {
                return std::future::pending().await;
            };
            let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len());
            socket.write_all(answer.as_bytes()).await.unwrap();
        });
        let mut settings = Settings::default();
        settings.providers.clear();
        settings.providers.insert(
            "local".into(),
            ProviderConfig {
                base_url,
                ..ProviderConfig::default()
            },
        );
        (settings, server)
    }

    async fn probe(body: Option<&'static str>) -> Vec<LocalServer> {
        let (settings, server) = settings(body).await;
        let found = probe_local(&http_client(WITHIN).unwrap(), &settings).await;
        server.abort();
        found
    }

    #[tokio::test]
    async fn a_server_tells_which_models_can_talk() {
        let body = r#"{"object":"list","data":[{"id":"nomic-embed-text"},{"id":"qwen3:8b"}]}"#;
        let expected = vec![LocalServer {
            provider: "local".into(),
            models: vec!["qwen3:8b".into()],
        }];
        assert_eq!(probe(Some(body)).await, expected);
    }

    #[tokio::test]
    async fn something_else_on_the_port_is_no_model_server() {
        assert_eq!(probe(Some("<html>hello</html>")).await, []);
        assert_eq!(probe(Some(r#"{"data":[]}"#)).await, []);
    }

    #[tokio::test]
    async fn a_silent_server_is_not_waited_for() {
        assert_eq!(probe(None).await, []);
    }
}
