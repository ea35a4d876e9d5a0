//! The port for starting server programs.

use crate::error::McpError;
use crate::spec::Command;
use async_trait::async_trait;
use std::fmt;
use std::path::Path;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};

/// Starts server programs.
#[async_trait]
pub trait Launch: fmt::Debug + Send + Sync {
    /// Starts a program in a directory. `{workdir}` in its arguments is already replaced.
    ///
    /// # Errors
    /// The program cannot be started.
    async fn launch(&self, server: &str, command: &Command, workdir: &Path) -> Result<Child, McpError>;
}

/// A running program.
pub struct Child {
    /// Its standard input.
    pub stdin: Box<dyn AsyncWrite + Send + Sync + Unpin>,
    /// Its standard output.
    pub stdout: Box<dyn AsyncRead + Send + Sync + Unpin>,
    /// The process; dropping it kills the program and all processes that it started.
    pub process: Box<dyn Process>,
}

/// The process of a program.
#[async_trait]
pub trait Process: Send {
    /// Waits for its end and describes it in words. Cancel-safe; may be called again.
    async fn ended(&mut self) -> String;
    /// Kills it and all processes that it started, and waits for their end, at most `within`.
    async fn end(&mut self, within: Duration);
}

impl fmt::Debug for Child {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Child").finish_non_exhaustive()
    }
}
