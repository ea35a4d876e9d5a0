//! Vectors from a model provider.

use crate::embedder::{Embedder, Unembedded};
use agentd_provider::{EmbedClient, ModelError};
use agentd_settings::EmbeddingConfig;
use async_trait::async_trait;
use std::time::Duration;

/// A provider's model that makes vectors.
#[derive(Debug, Clone)]
pub struct RemoteEmbedder {
    client: EmbedClient,
    within: Duration,
}

impl RemoteEmbedder {
    /// Creates the embedder with its time limit per request.
    #[must_use]
    pub fn new(client: EmbedClient, config: &EmbeddingConfig) -> Self {
        Self {
            client,
            within: Duration::from_millis(config.timeout_ms),
        }
    }
}

#[async_trait]
impl Embedder for RemoteEmbedder {
    fn name(&self) -> String {
        self.client.name()
    }

    async fn embed(&self, texts: Vec<String>) -> Result<Vec<Vec<f32>>, Unembedded> {
        let again = |error: ModelError| Unembedded {
            again: error.is_passing(),
            why: error.message,
        };
        self.client.embed(&texts, self.within).await.map_err(again)
    }
}
