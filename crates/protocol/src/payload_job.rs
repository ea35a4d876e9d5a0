//! Payloads of background jobs: commands that keep running while the agent does other work.

use crate::stamp::Timestamp;
use serde::{Deserialize, Serialize};

/// `job.started`: a command runs in the background.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct JobStarted {
    /// Its number in the session, from 1.
    pub job: u32,
    /// The command line.
    pub command: String,
}

/// `job.finished`: the job ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct JobFinished {
    /// The job.
    pub job: u32,
    /// Its exit code, if it exited by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// The signal that ended it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    /// Why agentd stopped it, if it did not end by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped: Option<String>,
}

/// `job.lost`: the job is no longer running, and its outcome is unknown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct JobLost {
    /// The job.
    pub job: u32,
    /// Why it was lost.
    pub reason: String,
}

/// A job that runs now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct RunningJob {
    /// Its number in the session.
    pub job: u32,
    /// The command line.
    pub command: String,
    /// When it started.
    pub started_at: Timestamp,
}
