//! Answers to commands, and the form in which an idempotency key stores them.

use agentd_protocol::{ApprovalId, Created, Decided, Done, Fault, Sent, SessionId};
use agentd_store::IdempotencyKey;
use agentd_turn::{Command, Reply};

/// The part of a command that its answer needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asked {
    /// A new session.
    Create,
    /// An input.
    Send,
    /// An answer to this approval.
    Decide(ApprovalId),
    /// Anything else.
    Other,
}

impl Asked {
    /// The part that this command needs.
    #[must_use]
    pub(crate) const fn of(command: &Command) -> Self {
        match command {
            Command::Create { .. } => Self::Create,
            Command::Send(_) => Self::Send,
            Command::Decide { approval, .. } => Self::Decide(*approval),
            Command::CancelInput(_)
            | Command::CancelTurn { .. }
            | Command::Pause { .. }
            | Command::Resume { .. }
            | Command::Close { .. }
            | Command::ChildEnded { .. }
            | Command::Transfer(_)
            | Command::Tell
            | Command::Follow
            | Command::Rework(_)
            | Command::Compact
            | Command::Summarize
            | Command::Update { .. } => Self::Other,
        }
    }

    /// Fills in the answer that a repetition of the command gets, unless the caller already did.
    pub(crate) fn keep(self, key: &mut IdempotencyKey, session: SessionId, name: &str, reply: &Reply) {
        if !key.answer.is_empty() {
            return;
        }
        let json = match (self, reply) {
            (_, Reply::Created { input, seq }) => {
                let name = name.to_owned();
                serde_json::to_string(&Created {
                    session,
                    name,
                    input: *input,
                    seq: *seq,
                    notices: Vec::new(),
                })
            }
            (_, Reply::Sent { input, seq }) => serde_json::to_string(&Sent {
                input: *input,
                seq: *seq,
                said: None,
                notices: Vec::new(),
            }),
            (Self::Decide(approval), Reply::Done { seq }) => serde_json::to_string(&Decided {
                approval,
                session,
                seq: *seq,
            }),
            (_, Reply::Done { seq } | Reply::Ended { seq }) => serde_json::to_string(&Done::at(*seq)),
        };
        key.answer = json.unwrap_or_default();
    }
}

/// The answer to a command whose key was taken while the command was in flight.
///
/// # Errors
/// The key was used for another command, or the caller must retry to get the answer.
pub fn taken(answer: &str, same_body: bool) -> Result<Reply, Fault> {
    if !same_body {
        return Err(
            Fault::conflict("key_reused", "the idempotency key was used for another command")
                .hint("use a new key for a new command"),
        );
    }
    // A created session has a different id from this one; only the stored answer, found by its key, names it.
    if serde_json::from_str::<Created>(answer).is_ok() {
        return Err(again("the same session was created a moment ago"));
    }
    if let Ok(sent) = serde_json::from_str::<Sent>(answer) {
        return Ok(Reply::Sent {
            input: sent.input,
            seq: sent.seq,
        });
    }
    match serde_json::from_str::<Done>(answer) {
        Ok(done) => Ok(Reply::Done { seq: done.seq }),
        Err(_) => Err(again("the same command was carried out a moment ago")),
    }
}

/// A fault that a retry resolves.
pub(crate) fn again(what: &str) -> Fault {
    Fault::unavailable("retry", what).hint("retry with the same key")
}

#[cfg(test)]
mod tests {
    use super::*;
    use agentd_protocol::{InputId, Principal};

    fn key(answer: &str) -> IdempotencyKey {
        IdempotencyKey {
            principal: Principal::user("ana"),
            key: "k".into(),
            method: "input.send".into(),
            body_hash: [0; 32],
            answer: answer.into(),
        }
    }

    #[test]
    fn a_kept_answer_is_the_answer_of_the_repetition() {
        let reply = Reply::Sent {
            input: InputId::from_parts(5, [7; 10]),
            seq: 4,
        };
        let mut key = key("");
        Asked::Send.keep(&mut key, SessionId::NIL, "x", &reply);
        assert_eq!(taken(&key.answer, true), Ok(reply));
        assert_eq!(taken(&key.answer, false).unwrap_err().code, "key_reused");
    }

    #[test]
    fn an_answer_that_the_asker_chose_stays() {
        let mut key = key("{}");
        Asked::Other.keep(&mut key, SessionId::NIL, "x", &Reply::Done { seq: 9 });
        assert_eq!(key.answer, "{}");
    }

    #[test]
    fn a_session_created_twice_is_asked_for_again() {
        let mut key = key("");
        Asked::Create.keep(
            &mut key,
            SessionId::NIL,
            "x",
            &Reply::Created {
                input: Some(InputId::NIL),
                seq: 1,
            },
        );
        assert_eq!(taken(&key.answer, true).unwrap_err().code, "retry");
    }
}
