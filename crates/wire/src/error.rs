//! The errors of frames.

use agentd_protocol::Fault;

/// Why a frame cannot be read or written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// The announced length is over the limit.
    #[error("a frame of {length} bytes exceeds the limit of {limit}")]
    TooLarge {
        /// The length of the frame.
        length: usize,
        /// The limit.
        limit: usize,
    },
    /// Maps and arrays are nested too deeply.
    #[error("a frame is nested deeper than {limit} levels")]
    TooDeep {
        /// The limit.
        limit: usize,
    },
    /// Too many values.
    #[error("a frame holds more than {limit} values")]
    TooManyItems {
        /// The limit.
        limit: usize,
    },
    /// The body is not a single MessagePack map, or not the expected one.
    #[error("a frame is malformed: {0}")]
    Malformed(String),
    /// The body is a single map, but not a frame of a client. The following frames can still be read.
    #[error("the frame is not a request: {why}")]
    Unfit {
        /// The client's request id, if it is valid.
        id: Option<u64>,
        /// The wrong field.
        why: String,
    },
    /// The value cannot be serialized as a frame.
    #[error("cannot encode a frame: {0}")]
    Encode(String),
}

impl From<WireError> for Fault {
    fn from(error: WireError) -> Self {
        let message = error.to_string();
        match error {
            WireError::TooLarge { limit, .. } => Self::invalid("frame_too_large", message).hint(format!(
                "keep frames below {limit} bytes; send long content in parts"
            )),
            WireError::TooDeep { .. } => Self::invalid("frame_too_deep", message),
            WireError::TooManyItems { .. } => Self::invalid("frame_too_many_values", message),
            WireError::Malformed(_) => Self::invalid("malformed_frame", message)
                .hint("a frame is a 4-byte big-endian length and one MessagePack map with named keys"),
            WireError::Unfit { .. } => Self::invalid("bad_frame", message)
                .hint("a request is {id: 1, method: \"session.list\", params: {}}"),
            WireError::Encode(_) => Self::internal("encode_failed", message),
        }
    }
}
