//! What can go wrong with an index.

use agentd_sandbox::SandboxError;
use std::path::PathBuf;

/// Why an index cannot be made or asked.
#[derive(Debug, thiserror::Error)]
pub enum IndexError {
    /// The database does not do what it should.
    #[error("the index does not work: {0}")]
    Database(#[from] rusqlite::Error),
    /// The working directory cannot be opened.
    #[error(transparent)]
    Workdir(#[from] SandboxError),
    /// A file of ours cannot be made or removed.
    #[error("{path}: {why}")]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        why: std::io::Error,
    },
}

impl IndexError {
    /// Whether the index has become as large as it may.
    pub(crate) fn is_full(&self) -> bool {
        matches!(self, Self::Database(error) if error.sqlite_error_code() == Some(rusqlite::ErrorCode::DiskFull))
    }

    /// Whether the file is damaged or something else, so that it has to be made anew.
    pub(crate) fn is_broken(&self) -> bool {
        use rusqlite::ErrorCode::{DatabaseCorrupt, NotADatabase};
        matches!(self, Self::Database(error) if matches!(error.sqlite_error_code(), Some(DatabaseCorrupt | NotADatabase)))
    }
}
