//! What agentd finds out about the sandbox of its machine. The daemon keeps it in two small files of its data directory,
//! where `agentctl doctor` reads it, also while no daemon runs.

use crate::limits::SandboxLevel;
use serde::{Deserialize, Serialize};

/// The file in the data directory with the [`Record`] of the last probe.
pub const RECORD_FILE: &str = "sandbox.json";
/// The file in the data directory with the [`Choice`] of the daemon at its last start.
pub const CHOICE_FILE: &str = "sandbox-in-use.json";

/// The level at which a daemon runs commands, or why it runs none.
pub type Choice = Result<SandboxLevel, Refusal>;

/// The findings, and the conditions under which they hold.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// The boot of the machine, the program, and the settings of the probe.
    pub circumstances: String,
    /// The findings.
    pub findings: Findings,
}

/// The probe's findings about a level.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Finding {
    /// A command ran at it, and every escape attempt failed.
    Works,
    /// It does not work here.
    Missing(Refusal),
}

impl Finding {
    /// Whether commands can run at it.
    #[must_use]
    pub const fn works(&self) -> bool {
        matches!(self, Self::Works)
    }
}

/// The missing feature, and its remedy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    /// The missing part.
    pub message: String,
    /// The fix.
    pub fix: String,
}

/// The probe's findings about this machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Findings {
    /// Namespaces, Landlock and seccomp.
    pub isolated: Finding,
    /// What creates the namespaces.
    #[serde(default)]
    pub builder: Builder,
    /// Landlock and seccomp.
    pub confined: Finding,
    /// The version of Landlock's ABI; 0 if there is none. Below 6, commands can signal other sessions' processes.
    pub landlock_abi: u32,
    /// The daemon runs as root, which a process limit does not restrict.
    pub root: bool,
    /// The broker that keeps commands from protected names, and from modes and times outside. Both levels use it where it
    /// works, and work without it.
    #[serde(default = "unknown")]
    pub broker: Finding,
    /// The limits that the kernel itself enforces per session.
    #[serde(default)]
    pub kernel: KernelLimits,
}

/// The value for findings of an earlier version.
fn unknown() -> Finding {
    Finding::Missing(Refusal {
        message: "not tried yet".to_owned(),
        fix: "restart agentd".to_owned(),
    })
}

/// The limits that the kernel enforces on this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct KernelLimits {
    /// The number of processes per session.
    pub processes: bool,
    /// The memory per session.
    pub memory: bool,
}

/// What creates the namespaces of an isolated session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Builder {
    /// The warden itself.
    #[default]
    Warden,
    /// The program `bwrap`. Some systems let only programs with a profile create user namespaces, and have one for it.
    Bubblewrap,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_of_an_earlier_version_can_still_be_read() {
        let old = r#"{"circumstances":"x","findings":{"isolated":{"missing":{"message":"no","fix":"get it"}},
            "confined":"works","landlock_abi":5,"root":true}}"#;
        let record: Record = serde_json::from_str(old).unwrap();
        assert_eq!(record.findings.broker, unknown());
        assert_eq!(record.findings.builder, Builder::Warden);
        assert!(record.findings.confined.works() && !record.findings.isolated.works());
        let choice: Choice = serde_json::from_str(r#"{"Ok":"isolated"}"#).unwrap();
        assert_eq!(choice, Ok(SandboxLevel::Isolated));
    }
}
