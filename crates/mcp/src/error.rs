//! The errors of tool servers.

use agentd_sandbox::SandboxError;
use std::time::Duration;
use thiserror::Error;

/// Why a request to a tool server failed. The texts hold nothing secret and are safe for a terminal.
#[derive(Debug, Error)]
pub enum McpError {
    /// Its configuration is invalid.
    #[error("tool server {server}: {problem}")]
    Spec {
        /// Its name.
        server: String,
        /// The problem.
        problem: String,
    },
    /// Its program could not be started.
    #[error("cannot start tool server {server}: {source}")]
    Start {
        /// Its name.
        server: String,
        /// The cause.
        #[source]
        source: SandboxError,
    },
    /// Its initialization failed.
    #[error("tool server {server} did not become ready: {why}")]
    Initialize {
        /// Its name.
        server: String,
        /// The cause.
        why: String,
    },
    /// It exceeded a deadline.
    #[error("tool server {server} did not complete {what} within {} s", within.as_secs_f32())]
    Slow {
        /// Its name.
        server: String,
        /// The request.
        what: &'static str,
        /// The deadline.
        within: Duration,
    },
    /// It ended before it answered.
    #[error("tool server {server} has ended: {why}")]
    Gone {
        /// Its name.
        server: String,
        /// The cause.
        why: String,
    },
    /// It answered with an error.
    #[error("tool server {server} answered with an error: {message} (code {code})")]
    Refused {
        /// Its name.
        server: String,
        /// The error code.
        code: i32,
        /// The error message.
        message: String,
    },
    /// It failed before and is not restarted for a while.
    #[error("tool server {server} cannot restart for {} s more because it failed {failures} times: {why}", after.as_secs())]
    Resting {
        /// Its name.
        server: String,
        /// The number of recent failures.
        failures: usize,
        /// The time until it may be started again.
        after: Duration,
        /// Its last failure.
        why: String,
    },
    /// The limit of running servers is reached.
    #[error("{running} tool servers are already running, and all are busy")]
    Full {
        /// The number of running servers.
        running: usize,
    },
    /// The pool was closed.
    #[error("the tool servers have been shut down")]
    Closed,
    /// The HTTP client cannot be set up.
    #[error("cannot create an HTTP client")]
    Http(#[source] reqwest::Error),
}
