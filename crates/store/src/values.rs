//! Numbers and ids as columns.

use agentd_protocol::SessionId;

/// A count as a column. A value that does not fit is far beyond any real count.
#[must_use]
pub fn column(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// A column as a count. We never write negative values.
#[must_use]
pub fn size(value: i64) -> u64 {
    u64::try_from(value).unwrap_or(0)
}

/// An id as 32 hex digits: the key of its row, which can be matched by prefix and suffix.
#[must_use]
pub fn hex(session: SessionId) -> String {
    session.to_string().replace('-', "")
}
