//! The table of guards: for each level, which mechanism enforces a guard. `agentctl doctor`, the daemon's start,
//! `ps -o wide` and docs/security.md read this one table.

use agentd_protocol::SandboxLevel;
use agentd_protocol::sandbox::Findings;
use std::fmt;

/// How a guard is enforced at a level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hold {
    /// The kernel or the warden enforces it, by these means.
    By(&'static str),
    /// Only permission rules check it, before a command starts, and they read text.
    Text,
    /// Nothing enforces it.
    Open,
}

impl Hold {
    /// Whether more than a check of text enforces it.
    #[must_use]
    pub const fn holds(self) -> bool {
        matches!(self, Self::By(_))
    }
}

impl fmt::Display for Hold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::By(means) => means,
            Self::Text => "by text only",
            Self::Open => "**not guarded**",
        })
    }
}

/// A kernel feature that a guard depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Needs {
    Nothing,
    /// Landlock's ABI 6, where there is no process namespace.
    Scopes,
    /// A cgroup that counts processes.
    Processes,
    /// A cgroup that limits memory.
    Memory,
    /// The path broker; without it, this mechanism enforces the guard.
    Broker {
        isolated: Hold,
        confined: Hold,
    },
}

/// One row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Guard {
    /// The protected object, in words.
    pub what: &'static str,
    isolated: Hold,
    confined: Hold,
    none: Hold,
    needs: Needs,
}

/// The Landlock ABI that confines signals and abstract sockets.
const SCOPES: u32 = 6;
const WATCH: Hold = Hold::By("checks a few times per second");

use Hold::{By, Open, Text};

const fn row(what: &'static str, isolated: Hold, confined: Hold, none: Hold) -> Guard {
    Guard {
        what,
        isolated,
        confined,
        none,
        needs: Needs::Nothing,
    }
}

const fn needing(needs: Needs, guard: Guard) -> Guard {
    Guard { needs, ..guard }
}

/// Every guard.
const GUARDS: [Guard; 23] = [
    row(
        "writes outside the working directory",
        By("mounts, Landlock"),
        By("Landlock"),
        Text,
    ),
    row(
        "reads of home, credentials and other sessions",
        By("mounts, Landlock"),
        By("Landlock"),
        Text,
    ),
    needing(
        Needs::Broker {
            isolated: By("read-only mounts"),
            confined: Text,
        },
        row(
            "existing git metadata and files that run by themselves",
            By("read-only mounts, path broker"),
            By("path broker"),
            Text,
        ),
    ),
    needing(
        Needs::Broker {
            isolated: Text,
            confined: Text,
        },
        row(
            "new git metadata and files that run by themselves",
            By("path broker"),
            By("path broker"),
            Text,
        ),
    ),
    row(
        "reads that rules deny in the working directory",
        By("unreadable mounts"),
        Text,
        Text,
    ),
    needing(
        Needs::Broker {
            isolated: Text,
            confined: Text,
        },
        row(
            "writes that rules deny in the working directory",
            By("read-only mounts, path broker"),
            By("path broker"),
            Text,
        ),
    ),
    needing(
        Needs::Broker {
            isolated: By("mounts"),
            confined: Open,
        },
        row(
            "modes, owners and times of outside files",
            By("mounts, path broker"),
            By("path broker"),
            Open,
        ),
    ),
    row(
        "set-user-id bits",
        By("seccomp, nosuid mounts"),
        By("seccomp"),
        Open,
    ),
    row(
        "TCP",
        By("network namespace, seccomp"),
        By("Landlock, seccomp"),
        Open,
    ),
    row(
        "UDP, raw and other sockets",
        By("network namespace, seccomp"),
        By("seccomp"),
        Open,
    ),
    needing(
        Needs::Broker {
            isolated: By("mounts, network namespace, seccomp"),
            confined: By("seccomp"),
        },
        row(
            "Unix sockets, also the daemon's",
            By("mounts, network namespace, path broker"),
            By("seccomp"),
            By("ancestry check"),
        ),
    ),
    needing(
        Needs::Scopes,
        row(
            "signals to other processes",
            By("process namespace"),
            By("Landlock, seccomp"),
            Open,
        ),
    ),
    row(
        "memory and environment of other processes",
        By("process namespace, seccomp"),
        By("Landlock, seccomp"),
        Open,
    ),
    row(
        "the user's shared memory and queues",
        By("ipc namespace"),
        By("seccomp"),
        Open,
    ),
    row(
        "mounts, namespaces, io_uring, bpf, keys",
        By("seccomp"),
        By("seccomp"),
        Open,
    ),
    row("devices", By("private /dev, Landlock"), By("Landlock"), Open),
    row(
        "capabilities and set-user-id programs",
        By("all dropped, no_new_privs"),
        By("all dropped, no_new_privs"),
        Open,
    ),
    row(
        "processes left behind",
        By("the kernel, with the namespace"),
        By("the warden"),
        By("the warden, then the daemon"),
    ),
    row(
        "processes started by others: cron, systemd",
        By("mounts, network namespace"),
        By("Landlock, seccomp"),
        Open,
    ),
    needing(
        Needs::Processes,
        row("number of processes", By("cgroup"), By("cgroup"), By("cgroup")),
    ),
    needing(
        Needs::Memory,
        row("memory", By("cgroup"), By("cgroup"), By("cgroup")),
    ),
    row("disk space", By("the warden"), By("the warden"), By("the warden")),
    row(
        "secrets in the environment, open descriptors",
        By("allow-list"),
        By("allow-list"),
        By("allow-list"),
    ),
];

