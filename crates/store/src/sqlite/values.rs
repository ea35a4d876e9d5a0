//! Numbers and ids in their SQLite form.

use agentd_protocol::SessionId;

/// A count as a column. A value that does not fit is far beyond any real count.
pub(super) fn column(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// A column as a count. We never write negative values.
pub(super) fn size(value: i64) -> u64 {
    u64::try_from(value).unwrap_or(0)
}

/// An id as 32 hex digits: the key of its row, which can be matched by prefix and suffix.
pub(super) fn uid(session: SessionId) -> String {
    session.to_string().replace('-', "")
}

/// Parses an id of 32 hex digits.
pub(super) fn session_of(uid: &str) -> rusqlite::Result<SessionId> {
    uid.parse().map_err(|error| {
        rusqlite::Error::FromSqlConversionFailure(0, rusqlite::types::Type::Text, Box::new(error))
    })
}
