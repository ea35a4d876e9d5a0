//! Commands that the daemon exchanges messages with: three pipes instead of one.

use crate::error::SandboxError;
use crate::running::Running;
use crate::warden::{CommandSpec, Stdio, Warden};
use rustix::fd::OwnedFd;
use rustix::pipe::{PipeFlags, pipe_with};
use std::io;
use tokio::net::unix::pipe;

/// A running command with separate stdin, stdout and stderr.
#[derive(Debug)]
pub struct Piped {
    /// Its standard input.
    pub stdin: pipe::Sender,
    /// Its standard output.
    pub stdout: pipe::Receiver,
    /// The command; its output is the stderr. Dropping it kills the command.
    pub running: Running,
}

impl Warden {
    /// Starts a command with three pipes. Dropping [`Piped::running`] kills it.
    ///
    /// # Errors
    /// As for [`Warden::run`].
    pub async fn run_piped(&self, command: CommandSpec) -> Result<Piped, SandboxError> {
        let (stdin, to_command) = new_pipe()?;
        let (from_command, stdout) = new_pipe()?;
        let (errors, stderr) = new_pipe()?;
        let piped = (
            pipe::Sender::from_owned_fd(to_command).map_err(failed)?,
            pipe::Receiver::from_owned_fd(from_command).map_err(failed)?,
            pipe::Receiver::from_owned_fd(errors).map_err(failed)?,
        );
        let running = self
            .start(command, piped.2, vec![stdout, stderr, stdin], Stdio::Pipes)
            .await?;
        Ok(Piped {
            stdin: piped.0,
            stdout: piped.1,
            running,
        })
    }
}

/// A pipe for a command's output, with two write ends.
pub(crate) fn output_pipe() -> Result<(pipe::Receiver, OwnedFd, OwnedFd), SandboxError> {
    let (read, write) = new_pipe()?;
    let second = write.try_clone().map_err(failed)?;
    Ok((
        pipe::Receiver::from_owned_fd(read).map_err(failed)?,
        write,
        second,
    ))
}

fn new_pipe() -> Result<(OwnedFd, OwnedFd), SandboxError> {
    pipe_with(PipeFlags::CLOEXEC).map_err(|errno| failed(errno.into()))
}

fn failed(source: io::Error) -> SandboxError {
    SandboxError::Io {
        action: "open",
        path: "a pipe".to_owned(),
        source,
    }
}
