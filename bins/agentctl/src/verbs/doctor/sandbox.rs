//! Checks of the sandbox that confines agents' commands on this machine.

use crate::verbs::doctor::Check;
use agentd_policy::{
    Policy, RISK_OF_NONE, Rule, Source, Wanted, by_text_only, choose_level, gaps, gaps_in_words, guards,
};
use agentd_protected::secret_settings;
use agentd_protocol::SandboxLevel;
use agentd_protocol::sandbox::{Choice, Finding, Findings};
use agentd_settings::{Network, SandboxChoice, SandboxConfig};
use std::path::Path;

/// From this ABI version on, Landlock confines signals and abstract sockets.
const SCOPES: u32 = 6;

/// The level in use, and what a better one lacks. `in_use` is the choice of a running daemon; without one, the settings
/// tell which level it would choose.
pub(super) fn checks(
    in_use: Option<Choice>,
    settings: Option<&SandboxConfig>,
    found: Option<&Findings>,
) -> Vec<Check> {
    let Some(level) = in_use.or_else(|| settings.and_then(|settings| would_use(settings, found))) else {
        return vec![Check::warn(
            "sandbox",
            "agentd determines the available sandbox when it starts",
            "start agentd, then run doctor again",
        )];
    };
    match level {
        Err(why) => vec![Check::fail(
            "sandbox",
            format!("no session can be created: {}", why.message),
            why.fix,
        )],
        Ok(SandboxLevel::None) => {
            let mut checks = vec![Check::warn(
                "sandbox",
                format!("commands run without a kernel sandbox, as configured: {RISK_OF_NONE}"),
                "set sandbox.level = \"auto\", unless this machine is itself the sandbox",
            )];
            checks.extend(levels(found));
            checks
        }
        Ok(level) => {
            let mut checks = vec![used(level, found, settings)];
            checks.extend(levels(found));
            checks.extend(found.into_iter().flat_map(|found| limits(level, found)));
            checks
        }
    }
}

fn would_use(settings: &SandboxConfig, found: Option<&Findings>) -> Option<Choice> {
    let wanted = match settings.level {
        SandboxChoice::Auto => Wanted::Best,
        SandboxChoice::Isolated => Wanted::Exactly(SandboxLevel::Isolated),
        SandboxChoice::Confined => Wanted::Exactly(SandboxLevel::Confined),
        SandboxChoice::None if settings.require == SandboxLevel::None => return Some(Ok(SandboxLevel::None)),
        SandboxChoice::None => Wanted::Exactly(SandboxLevel::None),
    };
    found.map(|found| choose_level(wanted, settings.require, found))
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
    let message = format!("commands run confined: Landlock {abi}, seccomp; no network");
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

/// The guards of each level on this machine, and their gaps.
fn levels(found: Option<&Findings>) -> Vec<Check> {
    let level = |name: &'static str, level| {
        let missing = found.and_then(|found| match (level, &found.isolated, &found.confined) {
            (SandboxLevel::Isolated, Finding::Missing(why), _)
            | (SandboxLevel::Confined, _, Finding::Missing(why)) => Some(why),
            _ => None,
        });
        let all = guards().len();
        let held = all - gaps(level, found).len();
        Check::ok(
            name,
            match (missing, gaps_in_words(level, found)) {
                (Some(why), _) => format!("does not work here: {}", why.message),
                (None, gaps) if gaps.is_empty() => format!("guards {held} of {all}"),
                (None, gaps) => format!("guards {held} of {all}. {gaps}"),
            },
        )
    };
    vec![
        level("isolated", SandboxLevel::Isolated),
        level("confined", SandboxLevel::Confined),
        level("none", SandboxLevel::None),
    ]
}

/// Notable limits on what agents' commands may read: settings files that hold credentials are kept from them, and some
/// rules look only at a command's text.
pub(super) fn reading(home: Option<&Path>, rules: &[String], level: SandboxLevel) -> Vec<Check> {
    let mut checks = Vec::new();
    let secret = home.map(secret_settings).unwrap_or_default();
    if !secret.is_empty() && level != SandboxLevel::None {
        let names: Vec<String> = secret.iter().map(|path| path.display().to_string()).collect();
        checks.push(Check::warn(
            "settings",
            format!("commands cannot read {}: it seems to contain a credential", names.join(" and ")),
            "move the credential into a credential helper or into ~/.git-credentials to make the rest readable",
        ));
    }
    let parsed = rules
        .iter()
        .filter_map(|rule| Rule::parse(rule, Source::Operator).ok());
    let policy = Policy::new(home.and_then(Path::to_str)).with(parsed.collect());
    let text = by_text_only(&policy, level);
    if !text.is_empty() {
        let shown: Vec<&str> = text.iter().take(3).map(String::as_str).collect();
        let more = if text.len() > shown.len() { ", ..." } else { "" };
        checks.push(Check::warn(
            "rules",
            format!(
                "the sandbox does not enforce these deny rules for reading; agentd checks only a command's text ({}): {}{more}",
                text.len(),
                shown.join(", ")
            ),
            "keep such files out of working directories; see the limits in `agentctl help rules`",
        ));
    }
    checks
}

/// Which limits the kernel enforces here.
fn limits(level: SandboxLevel, found: &Findings) -> Vec<Check> {
    let mut checks = vec![names(found)];
    if found.landlock_abi < SCOPES && level != SandboxLevel::Isolated {
        checks.push(Check::warn(
            "signals",
            "Landlock of this kernel does not prevent commands from signalling other processes of the same user",
            "boot Linux 6.12 or later, or enable the level isolated",
        ));
    }
    checks.extend(bounds(found));
    checks
}

