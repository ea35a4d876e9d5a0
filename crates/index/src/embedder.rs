//! The port to the source of text vectors.

use async_trait::async_trait;
use std::fmt::Debug;

/// Why there are no vectors.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unembedded {
    /// The reason as text, without keys.
    pub why: String,
    /// Whether a retry may succeed.
    pub again: bool,
}

/// Makes vectors. Every call ends within a bounded time.
#[async_trait]
pub trait Embedder: Debug + Send + Sync {
    /// The name of the vector space: only vectors with the same name are comparable.
    fn name(&self) -> String;
    /// One vector per text, in the same order.
    async fn embed(&self, texts: Vec<String>) -> Result<Vec<Vec<f32>>, Unembedded>;
}
