//! What confines the commands of agents on this machine.

use crate::verbs::doctor::Check;
use agentd_protocol::SandboxLevel;
use agentd_sandbox::{Finding, Findings, Refusal, Wanted, choose};
use agentd_settings::{Network, SandboxChoice, SandboxConfig};

/// From this version on Landlock keeps signals and abstract sockets inside.
const SCOPES: u32 = 6;

/// The level that is used, and what is missing from a better one. `in_use` is what a running daemon chose; without one the
/// settings tell what it would choose.
pub(super) fn checks(
    in_use: Option<Result<SandboxLevel, Refusal>>,
    settings: Option<&SandboxConfig>,
    found: Option<&Findings>,
) -> Vec<Check> {
    let Some(level) = in_use.or_else(|| settings.and_then(|settings| would_use(settings, found))) else {
        return vec![Check::warn(
            "sandbox",
            "agentd finds out at its start what works here",
            "start agentd; then ask again",
        )];
    };
    match level {
        Err(why) => vec![Check::fail(
            "sandbox",
            format!("no session can be created: {}", why.message),
            why.fix,
        )],
        Ok(SandboxLevel::None) => vec![Check::warn(
            "sandbox",
            "commands of agents run without a kernel sandbox, as the settings ask",
            "set sandbox.level = \"auto\", unless this machine is itself the sandbox",
        )],
        Ok(level) => {
            let mut checks = vec![used(level, found, settings)];
            checks.extend(found.into_iter().flat_map(|found| limits(level, found)));
            checks
        }
    }
}

fn would_use(settings: &SandboxConfig, found: Option<&Findings>) -> Option<Result<SandboxLevel, Refusal>> {
    let wanted = match settings.level {
        SandboxChoice::Auto => Wanted::Best,
        SandboxChoice::Isolated => Wanted::Exactly(SandboxLevel::Isolated),
        SandboxChoice::Confined => Wanted::Exactly(SandboxLevel::Confined),
        SandboxChoice::None if settings.require == SandboxLevel::None => return Some(Ok(SandboxLevel::None)),
        SandboxChoice::None => Wanted::Exactly(SandboxLevel::None),
    };
    found.map(|found| choose(wanted, settings.require, found))
}

fn used(level: SandboxLevel, found: Option<&Findings>, settings: Option<&SandboxConfig>) -> Check {
    let abi = found.map_or(0, |found| found.landlock_abi);
    if level == SandboxLevel::Isolated {
        let network = match settings.map(|settings| &settings.network) {
            Some(Network::Hosts(hosts)) => format!("network through a proxy to {} listed hosts", hosts.len()),
            Some(Network::None) | None => "no network".to_owned(),
        };
        let message = format!("commands run isolated: namespaces, Landlock {abi}, seccomp; {network}");
        return Check::ok("sandbox", message);
    }
    let message = format!(
        "commands run confined: Landlock {abi}, seccomp; no network. Only permission rules guard .git/hooks, .git/config \
         and the permission bits of files outside of the working directory"
    );
    match found.map(|found| &found.isolated) {
        Some(Finding::Missing(why)) => Check::warn(
            "sandbox",
            format!(
                "{message}; the level isolated does not work here: {}",
                why.message
            ),
            why.fix.clone(),
        ),
        _ => Check::ok("sandbox", message),
    }
}

/// What the kernel does not limit here.
fn limits(level: SandboxLevel, found: &Findings) -> Vec<Check> {
    let mut checks = Vec::new();
    if found.landlock_abi < SCOPES && level != SandboxLevel::Isolated {
        checks.push(Check::warn(
            "signals",
            "Landlock of this kernel does not keep commands from signalling other processes of their user",
            "boot Linux 6.12 or later, or install bubblewrap",
        ));
    }
    checks.extend(bounds(found));
    checks
}

