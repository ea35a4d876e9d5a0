//! Converts the loop's replies to the answers of the methods.

use agentd_protocol::{Done, Fault, InputId, Sent, Seq};
use agentd_turn::Reply;

/// Converts a reply to the answer that a method promises.
pub(crate) trait Answers {
    /// The first input, and the head of the log.
    fn created(self) -> Result<(Option<InputId>, Seq), Fault>;
    /// The input.
    fn sent(self) -> Result<Sent, Fault>;
    /// The head of the log.
    fn done(self) -> Done;
}

impl Answers for Reply {
    fn created(self) -> Result<(Option<InputId>, Seq), Fault> {
        match self {
            Self::Created { input, seq } => Ok((input, seq)),
            Self::Sent { .. } | Self::Done { .. } | Self::Ended { .. } => Err(wrong("session.create")),
        }
    }

    fn sent(self) -> Result<Sent, Fault> {
        match self {
            Self::Sent { input, seq } => Ok(Sent {
                input,
                seq,
                said: None,
                notices: Vec::new(),
            }),
            Self::Created { .. } | Self::Done { .. } | Self::Ended { .. } => Err(wrong("input.send")),
        }
    }

    fn done(self) -> Done {
        match self {
            Self::Created { seq, .. } | Self::Sent { seq, .. } | Self::Done { seq } => Done::at(seq),
            Self::Ended { seq } => Done { seq, pending: true },
        }
    }
}

fn wrong(method: &str) -> Fault {
    Fault::internal(
        "wrong_reply",
        format!("the session loop's reply does not match {method}"),
    )
}
