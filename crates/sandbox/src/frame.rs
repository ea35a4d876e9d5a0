//! What the daemon and a warden say to each other: a length, then JSON. Descriptors travel with the length.

use crate::bounds::{Bounds, Exceeded};
use crate::confinement::Confinement;
use crate::error::SandboxError;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use std::path::PathBuf;

/// Longest message in bytes.
pub(crate) const MAX_FRAME: usize = 1 << 20;

/// To the warden.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Request {
    /// What commands may use; the first word. `places` are where they write; `shared` is a file system in
    /// memory that only they have.
    Bind {
        bounds: Bounds,
        places: Vec<PathBuf>,
        shared: Option<PathBuf>,
        /// What every command sees, and nothing besides it but what its own request has.
        environment: Vec<(String, String)>,
    },
    /// Build the walls, before any command.
    Confine {
        walls: Confinement,
        workdir: PathBuf,
        /// There is a way to the network.
        network: bool,
    },
    /// Start a command; two or three descriptors (its stdout, its stderr, and its stdin if it has one) come with it.
    Run {
        id: u64,
        argv: Vec<String>,
        cwd: PathBuf,
        env: Vec<(String, String)>,
        /// The three are a terminal, which becomes its own.
        terminal: bool,
    },
    /// Stop a command and all that descends from it: TERM and 500 ms later KILL, or KILL at once.
    Kill { id: u64, now: bool },
}

/// From the warden.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Report {
    /// The walls stand; the version of Landlock in use.
    Confined { landlock_abi: u32 },
    /// The walls cannot be built.
    NotConfined { message: String },
    /// It runs.
    Started { id: u64, pid: u32 },
    /// It could not be started.
    Refused {
        id: u64,
        errno: Option<i32>,
        message: String,
    },
    /// It ended.
    Exited {
        id: u64,
        code: Option<i32>,
        signal: Option<i32>,
        exceeded: Option<Exceeded>,
    },
    /// The last word: nothing that it started is left.
    Ended,
    /// No command ran, but what one had left behind; it was killed.
    Exceeded { exceeded: Exceeded },
}

/// A message with its length in front.
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

/// The length of the body that follows these four bytes.
pub(crate) fn body_length(header: [u8; 4]) -> Result<usize, SandboxError> {
    let length = usize::try_from(u32::from_be_bytes(header)).unwrap_or(usize::MAX);
    if length > MAX_FRAME {
        Err(SandboxError::Message(format!("{length} bytes announced")))
    } else {
        Ok(length)
    }
}

/// The message of a body.
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
