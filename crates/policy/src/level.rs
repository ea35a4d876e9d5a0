//! The level of the sandbox at which sessions run: from what the settings ask for and what works on the machine.

use agentd_protocol::SandboxLevel;
use agentd_protocol::sandbox::{Finding, Findings, Refusal};

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
pub fn choose_level(
    wanted: Wanted,
    require: SandboxLevel,
    found: &Findings,
) -> Result<SandboxLevel, Refusal> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use SandboxLevel::{Confined, Isolated, None};
    use agentd_protocol::sandbox::{Builder, KernelLimits};

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
            choose_level(wanted, require, &found(isolated, confined)).map_err(|refusal| refusal.message)
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
