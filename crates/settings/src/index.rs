//! `[index]`: the search index of source trees.

use serde::{Deserialize, Serialize};

/// When working directories are indexed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Indexing {
    /// From a session's first search.
    #[default]
    Auto,
    /// From a session's first tool call; then kept up to date.
    On,
    /// Never: no search.
    Off,
}

/// `[index]`: the index behind SemanticSearch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IndexConfig {
    /// When working directories are indexed.
    pub enabled: Indexing,
    /// The maximum number of files in one working directory.
    pub max_files: u32,
    /// The maximum size of a file in bytes.
    pub max_file_bytes: u64,
    /// Bytes of all files of one working directory.
    pub max_bytes: u64,
    /// Bytes of one index on disk.
    pub max_index_bytes: u64,
    /// The number of indexes to keep.
    pub keep: u32,
    /// The share of one processor that indexing may use, in percent.
    pub share: u32,
    /// A search updates an index that is older than this.
    pub refresh_ms: u64,
    /// How long a search waits for the first index of its directory.
    pub wait_ms: u64,
    /// `[index.embedding]`.
    pub embedding: EmbeddingConfig,
}

/// `[index.embedding]`: the source of text vectors. Without a provider there are none.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EmbeddingConfig {
    /// The name of a provider; empty: full-text search only.
    pub provider: String,
    /// The provider's name for the model.
    pub model: String,
    /// Texts per request.
    pub batch: u32,
    /// Time limit of one request.
    pub timeout_ms: u64,
    /// Attempts after the first.
    pub retries: u32,
}

#[cfg(test)]
mod tests {
    use crate::load::{Sources, load};

    fn problems(text: &str) -> String {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("config.toml");
        std::fs::write(&file, text).unwrap();
        let sources = Sources {
            file: Some(file),
            ..Sources::default()
        };
        load(&sources).map_or_else(|error| error.to_string(), |_| String::new())
    }

    #[test]
    fn an_embedding_needs_a_provider_that_embeds_and_a_model() {
        let with = |provider: &str, model: &str| {
            problems(&format!(
                "[index.embedding]\nprovider = \"{provider}\"\nmodel = \"{model}\"\n"
            ))
        };
        assert_eq!(with("openai", "m"), "");
        assert_eq!(with("ollama", "m"), "");
        assert_eq!(with("", ""), "");
        assert!(with("anthropic", "m").contains("does not support embeddings"));
        assert!(with("olama", "m").contains("did you mean \"ollama\""));
        assert!(with("ollama", " ").contains("index.embedding.model"));
    }

    #[test]
    fn numbers_have_a_range() {
        assert_eq!(problems("[index]\nshare = 100\nwait_ms = 0\n"), "");
        assert!(problems("[index]\nshare = 0\n").contains("index.share"));
        assert!(problems("[index]\nmax_file_bytes = 2000001\n").contains("index.max_file_bytes"));
        assert!(problems("[index]\nenabled = \"maybe\"\n").contains("index.enabled"));
    }
}
