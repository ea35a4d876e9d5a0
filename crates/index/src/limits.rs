//! The limits of indexing.

use agentd_settings::IndexConfig;
use std::time::Duration;

/// The limits of one index and of its passes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Number of files.
    pub max_files: u64,
    /// Bytes of one file.
    pub max_file_bytes: u64,
    /// Bytes of all files.
    pub max_bytes: u64,
    /// Bytes of the index on disk.
    pub max_index_bytes: u64,
    /// Number of indexes to keep.
    pub keep: usize,
    /// The share of one processor, in percent.
    pub share: u32,
    /// Texts per request for vectors.
    pub batch: u32,
    /// Retries of such a request.
    pub retries: u32,
    /// The maximum age of an index at a search.
    pub refresh: Duration,
    /// How long a search waits for the first index.
    pub wait: Duration,
}

impl From<&IndexConfig> for Limits {
    fn from(config: &IndexConfig) -> Self {
        Self {
            max_files: config.max_files.into(),
            max_file_bytes: config.max_file_bytes,
            max_bytes: config.max_bytes,
            max_index_bytes: config.max_index_bytes,
            keep: usize::try_from(config.keep).unwrap_or(usize::MAX),
            share: config.share.clamp(1, 100),
            batch: config.embedding.batch.max(1),
            retries: config.embedding.retries,
            refresh: Duration::from_millis(config.refresh_ms),
            wait: Duration::from_millis(config.wait_ms),
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self::from(&IndexConfig::default())
    }
}
