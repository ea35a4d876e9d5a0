//! The port to whoever makes vectors of texts.

use async_trait::async_trait;
use std::fmt::Debug;

/// Why there are no vectors.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unembedded {
    /// In words, without keys.
    pub why: String,
    /// Whether the same request may go well later.
    pub again: bool,
}

/// Makes vectors. Every answer comes in bounded time.
#[async_trait]
pub trait Embedder: Debug + Send + Sync {
    /// What makes its vectors comparable: others with another name are of no use.
    fn name(&self) -> String;
    /// One vector for each text, in their order.
    async fn embed(&self, texts: Vec<String>) -> Result<Vec<Vec<f32>>, Unembedded>;
}
