//! The only way from an isolated session to the network: a socket behind which the daemon judges each request.

use crate::error::SandboxError;
use crate::forwarder::PORT;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::net::UnixListener;

/// The socket's directory inside the sandbox.
pub(crate) const INSIDE: &str = "/run/agentd/network";
/// The socket's file name.
pub(crate) const SOCKET: &str = "s";

/// Serves the sessions' sockets. The value that it returns for one is dropped when the session's warden ends; no connection
/// may outlive it.
pub trait Gate: fmt::Debug + Send + Sync {
    /// Starts to serve a socket.
    fn open(&self, socket: UnixListener) -> Box<dyn Send + Sync>;
}

/// The network of a session. Clones share one gate.
#[derive(Debug, Clone)]
pub struct Network(Arc<dyn Gate>);

impl Network {
    /// Sends all connections through this gate.
    #[must_use]
    pub fn through(gate: Arc<dyn Gate>) -> Self {
        Self(gate)
    }

    /// Opens the gate for one warden, next to its temporary directory.
    pub(crate) fn open(&self, temp: &Path) -> Result<Opened, SandboxError> {
        let dir = temp.with_extension("net");
        let failed = |source: io::Error| SandboxError::Io {
            action: "open the network in",
            path: dir.display().to_string(),
            source,
        };
        // Removes the socket of an earlier warden.
        let _ = std::fs::remove_dir_all(&dir);
        crate::keeper::make_private(&dir).map_err(failed)?;
        let socket = UnixListener::bind(dir.join(SOCKET)).map_err(failed)?;
        let gate = self.0.open(socket);
        Ok(Opened { dir, _gate: gate })
    }
}

/// A network that is open to one warden.
pub(crate) struct Opened {
    dir: PathBuf,
    _gate: Box<dyn Send + Sync>,
}

impl Opened {
    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        // The next start of the daemon removes what is left.
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

/// The variables that tell programs the address of the proxy.
pub(crate) fn variables() -> impl Iterator<Item = (&'static str, String)> {
    let names = ["HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"];
    names
        .into_iter()
        .map(|name| (name, format!("http://127.0.0.1:{PORT}")))
}
