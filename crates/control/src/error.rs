//! Errors of opening the socket.

use std::path::PathBuf;

/// Why the socket cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    /// Another daemon uses it.
    #[error("another daemon serves the socket {}", path.display())]
    InUse {
        /// The socket.
        path: PathBuf,
    },
    /// The path is not a socket.
    #[error("{} exists and is not a socket", path.display())]
    NotASocket {
        /// The path.
        path: PathBuf,
    },
    /// Another file replaced our socket.
    #[error("another file has replaced {}; remove it, and agentd creates the socket again", path.display())]
    Replaced {
        /// The path.
        path: PathBuf,
    },
    /// The path is longer than the system allows.
    #[error("the socket path {} is too long ({length} bytes, at most {most})", path.display())]
    TooLong {
        /// The path.
        path: PathBuf,
        /// Its length in bytes.
        length: usize,
        /// The maximum length.
        most: usize,
    },
    /// The system returned an error.
    #[error("{}: {source}", path.display())]
    Io {
        /// The path concerned.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
}
