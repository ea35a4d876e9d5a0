//! Numbers and ids in their SQLite form.

use agentd_protocol::SessionId;
pub(crate) use agentd_store::backend::{column, hex as uid, size};

/// Parses an id of 32 hex digits.
pub(crate) fn session_of(uid: &str) -> rusqlite::Result<SessionId> {
    uid.parse().map_err(|error| {
        rusqlite::Error::FromSqlConversionFailure(0, rusqlite::types::Type::Text, Box::new(error))
    })
}
