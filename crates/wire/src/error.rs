//! What can be wrong with a frame.

use agentd_protocol::Fault;

/// A frame that cannot be taken or made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// The length says more than the limit.
    #[error("a frame of {length} bytes is over the limit of {limit}")]
    TooLarge {
        /// What the frame wants.
        length: usize,
        /// What it may have.
        limit: usize,
    },
    /// Too many maps and arrays inside each other.
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
    /// Not one MessagePack map, or not the one expected.
    #[error("a frame is malformed: {0}")]
    Malformed(String),
    /// One map, but not a frame of a client. What follows can still be read.
    #[error("the frame is not a request: {why}")]
    Unfit {
        /// The client's number for the answer, where it is one.
        id: Option<u64>,
        /// Which field is wrong.
        why: String,
    },
    /// The value cannot be written as a frame.
    #[error("a frame cannot be encoded: {0}")]
    Encode(String),
}

impl From<WireError> for Fault {
    fn from(error: WireError) -> Self {
        let message = error.to_string();
        match error {
            WireError::TooLarge { limit, .. } => Self::invalid("frame_too_large", message).hint(format!(
                "keep frames below {limit} bytes; send long material in parts"
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
