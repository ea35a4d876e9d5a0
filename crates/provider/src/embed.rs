//! Embeddings: vectors for texts, from servers that speak OpenAI's protocol or Ollama's. One request, with one deadline.

use crate::address::{beside, join};
use crate::body::RequestBody;
use crate::call::Post;
use crate::call::reading::{Accepted, accept, collect};
use crate::dialect::{Framing, codec};
use crate::error::ModelError;
use crate::pacing::Pace;
use crate::resolve::{Lookup, spec_of};
use crate::spec::{Deadlines, ModelSpec};
use agentd_protocol::FailureClass;
use agentd_settings::{Dialect, ModelConfig, Settings};
use futures_util::StreamExt as _;
use reqwest::Client;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

/// The most dimensions of a vector that is accepted.
const MAX_DIMENSIONS: usize = 8_192;

/// An embedding model.
#[derive(Debug, Clone)]
pub struct EmbedClient {
    client: Client,
    spec: Arc<ModelSpec>,
}

impl EmbedClient {
    /// The model of `[index.embedding]`; none if it is not configured.
    ///
    /// # Errors
    /// When something is missing, such as a key; the text says how to fix it.
    pub fn resolve(client: Client, settings: &Settings, env: Lookup<'_>) -> Result<Option<Self>, String> {
        let config = &settings.index.embedding;
        if config.provider.is_empty() {
            return Ok(None);
        }
        let model = ModelConfig {
            provider: config.provider.clone(),
            model: config.model.clone(),
            ..ModelConfig::default()
        };
        let spec = spec_of(settings, "index.embedding", &model, env)?;
        Ok(Some(Self {
            client,
            spec: Arc::new(spec),
        }))
    }

    /// Identifies the vector space: vectors are comparable only under the same name.
    #[must_use]
    pub fn name(&self) -> String {
        format!("{} {}", self.spec.provider, self.spec.model)
    }

    /// Returns one vector for each text, in the same order.
    ///
    /// # Errors
    /// When the request fails or its answer is not usable; the message contains no keys (I8).
    pub async fn embed(&self, texts: &[String], within: Duration) -> Result<Vec<Vec<f32>>, ModelError> {
        let (spec, credential) = (self.spec.as_ref(), self.spec.credentials.first());
        let asked = self.ask(texts, within).await;
        asked.map_err(|error| {
            let error = error.without(credential.map(|credential| &credential.secret));
            error.naming_credential(spec, credential)
        })
    }

    async fn ask(&self, texts: &[String], within: Duration) -> Result<Vec<Vec<f32>>, ModelError> {
        let spec = self.spec.as_ref();
        let deadlines = Deadlines {
            first_byte: within,
            idle: within,
            total: within,
            ..spec.deadlines
        };
        let mut pace = Pace::start(deadlines);
        let own = codec(spec.dialect)
            .map(|codec| codec.headers(spec, spec.credentials.first()))
            .unwrap_or_default();
        let post = Post {
            client: &self.client,
            spec,
            own: &own,
        };
        let (url, body) = request(spec, texts);
        let body = RequestBody::of(vec![body.to_string().into_bytes().into()]);
        let response = post.send(url, body, &pace).await?;
        let (Accepted::Stream(response) | Accepted::Whole(response)) =
            accept(response, false, Framing::Events, &pace).await?;
        let body = collect(response.bytes_stream().boxed(), &mut pace).await?;
        vectors(&body, texts.len())
    }
}

impl ModelError {
    /// Whether the same request may succeed later.
    #[must_use]
    pub const fn is_passing(&self) -> bool {
        matches!(
            self.class,
            FailureClass::RateLimited | FailureClass::Overloaded | FailureClass::Transient
        )
    }
}

/// The URL and the body.
fn request(spec: &ModelSpec, texts: &[String]) -> (String, Value) {
    if spec.dialect == Dialect::Ollama {
        let body = json!({ "model": spec.model, "input": texts, "truncate": true });
        return (beside(&spec.base_url, "api/embed"), body);
    }
    let body = json!({ "model": spec.model, "input": texts, "encoding_format": "float" });
    (join(&spec.base_url, "embeddings"), body)
}

/// Parses either form: `{"data": [{"index", "embedding"}]}` or `{"embeddings": [..]}`.
fn vectors(body: &[u8], wanted: usize) -> Result<Vec<Vec<f32>>, ModelError> {
    let odd = |what: &str| ModelError::new(FailureClass::InvalidRequest, format!("the embeddings {what}"));
    let answer: Value = serde_json::from_slice(body)
        .map_err(|error| ModelError::transient(format!("the answer is not JSON: {error}")))?;
    let mut found: Vec<(u64, Vec<f32>)> = Vec::new();
    if let Some(rows) = answer.get("data").and_then(Value::as_array) {
        for (at, row) in (0_u64..).zip(rows) {
            let at = row.get("index").and_then(Value::as_u64).unwrap_or(at);
            found.push((
                at,
                numbers(row.get("embedding")).ok_or_else(|| odd("are not numbers"))?,
            ));
        }
    } else if let Some(rows) = answer.get("embeddings").and_then(Value::as_array) {
        for (at, row) in (0_u64..).zip(rows) {
            found.push((at, numbers(Some(row)).ok_or_else(|| odd("are not numbers"))?));
        }
    } else {
        return Err(odd("are missing from the answer"));
    }
    found.sort_by_key(|(at, _)| *at);
    let in_order = (0_u64..).zip(&found).all(|(at, (index, _))| at == *index);
    if found.len() != wanted || !in_order {
        return Err(odd("do not match the texts one to one"));
    }
    Ok(found.into_iter().map(|(_, vector)| vector).collect())
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "vectors are kept in single precision"
)]
fn numbers(list: Option<&Value>) -> Option<Vec<f32>> {
    let list = list?
        .as_array()
        .filter(|list| (1..=MAX_DIMENSIONS).contains(&list.len()))?;
    list.iter().map(|x| Some(x.as_f64()? as f32)).collect()
}

#[cfg(test)]
mod tests;
