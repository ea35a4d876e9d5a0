//! Why files could not be recorded or put back.

use agentd_git::GitError;
use std::io;
use std::path::{Path, PathBuf};

/// Why files could not be recorded or put back.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// This machine has no git.
    #[error("git is not installed: checkpoints need it")]
    NoGit,
    /// Git failed.
    #[error("git {what}: {why}")]
    Git {
        /// Its command.
        what: String,
        /// What it said.
        why: String,
    },
    /// A file or directory cannot be used.
    #[error("{}: {error}", path.display())]
    File {
        /// Its path.
        path: PathBuf,
        /// The reason.
        error: io::Error,
    },
    /// The directory has too many files.
    #[error("the directory has more than {0} files (workspace.checkpoint_files)")]
    TooManyFiles(u64),
    /// The changed files are too large together.
    #[error("the new files have more than {0} bytes together (workspace.checkpoint_bytes)")]
    TooManyBytes(u64),
    /// The store has no room for it.
    #[error("what is new has more than the {0} bytes that are left (workspace.keep_bytes)")]
    StoreLimit(u64),
    /// An object is gone.
    #[error(
        "object {0} is missing: it was borrowed from the repository of the directory, which has removed it since"
    )]
    Lost(String),
    /// An object is not what its name says.
    #[error("object {0} is damaged: its content does not match its name")]
    Forged(String),
    /// This is not the name of a tree.
    #[error("{0:?} does not name recorded files")]
    BadTree(String),
    /// Files were changed since.
    #[error("these files have changed since: {}", list(.0))]
    Conflict(Vec<PathBuf>),
    /// Restoring failed halfway and could not be reverted.
    #[error("{why}; some files may already be restored ({undone})")]
    Halfway {
        /// Why it failed.
        why: String,
        /// Why it could not be reverted.
        undone: String,
    },
    /// All files were restored, and then something failed.
    #[error("the files are restored, but that could not be recorded: {0}; do it again")]
    Unrecorded(String),
    /// The repository has other names of objects.
    #[error("{}: its objects have SHA-256 names, which commits of recorded files cannot have", .0.display())]
    Sha256(PathBuf),
    /// The branch exists.
    #[error("a branch {0:?} exists already")]
    Exists(String),
    /// This cannot be the name of a branch.
    #[error("{0:?} is not a valid name of a branch")]
    BadBranch(String),
    /// A test asked for it.
    #[error(transparent)]
    Injected(#[from] agentd_fault_points::Injected),
}

impl From<GitError> for Error {
    fn from(error: GitError) -> Self {
        match error {
            GitError::Missing => Self::NoGit,
            GitError::Failed { command, message } => Self::Git {
                what: command,
                why: message,
            },
            GitError::Io { command, error } => Self::Git {
                what: command,
                why: error.to_string(),
            },
            slow @ GitError::Slow { .. } => Self::Git {
                what: "run".to_owned(),
                why: slow.to_string(),
            },
        }
    }
}

/// Names of files, at most ten of them.
fn list(paths: &[PathBuf]) -> String {
    const SHOWN: usize = 10;
    let shown: Vec<String> = paths
        .iter()
        .take(SHOWN)
        .map(|path| path.display().to_string())
        .collect();
    let more = paths.len().saturating_sub(SHOWN);
    let more = if more > 0 {
        format!(" and {more} more")
    } else {
        String::new()
    };
    format!("{}{more}", shown.join(", "))
}

/// Adds the path to an error.
pub(crate) fn at<E: Into<io::Error>>(path: &Path) -> impl FnOnce(E) -> Error + '_ {
    move |error| Error::File {
        path: path.to_owned(),
        error: error.into(),
    }
}
