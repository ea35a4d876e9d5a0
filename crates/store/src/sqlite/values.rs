//! Numbers and ids in their SQLite form.

pub(super) use crate::values::{column, hex as uid, size};
use agentd_protocol::SessionId;

/// Parses an id of 32 hex digits.
pub(super) fn session_of(uid: &str) -> rusqlite::Result<SessionId> {
    uid.parse().map_err(|error| {
        rusqlite::Error::FromSqlConversionFailure(0, rusqlite::types::Type::Text, Box::new(error))
    })
}
