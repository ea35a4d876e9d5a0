//! The errors of an index.

use agentd_sandbox::SandboxError;
use std::path::PathBuf;

/// Why an index cannot be built or queried.
#[derive(Debug, thiserror::Error)]
pub enum IndexError {
    /// A database error.
    #[error("index error: {0}")]
    Database(#[from] rusqlite::Error),
    /// The working directory cannot be opened.
    #[error(transparent)]
    Workdir(#[from] SandboxError),
    /// A file of the index cannot be created or removed.
    #[error("{path}: {why}")]
    File {
        /// The path.
        path: PathBuf,
        /// The cause.
        why: std::io::Error,
    },
}

impl IndexError {
    /// Whether the index has reached its maximum size.
    pub(crate) fn is_full(&self) -> bool {
        matches!(self, Self::Database(error) if error.sqlite_error_code() == Some(rusqlite::ErrorCode::DiskFull))
    }

    /// Whether the file is damaged or not an index, so that it must be rebuilt.
    pub(crate) fn is_broken(&self) -> bool {
        use rusqlite::ErrorCode::{DatabaseCorrupt, NotADatabase};
        matches!(self, Self::Database(error) if matches!(error.sqlite_error_code(), Some(DatabaseCorrupt | NotADatabase)))
    }
}
