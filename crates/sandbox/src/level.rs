//! Which levels of the sandbox there are here, and which one is used.

use crate::confinement::Builder;
use crate::error::SandboxError;
use crate::leaf::KernelLimits;
use agentd_protocol::SandboxLevel;
use rustix::process::{DumpableBehavior, set_dumpable_behavior};
use serde::{Deserialize, Serialize};

/// What was found out about a level.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Finding {
    /// A command ran at it, and what must not work did not work.
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

/// What is missing, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    /// What.
    pub message: String,
    /// The way out.
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

/// What was found out about this machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Findings {
    /// Namespaces, Landlock and seccomp.
    pub isolated: Finding,
    /// What makes the namespaces.
    #[serde(default)]
    pub builder: Builder,
    /// Landlock and seccomp.
    pub confined: Finding,
    /// The version of Landlock's interface; 0 when there is none. Below 6 commands can signal other sessions' processes.
    pub landlock_abi: u32,
    /// The daemon runs as root, whom a limit of processes does not hold back.
    pub root: bool,
    /// The broker that keeps commands from protected names, and from modes and times outside. Both levels use it where
    /// it works, and stand without it.
    #[serde(default = "unknown")]
    pub broker: Finding,
    /// What the kernel limits for each session by itself.
    #[serde(default)]
    pub kernel: KernelLimits,
}

/// What findings of an earlier version say.
fn unknown() -> Finding {
    Finding::Missing(Refusal {
        message: "not tried yet".to_owned(),
        fix: "start agentd again".to_owned(),
    })
}

/// Which level the settings ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    /// The best that works here.
    Best,
    /// This one and no other.
    Exactly(SandboxLevel),
}

/// The level at which sessions run. None is never chosen unless it was asked for by name, and a level that does not work
/// is never replaced by a lower one (I7).
///
/// # Errors
/// What is missing, and what to do.
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
            "sandbox.require is {:?} and commands would run at {:?}{why}",
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

/// Hides this process's memory and environment from other processes of the same user (not from root): no debugger, no
/// `/proc/PID/environ`, no core file. For the daemon, which holds credentials; wardens and commands start visible again (I8).
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
    fn i7_a_level_that_is_not_there_is_refused_and_never_lowered() {
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
                "sandbox.require is \"isolated\" and commands would run at \"confined\" (no namespaces)"
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
            Err("sandbox.require is \"confined\" and commands would run at \"none\"".to_owned())
        );
    }
}
