//! `[sandbox]`: how commands are confined, and how much they may use.

use agentd_protocol::SandboxLevel;
use serde::{Deserialize, Serialize};

/// How strongly commands are confined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SandboxChoice {
    /// The best that works here.
    Auto,
    /// Namespaces, Landlock and seccomp.
    Isolated,
    /// Landlock and seccomp.
    Confined,
    /// No kernel sandbox.
    None,
}

/// What network a command sees.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Network {
    /// None.
    None,
    /// Only these hosts.
    Hosts(Vec<String>),
}

/// `[sandbox]`: how commands are confined.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SandboxConfig {
    /// The level to use.
    pub level: SandboxChoice,
    /// Refuse sessions below this level.
    pub require: SandboxLevel,
    /// What network a command sees.
    pub network: Network,
    /// Processes and threads of one session at the same time.
    pub max_processes: u64,
    /// Bytes of memory of one session's commands together; 0 is half of the machine's.
    pub max_memory_bytes: u64,
    /// Bytes of one file that a command writes.
    pub max_file_bytes: u64,
    /// Files that one session's commands make in one go.
    pub max_new_files: u64,
    /// What commands may read besides programs, toolchains and their working directory.
    pub read: Vec<String>,
    /// Environment variables that commands get besides the usual ones.
    pub env: Vec<String>,
}

impl Default for SandboxConfig {
    fn default() -> Self {
        Self {
            level: SandboxChoice::Auto,
            require: SandboxLevel::Confined,
            network: Network::None,
            max_processes: 1_024,
            max_memory_bytes: 0,
            max_file_bytes: 16 << 30,
            max_new_files: 250_000,
            read: Vec::new(),
            env: Vec::new(),
        }
    }
}
