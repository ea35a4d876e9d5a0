//! Opens the embedded backend that a URL names.

use crate::store::SqliteStore;
use agentd_store::{Backend, MemoryStore, Options, StoreError};
use std::path::Path;
use std::sync::Arc;

/// Opens `sqlite:PATH` (relative to the data directory) or `memory:`.
///
/// # Errors
/// The URL is invalid, the store is in use, a newer agentd wrote it, or it cannot be opened.
pub fn open(url: &str, data_dir: &Path, options: Options) -> Result<Arc<dyn Backend>, StoreError> {
    let Some((scheme, rest)) = url.split_once(':') else {
        return Err(StoreError::BadUrl { url: url.to_owned() });
    };
    match scheme {
        "sqlite" if !rest.trim_start_matches("//").is_empty() => {
            let file = data_dir.join(rest.strip_prefix("//").unwrap_or(rest));
            Ok(Arc::new(SqliteStore::open(&file, data_dir, options)?))
        }
        "memory" => Ok(Arc::new(MemoryStore::new(options.clock))),
        "postgres" | "postgresql" => Err(StoreError::NotEmbedded {
            scheme: scheme.to_owned(),
        }),
        _ => Err(StoreError::BadUrl { url: url.to_owned() }),
    }
}
