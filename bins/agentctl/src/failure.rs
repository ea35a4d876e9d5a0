//! What can go wrong here, and how it is reported.

use crate::exit::Exit;
use agentd_client::ClientError;
use agentd_protocol::Fault;
use serde::Serialize;
use std::io;
use std::path::Path;

/// Why a verb failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// The daemon, the connection or the request failed.
    #[error("{0}")]
    Fault(#[from] Fault),
    /// Writing the output failed, or the runtime below it.
    #[error("cannot write the output: {0}")]
    Output(#[source] io::Error),
    /// The reader of our output has closed the pipe, so there is nothing left to report.
    #[error("the reader of the output is gone")]
    Pipe,
}

/// The JSON shape of an error, for `-o json`.
#[derive(Debug, Serialize)]
pub(crate) struct FaultRow<'a> {
    class: agentd_protocol::FaultClass,
    code: &'a str,
    message: &'a str,
    hint: Option<&'a str>,
}

impl<'a> From<&'a Fault> for FaultRow<'a> {
    fn from(fault: &'a Fault) -> Self {
        Self {
            class: fault.class,
            code: &fault.code,
            message: &fault.message,
            hint: fault.hint.as_deref(),
        }
    }
}

impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Self {
        Self::Fault(error.into())
    }
}

impl Failure {
    /// A usage error with its fix.
    pub(crate) fn invalid(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::Fault(Fault::invalid("usage", message).hint(hint))
    }

    /// A usage error from the argument parser.
    pub(crate) fn usage(error: &clap::Error) -> Self {
        let text = error.to_string();
        let message = text
            .lines()
            .next()
            .unwrap_or_default()
            .trim_start_matches("error: ")
            .to_owned();
        Self::invalid(message, "`agentctl help VERB` explains every flag")
    }

    /// A file of the user cannot be read.
    pub(crate) fn file(path: &Path, error: &io::Error) -> Self {
        Self::of_file("read", path, error)
    }

    /// A file of the user cannot be written.
    pub(crate) fn unwritable(path: &Path, error: &io::Error) -> Self {
        Self::of_file("write", path, error)
    }

    fn of_file(verb: &str, path: &Path, error: &io::Error) -> Self {
        let message = format!("cannot {verb} {}: {error}", path.display());
        Self::Fault(if error.kind() == io::ErrorKind::NotFound {
            Fault::not_found("file", message)
        } else if error.kind() == io::ErrorKind::PermissionDenied {
            Fault::denied("file", message)
        } else {
            Fault::invalid("file", message)
        })
    }

    /// A write failed.
    pub(crate) fn output(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            Self::Pipe
        } else {
            Self::Output(error)
        }
    }

    /// The failure as a fault.
    pub(crate) fn fault(&self) -> Fault {
        match self {
            Self::Fault(fault) => fault.clone(),
            Self::Output(_) | Self::Pipe => Fault::internal("output", self.to_string()),
        }
    }

    /// The exit code of its class. A closed pipe is no failure.
    pub(crate) fn exit(&self) -> Exit {
        match self {
            Self::Fault(fault) => Exit::of_fault(fault.class),
            Self::Output(_) => Exit::FAILURE,
            Self::Pipe => Exit::OK,
        }
    }
}
