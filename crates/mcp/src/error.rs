//! What can go wrong with a tool server.

use agentd_sandbox::SandboxError;
use std::time::Duration;
use thiserror::Error;

/// Why a tool server could not do what it was asked. The texts hold nothing secret and are safe for a terminal.
#[derive(Debug, Error)]
pub enum McpError {
    /// It was configured wrongly.
    #[error("tool server {server}: {problem}")]
    Spec {
        /// Its name.
        server: String,
        /// What is wrong.
        problem: String,
    },
    /// Its program could not be started.
    #[error("tool server {server} cannot be started: {source}")]
    Start {
        /// Its name.
        server: String,
        /// Why.
        #[source]
        source: SandboxError,
    },
    /// It did not become ready.
    #[error("tool server {server} did not become ready: {why}")]
    Initialize {
        /// Its name.
        server: String,
        /// Why.
        why: String,
    },
    /// It took too long.
    #[error("tool server {server} did not answer {what} within {} s", within.as_secs_f32())]
    Slow {
        /// Its name.
        server: String,
        /// What was asked.
        what: &'static str,
        /// The deadline.
        within: Duration,
    },
    /// It is gone, with what was asked of it.
    #[error("tool server {server} is gone: {why}")]
    Gone {
        /// Its name.
        server: String,
        /// Why.
        why: String,
    },
    /// It answered with an error.
    #[error("tool server {server} answered with an error: {message} (code {code})")]
    Refused {
        /// Its name.
        server: String,
        /// Its code.
        code: i32,
        /// Its words.
        message: String,
    },
    /// It failed before and is left alone for a while.
    #[error("tool server {server} is left alone for {} s more after it failed {failures} times: {why}", after.as_secs())]
    Resting {
        /// Its name.
        server: String,
        /// How often it failed lately.
        failures: usize,
        /// How long it is left alone.
        after: Duration,
        /// How it failed last.
        why: String,
    },
    /// As many servers run as may.
    #[error("{running} tool servers run already and all are busy")]
    Full {
        /// How many.
        running: usize,
    },
    /// The pool was closed.
    #[error("the tool servers are shut down")]
    Closed,
    /// The set-up for HTTP is unusable.
    #[error("no HTTP client can be made")]
    Http(#[source] reqwest::Error),
}