/// Who holds the commands of a session to what they may use.
fn bounds(found: &Findings) -> Vec<Check> {
    let fix = "run agentd where it may make cgroups: as a systemd service with Delegate=yes, or as root";
    let processes = match (found.kernel.processes, found.root) {
        (true, _) => Check::ok(
            "processes",
            "the kernel counts the processes of each session (cgroup pids)",
        ),
        (false, true) => Check::warn(
            "processes",
            "agentd runs as root, and no cgroup counts processes here: agentd looks a few times a second and kills \
             sessions that have too many",
            fix,
        ),
        (false, false) => Check::warn(
            "processes",
            "no cgroup counts the processes of each session here: the kernel counts those of the user, and agentd \
             looks a few times a second and kills sessions that have too many",
            fix,
        ),
    };
    let memory = if found.kernel.memory {
        Check::ok(
            "memory",
            "the kernel limits the memory of each session (cgroup memory)",
        )
    } else {
        Check::warn(
            "memory",
            "no cgroup of version 2 limits memory here: the kernel limits each process, and agentd looks a few times a \
             second and kills sessions that use too much. Memory that is not mapped (memfd) is not seen",
            fix,
        )
    };
    let files = Check::ok(
        "files",
        "the kernel limits the size of a file; agentd counts new files and kills sessions that make too many",
    );
    vec![processes, memory, files]
}

#[cfg(test)]
mod tests {
    use super::*;
    use agentd_sandbox::KernelLimits;

    fn found(isolated: bool, confined: bool, root: bool) -> Findings {
        let finding = |works, name: &str| {
            if works {
                return Finding::Works;
            }
            Finding::Missing(Refusal {
                message: format!("no {name}"),
                fix: format!("install {name}"),
            })
        };
        Findings {
            isolated: finding(isolated, "bubblewrap"),
            confined: finding(confined, "Landlock"),
            landlock_abi: 7,
            root,
            kernel: KernelLimits {
                processes: !root,
                memory: !root,
            },
        }
    }

    #[test]
    fn the_level_is_told_with_what_is_missing_and_its_fix() {
        let settings = SandboxConfig::default();
        let best = checks(None, Some(&settings), Some(&found(true, true, false)));
        let used = "commands run isolated: namespaces, Landlock 7, seccomp; no network";
        assert_eq!(best[0], Check::ok("sandbox", used));
        assert!(best.iter().all(|check| check.fix.is_none()), "{best:?}");
        let listed = SandboxConfig {
            network: Network::Hosts(vec!["crates.io".to_owned()]),
            ..SandboxConfig::default()
        };
        let told = checks(None, Some(&listed), Some(&found(true, true, false)));
        assert!(told[0].message.ends_with("a proxy to 1 listed hosts"), "{told:?}");
        let lower = checks(None, Some(&settings), Some(&found(false, true, true)));
        assert!(
            lower[0]
                .message
                .ends_with("isolated does not work here: no bubblewrap"),
            "{lower:?}"
        );
        assert_eq!(lower[0].fix.as_deref(), Some("install bubblewrap"));
        let warned = |name: &str| {
            lower
                .iter()
                .any(|check| check.check == name && check.fix.is_some())
        };
        assert!(
            warned("processes") && warned("memory") && !warned("files"),
            "{lower:?}"
        );
        assert_eq!(
            checks(None, Some(&settings), Some(&found(false, false, true))),
            [Check::fail(
                "sandbox",
                "no session can be created: no Landlock",
                "install Landlock"
            )]
        );
        assert_eq!(
            checks(None, Some(&settings), None),
            [Check::warn(
                "sandbox",
                "agentd finds out at its start what works here",
                "start agentd; then ask again"
            )]
        );
    }

    #[test]
    fn a_running_daemon_is_believed_before_the_settings() {
        let refusal = Refusal {
            message: "no Landlock".to_owned(),
            fix: "install Landlock".to_owned(),
        };
        let settings = SandboxConfig::default();
        assert_eq!(
            checks(
                Some(Err(refusal)),
                Some(&settings),
                Some(&found(true, true, true))
            ),
            [Check::fail(
                "sandbox",
                "no session can be created: no Landlock",
                "install Landlock"
            )]
        );
    }

    #[test]
    fn the_choice_of_none_is_told_even_where_nothing_was_found_out() {
        let settings = SandboxConfig {
            level: SandboxChoice::None,
            require: SandboxLevel::None,
            ..SandboxConfig::default()
        };
        let checks = checks(None, Some(&settings), None);
        assert!(
            checks[0].message.starts_with("commands of agents run without"),
            "{checks:?}"
        );
    }
}