impl Guard {
    /// The enforcement at a level on a machine with every feature.
    #[must_use]
    pub const fn at(&self, level: SandboxLevel) -> Hold {
        match level {
            SandboxLevel::Isolated => self.isolated,
            SandboxLevel::Confined => self.confined,
            SandboxLevel::None => self.none,
        }
    }

    /// The enforcement at a level on this machine, as far as probed.
    #[must_use]
    pub fn here(&self, level: SandboxLevel, found: Option<&Findings>) -> Hold {
        let Some(found) = found else {
            return self.at(level);
        };
        match self.needs {
            Needs::Scopes if level == SandboxLevel::Confined && found.landlock_abi < SCOPES => Hold::Open,
            Needs::Processes if !found.kernel.processes => WATCH,
            Needs::Memory if !found.kernel.memory => WATCH,
            Needs::Broker { isolated, confined } if !found.broker.works() => match level {
                SandboxLevel::Isolated => isolated,
                SandboxLevel::Confined => confined,
                SandboxLevel::None => self.none,
            },
            Needs::Nothing | Needs::Scopes | Needs::Processes | Needs::Memory | Needs::Broker { .. } => {
                self.at(level)
            }
        }
    }
}

/// The remaining abilities of a hostile tool at the level none, for the log and `agentctl doctor`.
pub const RISK_OF_NONE: &str = "a hostile tool acts as the daemon's user: it can change the user's files, read the tokens that the \
    user keeps in files, kill the daemon, and start a process through cron or systemd that answers other sessions' approvals \
    (control.local_approvals = false refuses all answers over the socket)";

/// Lists all guards.
#[must_use]
pub const fn guards() -> &'static [Guard] {
    &GUARDS
}

/// Lists the guards that no mechanism enforces at a level on this machine.
#[must_use]
pub fn gaps(level: SandboxLevel, found: Option<&Findings>) -> Vec<(&'static str, Hold)> {
    let held = GUARDS.iter().map(|guard| (guard.what, guard.here(level, found)));
    held.filter(|(_, hold)| !hold.holds()).collect()
}

/// The gaps in words: `by text only: A, B; not guarded: C`. Empty if there are none.
#[must_use]
pub fn gaps_in_words(level: SandboxLevel, found: Option<&Findings>) -> String {
    let gaps = gaps(level, found);
    let of = |kind: Hold, words: &str| {
        let names: Vec<_> = gaps
            .iter()
            .filter(|(_, hold)| *hold == kind)
            .map(|(what, _)| *what)
            .collect();
        (!names.is_empty()).then(|| format!("{words}: {}", names.join("; ")))
    };
    let parts = [of(Hold::Text, "by text only"), of(Hold::Open, "not guarded")];
    parts.into_iter().flatten().collect::<Vec<_>>().join(". ")
}

/// The level, with the number of its gaps, if any: `confined, 5 gaps`.
#[must_use]
pub fn level_in_words(level: SandboxLevel, found: Option<&Findings>) -> String {
    let word = match level {
        SandboxLevel::Isolated => "isolated",
        SandboxLevel::Confined => "confined",
        SandboxLevel::None => "none",
    };
    match gaps(level, found).len() {
        0 => word.to_owned(),
        1 => format!("{word}, 1 gap"),
        count => format!("{word}, {count} gaps"),
    }
}

#[cfg(test)]
mod tests;
