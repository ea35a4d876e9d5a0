//! Why the socket cannot be opened.

use std::path::PathBuf;

/// Why the socket cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    /// Another daemon serves it.
    #[error("another daemon serves the socket {}", path.display())]
    InUse {
        /// The socket.
        path: PathBuf,
    },
    /// Something else is there.
    #[error("{} exists and is not a socket", path.display())]
    NotASocket {
        /// The path.
        path: PathBuf,
    },
    /// Something else is where our socket was.
    #[error("{} is another file now; remove it, and the socket is made again", path.display())]
    Replaced {
        /// The path.
        path: PathBuf,
    },
    /// The system allows no such long path.
    #[error("the socket path {} is too long ({length} bytes, at most {most})", path.display())]
    TooLong {
        /// The path.
        path: PathBuf,
        /// Its bytes.
        length: usize,
        /// The most.
        most: usize,
    },
    /// The system refused.
    #[error("{}: {source}", path.display())]
    Io {
        /// What it was about.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
}
