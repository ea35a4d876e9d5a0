//! What can go wrong between a tool and the operating system.

use agentd_protocol::sandbox::Refusal;
use std::io;
use std::path::PathBuf;

/// A refusal or a failure. The texts are written for models, too.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    /// Commands cannot be confined as the settings ask.
    #[error("cannot run commands: {message}; {fix}")]
    Unsupported {
        /// The missing feature.
        message: String,
        /// The remedy.
        fix: String,
    },
    /// The warden could not be started.
    #[error("cannot start the process warden {exe}: {source}")]
    WardenStart {
        /// The program.
        exe: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The warden and every process under it are gone.
    #[error("the process warden ended, with all processes that it had started")]
    WardenGone,
    /// The warden did not answer in time.
    #[error("the process warden did not answer within {within_ms} ms")]
    WardenSlow {
        /// The deadline.
        within_ms: u64,
    },
    /// A command could not be started.
    #[error("cannot start {program}: {message}")]
    CommandStart {
        /// The program to start.
        program: String,
        /// The operating system's number for the reason.
        errno: Option<i32>,
        /// Why.
        message: String,
    },
    /// A message between the daemon and a warden was invalid.
    #[error("invalid message between the daemon and the process warden: {0}")]
    Message(String),
    /// A command line is too long to pass on.
    #[error("the command has {bytes} bytes, and the limit is {max}: write it to a file and run the file")]
    CommandTooLong {
        /// Its length.
        bytes: usize,
        /// The limit.
        max: usize,
    },
    /// The working directory cannot be used.
    #[error("cannot open the working directory {path}: {source}")]
    Workdir {
        /// The directory.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Another directory took the place of the working directory.
    #[error(
        "a link to {real} replaced the working directory {path} after the session began; nothing was done. Restore the \
         directory, or create a session in {real}"
    )]
    Replaced {
        /// The original path.
        path: PathBuf,
        /// The target of the link.
        real: PathBuf,
    },
    /// The path leaves the working directory.
    #[error(
        "{path} is outside the working directory {root}: use a path inside it, for example one relative to it"
    )]
    Outside {
        /// The path as given.
        path: String,
        /// The working directory.
        root: PathBuf,
    },
    /// The path is invalid.
    #[error("{path:?} is not a usable path: {why}")]
    BadPath {
        /// The path as given.
        path: String,
        /// Why not.
        why: &'static str,
    },
    /// Nothing exists at the path.
    #[error("{path} does not exist")]
    NotFound {
        /// The path.
        path: String,
    },
    /// Something is already there.
    #[error("{path} already exists")]
    Exists {
        /// The path.
        path: String,
    },
    /// It is not of the requested kind.
    #[error("{path} is {found}, not {wanted}")]
    WrongKind {
        /// The path.
        path: String,
        /// The actual kind.
        found: &'static str,
        /// The requested kind.
        wanted: &'static str,
    },
    /// A symbolic link is in the way of a write.
    #[error("{path} is a symbolic link, or leads through one; use the real path")]
    Symlink {
        /// The path.
        path: String,
    },
    /// Other names share the file; a write would change those, too.
    #[error(
        "{path} has {links} hard links; changing it would change a file that may be outside the working directory"
    )]
    Linked {
        /// The path.
        path: String,
        /// The number of names.
        links: String,
    },
    /// The call that wants to write it was judged for other paths.
    #[error("the verdict of this call does not cover {path}; nothing was written")]
    Unjudged {
        /// The path.
        path: String,
    },
    /// The write was not approved.
    #[error("{path} is protected: {why}. Writing it needs an approval, and this call has none")]
    Protected {
        /// The path.
        path: String,
        /// The reason for the protection.
        why: &'static str,
    },
    /// The file is larger than the limit.
    #[error("{path} has {bytes} bytes, and the limit is {max}")]
    TooBig {
        /// The path.
        path: String,
        /// Its size.
        bytes: u64,
        /// The limit.
        max: u64,
    },
    /// The file is no longer the one that was read.
    #[error("{path} changed during the operation")]
    Changed {
        /// The path.
        path: String,
    },
    /// The operating system refused.
    #[error("cannot {action} {path}: {source}")]
    Io {
        /// The attempted operation.
        action: &'static str,
        /// Its object.
        path: String,
        /// Why it failed.
        source: io::Error,
    },
}

impl SandboxError {
    /// The sandbox around commands cannot be built.
    pub(crate) fn no_walls(message: impl Into<String>) -> Self {
        Self::Unsupported {
            message: message.into(),
            fix: "run `agentctl doctor` to see what this machine supports".to_owned(),
        }
    }
}

impl From<Refusal> for SandboxError {
    fn from(refusal: Refusal) -> Self {
        Self::Unsupported {
            message: refusal.message,
            fix: refusal.fix,
        }
    }
}
