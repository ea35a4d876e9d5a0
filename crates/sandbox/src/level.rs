//! Which levels of the sandbox work on this machine, and which one to use.

use crate::cgroup::KernelLimits;
use crate::confinement::Builder;
use crate::error::SandboxError;
use agentd_protocol::SandboxLevel;
use rustix::process::{DumpableBehavior, set_dumpable_behavior};
use serde::{Deserialize, Serialize};

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

impl From<Refusal> for SandboxError {
    fn from(refusal: Refusal) -> Self {
        Self::Unsupported {
            message: refusal.message,
            fix: refusal.fix,
        }
    }
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

/// The level that the settings ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    /// The highest level that works here.
    Best,
    /// Exactly this one.
    Exactly(SandboxLevel),
}

/// The level at which sessions run. The level none is chosen only by name, and a level that does not work is never replaced
/// by a lower one (I7).
///
/// # Errors
/// The missing feature, and its remedy.
pub fn choose(wanted: Wanted, require: SandboxLevel, found: &Findings) -> Result<SandboxLevel, Refusal> {
    let finding = |level| match level {
        SandboxLevel::Isolated => Some(&found.isolated),
        SandboxLevel::Confined => Some(&found.confined),
        SandboxLevel::None => None,
    };
    let level = match wanted {
        Wanted::Exactly(level) => match finding(level) {
            Some(Finding::Missing(why)) => return Err(why.clone()),
            Some(Finding::Works) | None => level,
        },
        Wanted::Best if found.isolated.works() => SandboxLevel::Isolated,
        Wanted::Best => match &found.confined {
            Finding::Works => SandboxLevel::Confined,
            Finding::Missing(why) => return Err(why.clone()),
        },
    };
    if level >= require {
        return Ok(level);
    }
    let word = |level| match level {
        SandboxLevel::None => "none",
        SandboxLevel::Confined => "confined",
        SandboxLevel::Isolated => "isolated",
    };
    let why = match finding(require) {
        Some(Finding::Missing(why)) => format!(" ({})", why.message),
        Some(Finding::Works) | None => String::new(),
    };
    Err(Refusal {
        message: format!(
            "sandbox.require is {:?}, but commands would run at the level {:?}{why}",
            word(require),
            word(level)
        ),
        fix: format!(
            "set sandbox.level to \"auto\" or {:?}, or, if you accept that, sandbox.require = {:?}",
            word(require),
            word(level)
        ),
    })
}

/// Hides this process's memory and environment from the user's other processes (not from root): no debugger, no
/// `/proc/PID/environ`, no core file. For the daemon, which holds credentials; its children start visible again (I8).
///
/// # Errors
/// When the kernel refuses.
pub fn conceal() -> std::io::Result<()> {
    Ok(set_dumpable_behavior(DumpableBehavior::NotDumpable)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use SandboxLevel::{Confined, Isolated, None};

    fn found(isolated: bool, confined: bool) -> Findings {
        let finding = |works, name: &str| {
            if works {
                return Finding::Works;
            }
            Finding::Missing(Refusal {
                message: format!("no {name}"),
                fix: "get it".to_owned(),
            })
        };
        Findings {
            isolated: finding(isolated, "namespaces"),
            builder: Builder::default(),
            confined: finding(confined, "Landlock"),
            landlock_abi: 6,
            root: false,
            broker: Finding::Works,
            kernel: KernelLimits::default(),
        }
    }

    #[test]
    fn i7_an_unavailable_level_is_refused_and_never_lowered() {
        let chosen = |wanted, require, isolated, confined| {
            choose(wanted, require, &found(isolated, confined)).map_err(|refusal| refusal.message)
        };
        let best = Wanted::Best;
        assert_eq!(chosen(best, Confined, true, true), Ok(Isolated));
        assert_eq!(chosen(best, Confined, false, true), Ok(Confined));
        assert_eq!(
            chosen(best, Confined, false, false),
            Err("no Landlock".to_owned())
        );
        assert_eq!(chosen(best, None, false, false), Err("no Landlock".to_owned()));
        assert_eq!(
            chosen(best, Isolated, false, true),
            Err(
                "sandbox.require is \"isolated\", but commands would run at the level \"confined\" (no namespaces)"
                    .to_owned()
            )
        );
        assert_eq!(
            chosen(Wanted::Exactly(Isolated), None, false, true),
            Err("no namespaces".to_owned())
        );
        assert_eq!(
            chosen(Wanted::Exactly(Confined), Confined, true, true),
            Ok(Confined)
        );
        assert_eq!(chosen(Wanted::Exactly(None), None, false, false), Ok(None));
        assert_eq!(
            chosen(Wanted::Exactly(None), Confined, true, true),
            Err("sandbox.require is \"confined\", but commands would run at the level \"none\"".to_owned())
        );
    }
}
