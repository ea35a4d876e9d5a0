//! The ways in which a call can fail.

use agentd_protocol::Fault;
use agentd_wire::WireError;
use std::time::Duration;

/// The reason why a call failed.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// No daemon listens, or access is denied.
    #[error("no daemon answers on {address}: {why}")]
    Unreachable {
        /// The socket, or the host and port.
        address: String,
        /// The system's error message.
        why: String,
    },
    /// A server answers, but its certificate is not accepted.
    #[error("the certificate of {address} is not accepted: {why}")]
    Untrusted {
        /// The host and port.
        address: String,
        /// The error in the certificate.
        why: String,
    },
    /// The daemon refused the request, or the connection.
    #[error("{0}")]
    Refused(Fault),
    /// The connection was lost, possibly after the daemon received the request.
    #[error("the connection to the daemon was lost: {0}")]
    Lost(String),
    /// The daemon did not answer in time.
    #[error("the daemon did not answer {method} within {} ms", within.as_millis())]
    Timeout {
        /// The method.
        method: String,
        /// The time limit of the call.
        within: Duration,
    },
    /// A frame could not be encoded, or a received one not decoded.
    #[error("{0}")]
    Wire(#[from] WireError),
    /// The answer does not match the method's type, or the parameters cannot be serialized.
    #[error("cannot read the answer to {method}: {why}")]
    Answer {
        /// The method.
        method: String,
        /// The conversion error.
        why: String,
    },
}

impl From<ClientError> for Fault {
    fn from(error: ClientError) -> Self {
        let message = error.to_string();
        match error {
            ClientError::Unreachable { .. } => Self::unavailable("daemon_unreachable", message)
                .hint("start the daemon with `agentd`, or name its socket"),
            ClientError::Untrusted { .. } => Self::unavailable("untrusted_certificate", message).hint(
                "if the daemon's certificate is signed by an authority of your own, name its file: \
                 agentctl context add NAME ADDRESS --ca-file FILE",
            ),
            ClientError::Refused(fault) => fault,
            ClientError::Lost(_) => Self::unavailable("connection_lost", message),
            ClientError::Timeout { .. } => Self::timeout("no_answer", message),
            ClientError::Wire(error) => error.into(),
            ClientError::Answer { .. } => Self::version("bad_answer", message)
                .hint("the daemon has a different version; `agentctl version` shows both"),
        }
    }
}
