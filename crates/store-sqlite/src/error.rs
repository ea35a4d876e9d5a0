//! Errors inside this crate: SQLite's, until they leave it as [`StoreError::Database`].

use crate::salvage;
use agentd_store::StoreError;

/// An error of SQLite or of the store.
#[derive(Debug)]
pub(crate) enum Error {
    Sqlite(rusqlite::Error),
    Store(StoreError),
}

impl From<rusqlite::Error> for Error {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

impl From<StoreError> for Error {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<serde_json::Error> for Error {
    fn from(error: serde_json::Error) -> Self {
        Self::Store(error.into())
    }
}

impl From<Error> for StoreError {
    fn from(error: Error) -> Self {
        match error {
            Error::Sqlite(error) if salvage::is_unreadable(&error) => Self::Damaged(error.to_string()),
            Error::Sqlite(error) => Self::Database(Box::new(error)),
            Error::Store(error) => error,
        }
    }
}
