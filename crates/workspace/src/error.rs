//! What goes wrong with a workspace.

use agentd_file_work::Failed;
use agentd_git::GitError;
use std::io;
use std::path::{Path, PathBuf};

/// Why a workspace could not be made, examined or removed.
#[derive(Debug, thiserror::Error)]
pub enum WorkspaceError {
    /// The request cannot be carried out.
    #[error("{message}")]
    Refused {
        /// A stable code.
        code: &'static str,
        /// What is wrong.
        message: String,
        /// How to fix it.
        hint: String,
    },
    /// It has work that nobody fetched.
    #[error("the workspace of session {session} has work that was not fetched: {what}")]
    NotFetched {
        /// The session, short.
        session: String,
        /// What was not fetched.
        what: String,
    },
    /// Git failed.
    #[error(transparent)]
    Git(GitError),
    /// A file operation failed.
    #[error("{}: {source}", path.display())]
    Io {
        /// The path.
        path: PathBuf,
        /// The error.
        source: io::Error,
    },
    /// A file system did not answer.
    #[error(transparent)]
    Files(#[from] Failed),
    /// A limit was reached.
    #[error("{message}")]
    Limit {
        /// Which limit, and its value.
        message: String,
        /// The setting that changes it.
        hint: String,
    },
    /// A test asked for this failure.
    #[error(transparent)]
    Injected(#[from] agentd_fault_points::Injected),
}

impl WorkspaceError {
    pub(crate) fn refused(code: &'static str, message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::Refused {
            code,
            message: message.into(),
            hint: hint.into(),
        }
    }
}

impl From<GitError> for WorkspaceError {
    fn from(error: GitError) -> Self {
        match error {
            GitError::Missing => Self::refused(
                "no_git",
                error.to_string(),
                "install git 2.38 or later, or use the workspace kind shared",
            ),
            other => Self::Git(other),
        }
    }
}

/// Adds the path to an error.
pub(crate) fn at(path: &Path) -> impl FnOnce(io::Error) -> WorkspaceError {
    let path = path.to_owned();
    move |source| WorkspaceError::Io { path, source }
}