/// Whether commands are kept from file names that run code, and from modes and times outside the working directory.
fn names(found: &Findings) -> Check {
    match &found.broker {
        Finding::Works => Check::ok(
            "names",
            "commands cannot write git metadata or other protected names, or change modes and times of files outside",
        ),
        Finding::Missing(why) => Check::warn(
            "names",
            format!(
                "only permission rules protect git metadata and other protected names, and the modes and times of the \
                 user's files, from commands: {}",
                why.message
            ),
            why.fix.clone(),
        ),
    }
}

/// What enforces the resource limits of a session's commands.
fn bounds(found: &Findings) -> Vec<Check> {
    let fix = if found.root {
        "run agentd where it can create cgroups: as a systemd service with Delegate=yes, or in a container with a writable \
         /sys/fs/cgroup"
    } else {
        "run agentd where it can create cgroups: as a systemd service with Delegate=yes, or as root"
    };
    let processes = match (found.kernel.processes, found.root) {
        (true, _) => Check::ok(
            "processes",
            "the kernel counts the processes of each session (cgroup pids)",
        ),
        (false, true) => Check::warn(
            "processes",
            "agentd runs as root without a cgroup that counts processes: agentd checks a few times per second and \
             kills sessions that have too many",
            fix,
        ),
        (false, false) => Check::warn(
            "processes",
            "no cgroup counts the processes of each session: the kernel counts those of the user, and agentd \
             checks a few times per second and kills sessions that have too many",
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
            "no version 2 cgroup limits memory: the kernel limits each process, and agentd checks a few times per \
             second and kills sessions that use too much. Unmapped memory (memfd) is not counted",
            fix,
        )
    };
    let files = Check::ok(
        "files",
        "the kernel limits the size of a file; agentd counts new files and kills sessions that create too many",
    );
    vec![processes, memory, files]
}

#[cfg(test)]
mod tests {
    use super::*;
    use agentd_protocol::sandbox::{Builder, KernelLimits, Refusal};

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
            isolated: finding(isolated, "namespaces"),
            builder: Builder::default(),
            confined: finding(confined, "Landlock"),
            landlock_abi: 7,
            root,
            broker: Finding::Works,
            kernel: KernelLimits {
                processes: !root,
                memory: !root,
            },
        }
    }

    #[test]
    fn directories_hidden_from_commands_are_reported() {
        let home = tempfile::tempdir().unwrap();
        let rules = ["deny Read(**/.env)".to_owned(), "deny Read(~/.ssh/**)".to_owned()];
        let messages = |level| -> Vec<String> {
            let checks = reading(Some(home.path()), &rules, level);
            checks.into_iter().map(|check| check.message).collect()
        };
        let confined = messages(SandboxLevel::Confined);
        assert_eq!(
            confined,
            [
                "the sandbox does not enforce these deny rules for reading; agentd checks only a command's text (1): deny Read(**/.env)"
            ]
        );
        std::fs::write(home.path().join(".gitconfig"), "[github]\n token = x\n").unwrap();
        assert!(messages(SandboxLevel::Confined)[0].contains("/.gitconfig: it seems"));
        assert!(messages(SandboxLevel::None)[0].contains("text (2): "));
    }

    #[test]
    fn the_level_is_reported_with_gaps_and_fixes() {
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
                .ends_with("isolated does not work here: no namespaces"),
            "{lower:?}"
        );
        assert_eq!(lower[0].fix.as_deref(), Some("install namespaces"));
        let of = |name: &str| {
            let mut named = lower.iter().filter(|check| check.check == name);
            named.next().unwrap().message.clone()
        };
        assert_eq!(of("isolated"), "does not work here: no namespaces");
        assert!(
            of("confined").ends_with("by text only: reads that rules deny in the working directory"),
            "{lower:?}"
        );
        assert!(
            of("none").contains("not guarded: modes, owners and times"),
            "{lower:?}"
        );
        let warned = |name: &str| {
            lower
                .iter()
                .any(|check| check.check == name && check.fix.is_some())
        };
        assert!(
            warned("processes") && warned("memory") && !warned("files"),
            "{lower:?}"
        );
        // This one runs as root already.
        let advice = lower.iter().filter_map(|check| check.fix.as_deref());
        assert!(advice.clone().all(|fix| !fix.contains("as root")), "{lower:?}");
        assert_eq!(advice.filter(|fix| fix.contains("/sys/fs/cgroup")).count(), 2);
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
                "agentd determines the available sandbox when it starts",
                "start agentd, then run doctor again"
            )]
        );
    }

    #[test]
    fn unguarded_names_are_reported() {
        let refusal = Refusal {
            message: "EBUSY".to_owned(),
            fix: "leave the container".to_owned(),
        };
        let gap = Findings {
            broker: Finding::Missing(refusal),
            ..found(true, true, false)
        };
        let told = checks(None, Some(&SandboxConfig::default()), Some(&gap));
        let names = told.iter().find(|check| check.check == "names").unwrap();
        assert!(names.message.ends_with("from commands: EBUSY"), "{names:?}");
        assert_eq!(names.fix.as_deref(), Some("leave the container"));
    }

    #[test]
    fn a_running_daemon_takes_precedence_over_the_settings() {
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
    fn level_none_is_reported_even_without_a_probe() {
        let settings = SandboxConfig {
            level: SandboxChoice::None,
            require: SandboxLevel::None,
            ..SandboxConfig::default()
        };
        let checks = checks(None, Some(&settings), None);
        assert!(
            checks[0].message.starts_with("commands run without"),
            "{checks:?}"
        );
    }
}
