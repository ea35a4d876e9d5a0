//! Asks local servers for their models, each kind in its own way.

use super::{LocalServer, named};
use crate::address::beside;
use crate::fields::{number, text};
use futures_util::future::{join, join_all};
use reqwest::{Client, RequestBuilder};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::timeout;

/// The longest answer that is read.
const LONGEST: usize = 4 << 20;
/// The most models that are queried one by one.
const SHOWN: usize = 8;

/// A server that lists its models as OpenAI does. llama.cpp reports its window and its slots at a separate endpoint.
pub(super) async fn others(client: &Client, base_url: &str, within: Duration) -> Option<LocalServer> {
    let models = client.get(beside(base_url, "v1/models"));
    let props = client.get(beside(base_url, "props"));
    let (listed, props) = join(json(models, within), json(props, within)).await;
    let mut server = LocalServer::default();
    let rows = listed.as_ref().and_then(|listed| listed.get("data")?.as_array());
    for row in rows.into_iter().flatten() {
        let name = text(row, "id");
        if !talks(name) {
            continue;
        }
        server.models.push(name.to_owned());
        let window = ["/context_length", "/max_model_len", "/meta/n_ctx"]
            .iter()
            .find_map(|field| number(row, field));
        server
            .windows
            .extend(window.map(|window| (name.to_owned(), window)));
    }
    if let Some(props) = props.filter(Value::is_object) {
        server.learn(&props);
    }
    (!server.models.is_empty()).then_some(server)
}

impl LocalServer {
    /// Applies llama.cpp's `/props`; it covers every model without data of its own.
    fn learn(&mut self, props: &Value) {
        let window = number(props, "/default_generation_settings/n_ctx").filter(|window| *window > 0);
        if self.models.is_empty() && window.is_some() {
            self.models.push("default".to_owned());
        }
        for model in &self.models {
            if let Some(window) = window {
                self.windows.entry(model.clone()).or_insert(window);
            }
        }
        if props.pointer("/modalities/vision") == Some(&Value::Bool(true)) {
            self.seeing.clone_from(&self.models);
        }
        self.slots = number(props, "/total_slots")
            .and_then(|slots| u32::try_from(slots).ok())
            .filter(|slots| *slots > 0);
    }
}

/// Ollama: its models, and the limits of the wanted ones.
pub(super) async fn ollama(
    client: &Client,
    base_url: &str,
    wanted: &[&str],
    within: Duration,
) -> Option<LocalServer> {
    let listed = json(client.get(beside(base_url, "api/tags")), within).await?;
    let rows = listed.get("models")?.as_array()?;
    let models: Vec<String> = rows
        .iter()
        .map(|row| text(row, "name"))
        .filter(|name| talks(name))
        .map(str::to_owned)
        .collect();
    let mut shown: Vec<&String> = wanted.iter().filter_map(|name| named(&models, name)).collect();
    // If a wanted model is missing, the first available one replaces it.
    shown.extend(models.first().filter(|_| shown.len() < wanted.len()));
    shown.sort_unstable();
    shown.dedup();
    let asked = shown.into_iter().take(SHOWN).map(|name| {
        let request = client
            .post(beside(base_url, "api/show"))
            .header("content-type", "application/json")
            .body(json!({ "model": name }).to_string());
        async move { Some((name.clone(), json(request, within).await?)) }
    });
    let told = join_all(asked).await;
    let mut server = LocalServer::default();
    for (name, told) in told.into_iter().flatten() {
        let window = told.get("model_info").and_then(|info| {
            let mut fields = info.as_object()?.iter();
            fields.find_map(|(key, value)| value.as_u64().filter(|_| key.ends_with(".context_length")))
        });
        server.windows.extend(window.map(|window| (name.clone(), window)));
        let abilities = told.get("capabilities").and_then(Value::as_array);
        if abilities.is_some_and(|abilities| abilities.iter().any(|ability| ability == "vision")) {
            server.seeing.push(name);
        }
    }
    server.models = models;
    (!server.models.is_empty()).then_some(server)
}

/// Whether a model can chat; embedding models cannot.
fn talks(name: &str) -> bool {
    !name.is_empty() && !name.contains("embed")
}

/// A bounded JSON answer that arrives in time.
async fn json(request: RequestBuilder, within: Duration) -> Option<Value> {
    let answer = async {
        let mut response = request.send().await.ok()?.error_for_status().ok()?;
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.ok()? {
            body.extend_from_slice(&chunk);
            if body.len() > LONGEST {
                return None;
            }
        }
        serde_json::from_slice(&body).ok()
    };
    timeout(within, answer).await.ok().flatten()
}
