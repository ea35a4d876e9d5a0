//! Checks `sandbox.network`: a valid list of hosts, at a level that can enforce it.

use super::Check;
use crate::sandbox::SandboxChoice;

impl Check<'_> {
    pub(super) fn network(&mut self) {
        let sandbox = &self.settings().sandbox;
        let (hosts, level) = (sandbox.hosts(), sandbox.level);
        if let Err(entry) = &hosts {
            self.require(
                false,
                "sandbox.network",
                &format!("{entry:?} is not a host, address or network"),
                "give \"crates.io\", \"*.github.com\", \"git.example:2222\", \"127.0.0.1:8080\" or \"10.0.0.0/8\"",
            );
        }
        let walls = matches!(level, SandboxChoice::Auto | SandboxChoice::Isolated);
        self.require(
            walls || matches!(hosts, Ok(None)),
            "sandbox.network",
            "a list of hosts needs the level isolated: other levels cannot enforce it",
            "set sandbox.level = \"isolated\", or network = \"none\"",
        );
    }
}
