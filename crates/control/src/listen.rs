//! Opens the socket: private to the user, never taken from a running daemon.

use crate::error::ControlError;
use std::fs::{DirBuilder, File, OpenOptions, Permissions, TryLockError};
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{
    DirBuilderExt as _, FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _,
};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::net::{UnixListener, UnixStream};
use tokio::time::{Instant, sleep, timeout};

/// Bytes that a socket address can hold, without the final zero.
const MAX_PATH: usize = 107;
/// How long to wait for a daemon to accept a connection; one that is slower still counts as running.
const KNOCK: Duration = Duration::from_secs(1);
/// How long the lock of a killed daemon may outlive it: a process that it was about to start keeps its descriptors until
/// the exec.
const GIVEN_UP_WITHIN: Duration = Duration::from_secs(1);
/// The interval between tries of the lock.
const TRY_EVERY: Duration = Duration::from_millis(20);

/// Identifies our socket file: device and inode.
type Mark = (u64, u64);

/// An open socket. Dropping it removes the file and frees the path for another daemon.
#[derive(Debug)]
pub struct Listener {
    pub(crate) socket: UnixListener,
    path: PathBuf,
    mark: Mark,
    // Held while the socket is ours: two daemons that start at the same time cannot both find the path stale.
    _lock: File,
}

impl Listener {
    /// The path of the socket.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Creates the socket again if its file was removed; returns whether it did. Another file in its place is left alone.
    pub(crate) fn mend(&mut self) -> Result<bool, ControlError> {
        match mark(&self.path) {
            Ok(found) if found == self.mark => return Ok(false),
            Ok(_) => {
                return Err(ControlError::Replaced {
                    path: self.path.clone(),
                });
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(source) => return Err(io(&self.path, source)),
        }
        (self.socket, self.mark) = open(&self.path)?;
        Ok(true)
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        // The next daemon treats a remaining file as stale; another daemon's file is not ours to remove.
        if mark(&self.path).is_ok_and(|found| found == self.mark) {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// Opens the control socket. A directory created for it has mode 0700, the socket 0600. A socket on which no daemon answers
/// is removed.
///
/// # Errors
/// [`ControlError::InUse`] when another daemon has it; otherwise the cause of the failure.
pub async fn bind(path: &Path) -> Result<Listener, ControlError> {
    let length = path.as_os_str().as_bytes().len();
    if length > MAX_PATH {
        return Err(ControlError::TooLong {
            path: path.to_owned(),
            length,
            most: MAX_PATH,
        });
    }
    make_dir(path)?;
    let lock = lock(path).await?;
    clear_stale(path).await?;
    let (socket, mark) = open(path)?;
    Ok(Listener {
        socket,
        path: path.to_owned(),
        mark,
        _lock: lock,
    })
}

fn make_dir(path: &Path) -> Result<(), ControlError> {
    let Some(dir) = path.parent().filter(|dir| !dir.as_os_str().is_empty()) else {
        return Ok(());
    };
    let made = DirBuilder::new().recursive(true).mode(0o700).create(dir);
    made.map_err(|source| io(dir, source))
}

/// Creates the socket at a free path.
fn open(path: &Path) -> Result<(UnixListener, Mark), ControlError> {
    make_dir(path)?;
    let socket = UnixListener::bind(path).map_err(|source| io(path, source))?;
    std::fs::set_permissions(path, Permissions::from_mode(0o600)).map_err(|source| io(path, source))?;
    let mark = mark(path).map_err(|source| io(path, source))?;
    Ok((socket, mark))
}

fn mark(path: &Path) -> std::io::Result<Mark> {
    let found = std::fs::symlink_metadata(path)?;
    Ok((found.dev(), found.ino()))
}

async fn lock(path: &Path) -> Result<File, ControlError> {
    let mut name = path.as_os_str().to_owned();
    name.push(".lock");
    let name = PathBuf::from(name);
    let file = OpenOptions::new()
        .create(true)
        .append(true)
        .mode(0o600)
        .open(&name);
    let file = file.map_err(|source| io(&name, source))?;
    let deadline = Instant::now() + GIVEN_UP_WITHIN;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) if Instant::now() < deadline => sleep(TRY_EVERY).await,
            Err(TryLockError::WouldBlock) => {
                return Err(ControlError::InUse {
                    path: path.to_owned(),
                });
            }
            Err(TryLockError::Error(source)) => return Err(io(&name, source)),
        }
    }
}

async fn clear_stale(path: &Path) -> Result<(), ControlError> {
    match std::fs::symlink_metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(source) => return Err(io(path, source)),
        Ok(found) if !found.file_type().is_socket() => {
            return Err(ControlError::NotASocket {
                path: path.to_owned(),
            });
        }
        Ok(_) => {}
    }
    match timeout(KNOCK, UnixStream::connect(path)).await {
        Ok(Err(error)) if error.kind() == ErrorKind::ConnectionRefused => {
            tracing::info!(path = %path.display(), "removing a stale socket: no daemon answers on it");
            std::fs::remove_file(path).map_err(|source| io(path, source))
        }
        Ok(Err(error)) if error.kind() == ErrorKind::NotFound => Ok(()),
        Ok(Err(source)) if source.kind() == ErrorKind::PermissionDenied => Err(io(path, source)),
        Ok(Ok(_)) | Ok(Err(_)) | Err(_) => Err(ControlError::InUse {
            path: path.to_owned(),
        }),
    }
}

fn io(path: &Path, source: std::io::Error) -> ControlError {
    ControlError::Io {
        path: path.to_owned(),
        source,
    }
}
