//! `[sandbox]`: how commands are confined, and the resources that they may use.

use crate::web::{Opened, OpenedPlace};
use agentd_protocol::SandboxLevel;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The confinement level of commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SandboxChoice {
    /// The best level that works on this machine.
    Auto,
    /// Namespaces, Landlock and seccomp.
    Isolated,
    /// Landlock and seccomp.
    Confined,
    /// No kernel sandbox.
    None,
}

/// The network access of commands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Network {
    /// None.
    None,
    /// Only these hosts.
    Hosts(Vec<String>),
}

/// An entry of [`Network::Hosts`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reachable {
    /// A host, an address or a network, with the port unless it is the default.
    pub place: Opened,
    /// Every host below this one, but not this one itself (`*.example.org`).
    pub below: bool,
}

impl Reachable {
    /// Parses an entry; `None` if it is invalid.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let below = text.strip_prefix("*.");
        let place = Opened::parse(below.unwrap_or(text))?;
        // An address has nothing below it, and everything below a top-level domain is too broad to be intended.
        let good = match (&place.what, below) {
            (OpenedPlace::Host(name), Some(_)) => name.contains('.'),
            (OpenedPlace::Net(_), Some(_)) => false,
            (_, None) => true,
        };
        good.then_some(Self {
            place,
            below: below.is_some(),
        })
    }
}

impl Network {
    /// The hosts that commands may reach; `None` without network access.
    ///
    /// # Errors
    /// The first invalid entry.
    pub fn hosts(&self) -> Result<Option<Vec<Reachable>>, String> {
        match self {
            Self::None => Ok(None),
            Self::Hosts(hosts) => hosts
                .iter()
                .map(|text| Reachable::parse(text).ok_or_else(|| text.clone()))
                .collect::<Result<_, _>>()
                .map(Some),
        }
    }
}

/// `[sandbox]`: how commands are confined.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SandboxConfig {
    /// The level to use.
    pub level: SandboxChoice,
    /// Refuse sessions below this level.
    pub require: SandboxLevel,
    /// The network access of commands.
    pub network: Network,
    /// Concurrent processes and threads of one session.
    pub max_processes: u64,
    /// Memory of all commands of one session in bytes; 0: half of the machine's.
    pub max_memory_bytes: u64,
    /// Maximum size of a file that a command writes, in bytes.
    pub max_file_bytes: u64,
    /// Maximum number of new files while a command of a session runs.
    pub max_new_files: u64,
    /// Maximum bytes that new and changed files of a session take; 0: half of what is free at its first command.
    pub max_new_bytes: u64,
    /// Free bytes of a disk below which a session is ended that took a part of it.
    pub min_free_bytes: u64,
    /// What commands may read in addition to programs, toolchains and their working directory.
    pub read: Vec<String>,
    /// Environment variables that commands get in addition to the usual ones.
    pub env: Vec<String>,
    /// Whether commands in a shared working directory leave the repositories as they are that were there before.
    pub keep_git: bool,
    /// The time limit of the search for denied paths in the histories of repositories, whose objects are then hidden; zero:
    /// no search, commands read all objects.
    #[serde(with = "crate::duration::plain")]
    pub history_limit: Duration,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_hosts_hosts_below_addresses_or_networks() {
        for (text, below) in [
            ("crates.io", false),
            ("*.github.com", true),
            ("git.corp:2222", false),
            ("127.0.0.1:8080", false),
            ("10.0.0.0/8", false),
        ] {
            assert_eq!(
                Reachable::parse(text).map(|entry| entry.below),
                Some(below),
                "{text}"
            );
        }
        for text in [
            "",
            "*",
            "*.",
            "*.com",
            "*.10.0.0.1",
            "a.*.b",
            "**.a.b",
            "https://a.b",
            "a.b/c",
            "u@a.b",
        ] {
            assert_eq!(Reachable::parse(text), None, "{text}");
        }
    }
}
