//! The modes of the data directory and the control socket. Unless the sandbox prevents it (level `none`, or no broker),
//! a command of the same user can change them, and one `chmod 000` would lock out every client. So the daemon checks
//! the modes periodically and resets them.

use rustix::process::geteuid;
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The interval between checks. A check costs two system calls.
const EVERY: Duration = Duration::from_secs(10);
const BITS: u32 = 0o7777;

/// A path and its required mode.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RequiredMode {
    path: PathBuf,
    mode: u32,
}

/// The daemon's private paths. The directory comes first: without access to it, the socket in it is unreachable.
pub(crate) fn required(data_dir: &Path, socket: &Path) -> [RequiredMode; 2] {
    [(data_dir, 0o700), (socket, 0o600)].map(|(path, mode)| RequiredMode {
        path: path.to_owned(),
        mode,
    })
}

/// Checks until dropped.
pub(crate) async fn watch(required: &[RequiredMode; 2]) {
    let mut rounds = tokio::time::interval(EVERY);
    loop {
        rounds.tick().await;
        for path_mode in required {
            let path = path_mode.path.display();
            match mend(path_mode) {
                Ok(None) => {}
                Ok(Some(was)) => tracing::warn!(
                    %path,
                    "restored the mode {:o}; it was {was:o}: something changed it, possibly a command of an agent",
                    path_mode.mode
                ),
                Err(error) => {
                    tracing::error!(%path, %error, "the mode or owner is wrong, and agentd could not restore it");
                }
            }
        }
    }
}

/// Resets a mode. Returns the wrong mode, if any.
fn mend(path_mode: &RequiredMode) -> io::Result<Option<u32>> {
    let found = fs::symlink_metadata(&path_mode.path)?;
    if found.uid() != geteuid().as_raw() {
        return Err(io::Error::other(format!("it belongs to user {}", found.uid())));
    }
    let mode = found.mode() & BITS;
    // We do not change the target of a link.
    if mode == path_mode.mode || found.is_symlink() {
        return Ok(None);
    }
    fs::set_permissions(&path_mode.path, Permissions::from_mode(path_mode.mode))?;
    Ok(Some(mode))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn changed_modes_are_restored() {
        let dir = tempfile::tempdir().unwrap();
        let (data, socket) = (dir.path().join("data"), dir.path().join("data/agentd.sock"));
        fs::create_dir(&data).unwrap();
        fs::write(&socket, "").unwrap();
        let mode = |path: &Path| fs::symlink_metadata(path).unwrap().mode() & BITS;
        let (data_dir, socket_path) = (data.clone(), socket.clone());
        let task = tokio::spawn(async move { watch(&required(&data_dir, &socket_path)).await });
        for wrong in [0o000, 0o755, 0o777] {
            fs::set_permissions(&socket, Permissions::from_mode(wrong)).unwrap();
            fs::set_permissions(&data, Permissions::from_mode(wrong)).unwrap();
            tokio::time::advance(EVERY).await;
            // Lets the other task run.
            for _ in 0..8 {
                tokio::task::yield_now().await;
            }
            assert_eq!((mode(&data), mode(&socket)), (0o700, 0o600), "{wrong:o}");
        }
        task.abort();
    }

    #[test]
    fn links_and_missing_paths_are_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let (file, link) = (dir.path().join("file"), dir.path().join("link"));
        fs::write(&file, "").unwrap();
        fs::set_permissions(&file, Permissions::from_mode(0o644)).unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        let [_, path_mode] = required(dir.path(), &link);
        assert_eq!(mend(&path_mode).unwrap(), None);
        assert_eq!(fs::metadata(&file).unwrap().mode() & BITS, 0o644);
        let [_, path_mode] = required(dir.path(), &dir.path().join("none"));
        assert!(mend(&path_mode).is_err());
    }
}
