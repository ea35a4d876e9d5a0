//! Checks `[index.embedding]`: a provider that supports embeddings, and a model.

use super::Check;
use crate::models::Dialect;

impl Check<'_> {
    pub(super) fn index(&mut self) {
        let embedding = self.settings().index.embedding.clone();
        if embedding.provider.is_empty() {
            return;
        }
        self.named("index.embedding.provider", &embedding.provider, "providers", true);
        let dialect = self
            .settings()
            .providers
            .get(&embedding.provider)
            .map(|provider| provider.dialect);
        let embeds = match dialect {
            None | Some(Dialect::OpenaiChat | Dialect::OpenaiResponses | Dialect::Ollama) => true,
            Some(Dialect::Anthropic | Dialect::Gemini | Dialect::LlamaCompletion | Dialect::Scripted) => {
                false
            }
        };
        self.require(
            embeds,
            "index.embedding.provider",
            "the dialect of this provider does not support embeddings",
            "name a provider with the dialect openai-chat, openai-responses or ollama",
        );
        self.require(
            !embedding.model.trim().is_empty(),
            "index.embedding.model",
            "it is empty",
            "name the model that makes the vectors, such as text-embedding-3-small or nomic-embed-text",
        );
    }
}
