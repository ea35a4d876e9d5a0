//! What agentd keeps about a workspace, next to it. Commands cannot reach it: their walls are around the tree.

use crate::error::{WorkspaceError, at};
use agentd_protocol::{SessionId, Timestamp, Workspace};
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// The name of the record in a workspace's directory.
const RECORD: &str = "record.json";
/// The largest record to read.
const MAX_BYTES: u64 = 1 << 20;

/// How far the making or the removal has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// It is being made. After a restart, only its remains are there.
    Making,
    /// It is whole.
    Made,
    /// It is being removed. After a restart, only its remains are there.
    Removing,
}

/// The record of a workspace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// The session that it was made for.
    pub session: SessionId,
    /// When.
    pub at: Timestamp,
    /// How far it is.
    pub stage: Stage,
    /// What it is.
    pub workspace: Workspace,
    /// Its state right after it was made: what differs from it is work.
    #[serde(default)]
    pub initial: Option<crate::state::State>,
    /// The states that were fetched, the newest last.
    #[serde(default)]
    pub fetched: Vec<crate::state::State>,
}

/// The most fetched states that a record keeps.
pub(crate) const MAX_FETCHED: usize = 16;

impl Record {
    /// The directory of git's own files about a worktree, in the repository that it belongs to.
    pub(crate) fn worktree_dir(&self) -> Option<PathBuf> {
        let repository = self.workspace.repository.as_ref()?;
        (self.workspace.kind == agentd_protocol::WorkspaceKind::Worktree).then(|| {
            Path::new(repository)
                .join("worktrees")
                .join(worktree_name(self.session))
        })
    }

    /// Writes it durably, in place of the previous one.
    pub(crate) fn write(&self, dir: &Path) -> Result<(), WorkspaceError> {
        let text = serde_json::to_vec_pretty(self).map_err(|error| at(dir)(error.into()))?;
        let (path, new) = (dir.join(RECORD), dir.join("record.new"));
        let write = || -> std::io::Result<()> {
            let mut file = File::create(&new)?;
            file.write_all(&text)?;
            file.sync_all()?;
            fs::rename(&new, &path)?;
            File::open(dir)?.sync_all()
        };
        write().map_err(at(&path))
    }

    /// Reads the record of a workspace's directory; `None` if there is none.
    pub(crate) fn read(dir: &Path) -> Result<Option<Self>, WorkspaceError> {
        let path = dir.join(RECORD);
        match fs::metadata(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(at(&path)(error)),
            Ok(found) if found.len() > MAX_BYTES => {
                return Err(at(&path)(std::io::Error::other("it is too large")));
            }
            Ok(_) => {}
        }
        let text = fs::read(&path).map_err(at(&path))?;
        serde_json::from_slice(&text)
            .map(Some)
            .map_err(|error| at(&path)(error.into()))
    }
}

/// The name that git knows a session's worktree by.
pub(crate) fn worktree_name(session: SessionId) -> String {
    format!("agentd-{session}")
}

/// The branch of a session.
pub(crate) fn branch_name(session: SessionId) -> String {
    format!("agentd/{session}")
}
