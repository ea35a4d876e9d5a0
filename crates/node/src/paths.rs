//! The paths of a node.

use crate::error::NodeError;
use std::fs;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

/// The environment variables that determine paths; read once, in the binary.
#[derive(Debug, Clone, Default)]
pub struct Surroundings {
    /// `$HOME`.
    pub home: Option<PathBuf>,
    /// `$XDG_DATA_HOME`.
    pub data_home: Option<PathBuf>,
    /// `$XDG_RUNTIME_DIR`.
    pub runtime_dir: Option<PathBuf>,
}

/// The paths of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Paths {
    /// Store, logs, blobs.
    pub data_dir: PathBuf,
    /// The control socket.
    pub socket: PathBuf,
    default_socket: bool,
}

impl Paths {
    /// The given paths, else the user's: `$XDG_DATA_HOME/agentd`, and `$XDG_RUNTIME_DIR/agentd/agentd.sock` or
    /// `agentd.sock` in the data directory. With an explicit data directory the socket is in it as well, so that
    /// daemons with different data directories do not conflict.
    ///
    /// # Errors
    /// There is no home directory and no data directory was given.
    pub fn choose(
        surroundings: &Surroundings,
        data_dir: Option<&Path>,
        socket: Option<&Path>,
    ) -> Result<Self, NodeError> {
        let own_dir = data_dir.is_some();
        let default_socket = !own_dir && socket.is_none();
        let data_dir = match data_dir {
            Some(dir) => std::path::absolute(dir).map_err(|e| NodeError::path(dir, e))?,
            None => surroundings
                .data_home
                .clone()
                .or_else(|| surroundings.home.as_ref().map(|home| home.join(".local/share")))
                .ok_or(NodeError::NoHome)?
                .join("agentd"),
        };
        let socket = match (socket, &surroundings.runtime_dir) {
            (Some(socket), _) => std::path::absolute(socket).map_err(|e| NodeError::path(socket, e))?,
            (None, Some(runtime)) if !own_dir => runtime.join("agentd/agentd.sock"),
            (None, _) => data_dir.join("agentd.sock"),
        };
        Ok(Self {
            data_dir,
            socket,
            default_socket,
        })
    }

    /// Whether clients find the socket without `--socket`.
    #[must_use]
    pub const fn is_default(&self) -> bool {
        self.default_socket
    }

    /// Creates the directories, accessible only to this user.
    ///
    /// # Errors
    /// A directory cannot be created or made private.
    pub fn create(&self) -> Result<(), NodeError> {
        private_dir(&self.data_dir)?;
        private_dir(&self.logs())?;
        self.socket.parent().map_or(Ok(()), |dir| {
            if dir == self.data_dir {
                Ok(())
            } else {
                socket_dir(dir)
            }
        })
    }

    /// The directory of the log files.
    #[must_use]
    pub fn logs(&self) -> PathBuf {
        self.data_dir.join("logs")
    }
}

fn private_dir(dir: &Path) -> Result<(), NodeError> {
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(dir)
        .map_err(|e| NodeError::path(dir, e))?;
    fs::set_permissions(dir, fs::Permissions::from_mode(0o700)).map_err(|e| NodeError::path(dir, e))
}

/// An existing directory may be shared (`/tmp`); a directory that we create is private.
fn socket_dir(dir: &Path) -> Result<(), NodeError> {
    if dir.is_dir() { Ok(()) } else { private_dir(dir) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn surroundings(runtime: Option<&str>) -> Surroundings {
        Surroundings {
            home: Some("/home/ana".into()),
            data_home: None,
            runtime_dir: runtime.map(Into::into),
        }
    }

    #[test]
    fn the_default_socket_is_in_the_runtime_directory() {
        let paths = Paths::choose(&surroundings(Some("/run/user/7")), None, None).unwrap();
        assert_eq!(paths.data_dir, Path::new("/home/ana/.local/share/agentd"));
        assert_eq!(paths.socket, Path::new("/run/user/7/agentd/agentd.sock"));
    }

    #[test]
    fn otherwise_the_socket_is_in_the_data_directory() {
        let paths = Paths::choose(&surroundings(None), None, None).unwrap();
        assert_eq!(
            paths.socket,
            Path::new("/home/ana/.local/share/agentd/agentd.sock")
        );
        let paths = Paths::choose(
            &surroundings(Some("/run/user/7")),
            Some(Path::new("/srv/a")),
            None,
        )
        .unwrap();
        assert_eq!(paths.socket, Path::new("/srv/a/agentd.sock"));
    }

    #[test]
    fn without_a_home_the_error_names_the_option() {
        let error = Paths::choose(&Surroundings::default(), None, None).unwrap_err();
        assert!(error.to_string().contains("--data-dir"), "{error}");
    }

    #[test]
    fn directories_are_inaccessible_to_others() {
        let dir = tempfile::tempdir().unwrap();
        let paths = Paths::choose(&Surroundings::default(), Some(&dir.path().join("x")), None).unwrap();
        paths.create().unwrap();
        let mode = fs::metadata(&paths.data_dir).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
    }
}
