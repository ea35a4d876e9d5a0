//! What an error of the server means for the caller.

use agentd_store::StoreError;
use tokio_postgres::Error;
use tokio_postgres::error::SqlState;

/// The consequence of a failed statement.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The connection is gone or useless; the statement may have been committed.
    Lost(String),
    /// Nothing was written; the same statement may succeed later.
    Later(&'static str),
    /// Nothing was written: the server has no space.
    Full,
    /// Nothing was written: the server refuses the statement.
    Refused(String),
}

/// The server's message, or the cause of a failed connection. Never the URL (I8).
pub(crate) fn words(error: &Error) -> String {
    match (error.as_db_error(), std::error::Error::source(error)) {
        (Some(said), _) => said.message().to_owned(),
        (None, Some(cause)) => format!("{error}: {cause}"),
        (None, None) => error.to_string(),
    }
}

pub(crate) fn failure(error: &Error) -> Failure {
    let Some(code) = error.code() else {
        // Either the connection failed, or a value does not fit its type; a new connection is right for both.
        return Failure::Lost(words(error));
    };
    if *code == SqlState::DISK_FULL {
        Failure::Full
    } else if [
        SqlState::QUERY_CANCELED,
        SqlState::LOCK_NOT_AVAILABLE,
        SqlState::T_R_DEADLOCK_DETECTED,
        SqlState::T_R_SERIALIZATION_FAILURE,
        SqlState::OUT_OF_MEMORY,
        SqlState::TOO_MANY_CONNECTIONS,
    ]
    .contains(code)
    {
        Failure::Later("the database did not complete the statement in time")
    } else if code.code().starts_with("57P") || *code == SqlState::READ_ONLY_SQL_TRANSACTION {
        Failure::Lost(words(error))
    } else {
        Failure::Refused(words(error))
    }
}

impl From<Failure> for StoreError {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Lost(why) => Self::Server(why),
            Failure::Later(why) => Self::Busy(why),
            Failure::Full => Self::Full,
            Failure::Refused(why) => Self::Refused(why),
        }
    }
}

/// For reads, and for changes that may safely be repeated.
pub(crate) fn store_error(error: &Error) -> StoreError {
    failure(error).into()
}
