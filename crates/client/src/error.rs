//! Why a call did not come back with an answer.

use agentd_protocol::Fault;
use agentd_wire::WireError;
use std::path::PathBuf;
use std::time::Duration;

/// Why a call did not come back with an answer.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// Nobody listens, or we may not connect.
    #[error("no daemon answers on {}: {why}", path.display())]
    Unreachable {
        /// The socket.
        path: PathBuf,
        /// What the system says.
        why: String,
    },
    /// The daemon refused the request, or the connection.
    #[error("{0}")]
    Refused(Fault),
    /// The connection was lost, maybe after the daemon took the request.
    #[error("the connection to the daemon was lost: {0}")]
    Lost(String),
    /// No answer in time.
    #[error("the daemon did not answer {method} within {} ms", within.as_millis())]
    Timeout {
        /// The method.
        method: String,
        /// How long we waited.
        within: Duration,
    },
    /// A frame of ours cannot be sent, or one of the daemon's cannot be read.
    #[error("{0}")]
    Wire(#[from] WireError),
    /// The answer is not what the method promises.
    #[error("the answer to {method} cannot be read: {why}")]
    Answer {
        /// The method.
        method: String,
        /// What is wrong.
        why: String,
    },
}

impl From<ClientError> for Fault {
    fn from(error: ClientError) -> Self {
        let message = error.to_string();
        match error {
            ClientError::Unreachable { .. } => Self::unavailable("daemon_unreachable", message)
                .hint("start it with `agentd`, or name its socket"),
            ClientError::Refused(fault) => fault,
            ClientError::Lost(_) => Self::unavailable("connection_lost", message),
            ClientError::Timeout { .. } => Self::timeout("no_answer", message),
            ClientError::Wire(error) => error.into(),
            ClientError::Answer { .. } => Self::version("bad_answer", message)
                .hint("the daemon is of another version; `agentctl version` shows both"),
        }
    }
}
