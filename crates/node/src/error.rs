//! The errors that prevent a node from starting, or stop it.

use agentd_http::HttpError;
use agentd_store::StoreError;
use std::io;
use std::path::{Path, PathBuf};

/// Why a node does not start, or why it stops.
#[derive(Debug, thiserror::Error)]
pub enum NodeError {
    /// There is no home directory and no data directory was given.
    #[error("no home directory is set; give --data-dir DIR")]
    NoHome,
    /// A path cannot be created or opened.
    #[error("{path}: {source}")]
    Path {
        /// The path.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The configuration requires something that this build does not support.
    #[error("{0}")]
    Unsupported(String),
    /// Permission rules are invalid, or contradict their examples.
    #[error("{0}")]
    Rules(String),
    /// Files that the configuration names cannot be used.
    #[error("{0}")]
    Files(String),
    /// The webhooks for questions cannot work as configured.
    #[error(transparent)]
    Webhook(#[from] agentd_webhook::WebhookError),
    /// The store cannot be opened.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The key of this node cannot be used.
    #[error(transparent)]
    Key(#[from] agentd_node_keys::KeyFileError),
    /// The log ends before an event that the audit file contains.
    #[error(
        "the database has lost events: {path} contains event {audit} of the fleet, but the database ends at {log}; \
         restore the newest copy of the database, or start agentd with --accept-loss to continue without the lost events"
    )]
    Lost {
        /// The audit file.
        path: PathBuf,
        /// The cursor of its last event.
        audit: u64,
        /// The cursor of the log's last event.
        log: u64,
    },
    /// A backup was not restored; nothing has changed.
    #[error("nothing was restored: {0}")]
    Restore(String),
    /// Another daemon listens on the socket.
    #[error(
        "another agentd listens on {0}; use that one (agentctl --socket {0} ps), stop it (agentctl --socket {0} daemon stop), or start this one with another --data-dir DIR"
    )]
    SocketInUse(PathBuf),
    /// The socket cannot be created.
    #[error("cannot listen on {path}: {why}")]
    Socket {
        /// The socket.
        path: PathBuf,
        /// The cause.
        why: String,
    },
    /// HTTP cannot be served as configured.
    #[error(transparent)]
    Http(#[from] HttpError),
    /// An actor does not start.
    #[error("could not start {actor}: {why}")]
    Actor {
        /// The actor.
        actor: &'static str,
        /// The cause.
        why: String,
    },
    /// The tree has failed for good.
    #[error("the daemon cannot continue: {0}")]
    Meltdown(String),
}

impl NodeError {
    /// An error at a path.
    pub(crate) fn path(path: &Path, source: io::Error) -> Self {
        Self::Path {
            path: path.to_path_buf(),
            source,
        }
    }

    /// An error of the control socket.
    pub(crate) fn socket(path: &Path, error: &agentd_control::ControlError) -> Self {
        match error {
            agentd_control::ControlError::InUse { .. } => Self::SocketInUse(path.to_path_buf()),
            other => Self::Socket {
                path: path.to_path_buf(),
                why: other.to_string(),
            },
        }
    }

    /// The exit code of the daemon: 2 configuration, 69 in use, 70 internal, else 1.
    #[must_use]
    pub const fn exit_code(&self) -> u8 {
        match self {
            Self::NoHome
            | Self::Unsupported(_)
            | Self::Rules(_)
            | Self::Files(_)
            | Self::Webhook(_)
            | Self::Http(HttpError::NotAnAddress(_) | HttpError::Unencrypted(_) | HttpError::Tls { .. })
            | Self::Store(
                StoreError::BadUrl { .. } | StoreError::BadServer { .. } | StoreError::NotEmbedded { .. },
            ) => 2,
            Self::SocketInUse(_)
            | Self::Http(HttpError::InUse(_))
            | Self::Store(
                StoreError::InUse { .. } | StoreError::NameTaken { .. } | StoreError::KeyRemoved { .. },
            ) => 69,
            Self::Actor { .. } | Self::Meltdown(_) => 70,
            Self::Path { .. }
            | Self::Http(_)
            | Self::Restore(_)
            | Self::Lost { .. }
            | Self::Key(_)
            | Self::Store(_)
            | Self::Socket { .. } => 1,
        }
    }
}
