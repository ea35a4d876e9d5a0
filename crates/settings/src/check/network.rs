//! Checks `sandbox.network` and `workspace.setup_network`: valid lists of hosts, at a level that can enforce them.

use super::Check;
use crate::sandbox::{Reachable, SandboxChoice};

impl Check<'_> {
    pub(super) fn network(&mut self) {
        let settings = self.settings();
        let of_commands = settings.sandbox.network.hosts();
        let of_setup = settings.workspace.setup_network.hosts();
        self.hosts("sandbox.network", &of_commands);
        self.hosts("workspace.setup_network", &of_setup);
    }

    fn hosts(&mut self, key: &'static str, hosts: &Result<Option<Vec<Reachable>>, String>) {
        let level = self.settings().sandbox.level;
        if let Err(entry) = hosts {
            self.require(
                false,
                key,
                &format!("{entry:?} is not a host, address or network"),
                "give \"crates.io\", \"*.github.com\", \"git.example:2222\", \"127.0.0.1:8080\" or \"10.0.0.0/8\"",
            );
        }
        let walls = matches!(level, SandboxChoice::Auto | SandboxChoice::Isolated);
        self.require(
            walls || matches!(hosts, Ok(None)),
            key,
            "a list of hosts needs the level isolated: other levels cannot enforce it",
            "set sandbox.level = \"isolated\", or remove the list (\"none\")",
        );
    }
}
