//! Payloads of background jobs: commands that go on while the agent does other things.

use crate::stamp::Timestamp;
use serde::{Deserialize, Serialize};

/// `job.started`: a command runs in the background.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobStarted {
    /// Its number in the session, from 1.
    pub job: u32,
    /// The command line.
    pub command: String,
}

/// `job.finished`: it ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobFinished {
    /// Which.
    pub job: u32,
    /// Its exit code, when it ended by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// The signal that ended it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    /// Why agentd ended it, when it did not end by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped: Option<String>,
}

/// `job.lost`: it does not run any more, and nobody saw how it ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobLost {
    /// Which.
    pub job: u32,
    /// Why.
    pub reason: String,
}

/// A job that runs now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunningJob {
    /// Its number in the session.
    pub job: u32,
    /// The command line.
    pub command: String,
    /// Since when.
    pub started_at: Timestamp,
}
