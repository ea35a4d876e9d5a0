//! The disk space of workspaces.

use crate::error::{WorkspaceError, at};
use crate::workspaces::Workspaces;
use agentd_file_work::FileWork;
use agentd_protocol::SessionId;
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The most entries that are counted.
const MAX_ENTRIES: u64 = 20_000_000;

/// What a workspace takes on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// Bytes of all blocks.
    pub bytes: u64,
    /// Files, directories and links.
    pub entries: u64,
}

impl Workspaces {
    /// What a session's workspace takes on disk, agentd's own files about it included.
    ///
    /// # Errors
    /// It cannot be read in time.
    pub async fn usage(&self, session: SessionId, within: Duration) -> Result<Usage, WorkspaceError> {
        let dir = self.dir(session);
        let files = FileWork::of_session(&session.to_string());
        files
            .run(&self.0.root, within, move || usage(&dir).map_err(at(&dir)))
            .await?
    }
}

/// Counts a directory. A file with several names counts once; what disappears meanwhile does not count.
fn usage(top: &Path) -> io::Result<Usage> {
    let mut total = Usage::default();
    let mut linked = BTreeSet::new();
    let mut queue: Vec<PathBuf> = vec![top.to_owned()];
    while let Some(dir) = queue.pop() {
        let entries = match fs::read_dir(&dir) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            // Without permissions, nobody can tell.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied && dir != top => continue,
            entries => entries?,
        };
        for entry in entries.flatten() {
            let Ok(found) = entry.metadata() else { continue };
            total.entries += 1;
            if total.entries > MAX_ENTRIES {
                return Err(io::Error::other("too many files to count"));
            }
            if found.is_dir() {
                queue.push(entry.path());
            } else if found.nlink() > 1 && !linked.insert((found.dev(), found.ino())) {
                continue;
            }
            total.bytes += found.blocks() * 512;
        }
    }
    Ok(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_with_two_names_counts_once() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("a"), vec![1; 100_000]).unwrap();
        let once = usage(dir.path()).unwrap();
        fs::hard_link(dir.path().join("a"), dir.path().join("b")).unwrap();
        let twice = usage(dir.path()).unwrap();
        assert_eq!((once.bytes, once.entries, twice.entries), (twice.bytes, 1, 2));
        assert!(once.bytes >= 100_000, "{once:?}");
    }
}
