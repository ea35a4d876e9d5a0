//! The messages between the daemon and a warden: a length, then JSON. Descriptors travel with the length.

use crate::bounds::{Bounds, Exceeded};
use crate::confinement::Confinement;
use crate::error::SandboxError;
use crate::git_refusals::GitRefusals;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use std::path::PathBuf;

/// The longest message in bytes.
pub(crate) const MAX_FRAME: usize = 1 << 20;

/// A message to the warden.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Request {
    /// What commands may use; the first message. The timer at whose end they are killed travels along, if there is one. `places` are where they write; `shared` is an in-memory file system that
    /// only they have.
    Bind {
        bounds: Bounds,
        places: Vec<PathBuf>,
        shared: Option<PathBuf>,
        /// The environment of every command; its own request may add to it.
        environment: Vec<(String, String)>,
    },
    /// Build the sandbox, before any command.
    Confine {
        walls: Box<Confinement>,
        workdir: PathBuf,
        /// Whether the session has a network proxy.
        network: bool,
    },
    /// Start a command; its two or three descriptors (stdout, stderr, and stdin if it has one) travel along.
    Run {
        id: u64,
        argv: Vec<String>,
        cwd: PathBuf,
        env: Vec<(String, String)>,
        /// The three are a terminal, which becomes its controlling terminal.
        terminal: bool,
    },
    /// Stop a command and all its descendants: TERM and 500 ms later KILL, or KILL at once.
    Kill { id: u64, now: bool },
}

/// A message from the warden.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Report {
    /// The sandbox is built; the version of Landlock in use.
    Confined { landlock_abi: u32 },
    /// The sandbox cannot be built.
    NotConfined { message: String },
    /// The command runs.
    Started { id: u64, pid: u32 },
    /// The command could not be started.
    Refused {
        id: u64,
        errno: Option<i32>,
        message: String,
    },
    /// The command ended.
    Exited {
        id: u64,
        code: Option<i32>,
        signal: Option<i32>,
        exceeded: Option<Exceeded>,
        #[serde(default, skip_serializing_if = "GitRefusals::is_empty")]
        refused: GitRefusals,
    },
    /// The last message: none of the warden's descendants is left.
    Ended,
    /// What an earlier command had left behind exceeded a bound while no command ran, and was killed.
    Exceeded { exceeded: Exceeded },
}

/// Encodes a message with its length in front.
pub(crate) fn encode<T: Serialize>(message: &T) -> Result<Vec<u8>, SandboxError> {
    let body = serde_json::to_vec(message).map_err(|error| SandboxError::Message(error.to_string()))?;
    if body.len() > MAX_FRAME {
        return Err(SandboxError::CommandTooLong {
            bytes: body.len(),
            max: MAX_FRAME,
        });
    }
    let length = u32::try_from(body.len()).map_err(|error| SandboxError::Message(error.to_string()))?;
    let mut frame = length.to_be_bytes().to_vec();
    frame.extend_from_slice(&body);
    Ok(frame)
}

/// The length of the body after these four bytes.
pub(crate) fn body_length(header: [u8; 4]) -> Result<usize, SandboxError> {
    let length = usize::try_from(u32::from_be_bytes(header)).unwrap_or(usize::MAX);
    if length > MAX_FRAME {
        Err(SandboxError::Message(format!(
            "a frame of {length} bytes is too long"
        )))
    } else {
        Ok(length)
    }
}

/// Decodes the body of a message.
pub(crate) fn decode<T: DeserializeOwned>(body: &[u8]) -> Result<T, SandboxError> {
    serde_json::from_slice(body).map_err(|error| SandboxError::Message(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_come_back_as_they_were() {
        let request = Request::Run {
            id: 7,
            argv: vec!["bash".to_owned(), "-c".to_owned(), "echo \u{fc}".to_owned()],
            cwd: PathBuf::from("/w"),
            env: vec![("PWD".to_owned(), "/w".to_owned())],
            terminal: true,
        };
        let frame = encode(&request).unwrap();
        let (header, body) = frame.split_first_chunk::<4>().unwrap();
        assert_eq!(body_length(*header).unwrap(), body.len());
        assert_eq!(decode::<Request>(body).unwrap(), request);
    }

    #[test]
    fn a_message_that_is_too_long_is_refused_on_both_sides() {
        let huge = Request::Run {
            id: 1,
            argv: vec!["x".repeat(MAX_FRAME)],
            cwd: PathBuf::new(),
            env: Vec::new(),
            terminal: false,
        };
        assert!(matches!(encode(&huge), Err(SandboxError::CommandTooLong { .. })));
        assert!(matches!(
            body_length(u32::MAX.to_be_bytes()),
            Err(SandboxError::Message(_))
        ));
    }
}
