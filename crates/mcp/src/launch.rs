//! The port through which the programs of servers are started.

use crate::error::McpError;
use crate::spec::Command;
use async_trait::async_trait;
use std::fmt;
use std::path::Path;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};

/// Starts the programs of servers.
#[async_trait]
pub trait Launch: fmt::Debug + Send + Sync {
    /// Starts a program in a directory. `{workdir}` in its arguments is replaced already.
    ///
    /// # Errors
    /// When it cannot be started.
    async fn launch(&self, server: &str, command: &Command, workdir: &Path) -> Result<Child, McpError>;
}

/// A program that runs.
pub struct Child {
    /// Its standard input.
    pub stdin: Box<dyn AsyncWrite + Send + Sync + Unpin>,
    /// Its standard output.
    pub stdout: Box<dyn AsyncRead + Send + Sync + Unpin>,
    /// The process; dropping it kills the program and all that it started.
    pub process: Box<dyn Process>,
}

/// The life of a program.
#[async_trait]
pub trait Process: Send {
    /// Waits for its end and says how it ended, in words. Safe to be cancelled and asked again.
    async fn ended(&mut self) -> String;
    /// Ends it and all that it started, and waits until that is done, at most `within`.
    async fn end(&mut self, within: Duration);
}

impl fmt::Debug for Child {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Child").finish_non_exhaustive()
    }
}
