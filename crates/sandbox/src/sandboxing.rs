//! How a node confines the commands of its sessions: decided once, at its start.

use crate::confinement::{Confinement, is_of_the_system};
use crate::hidden::Hidden;
use crate::slot::{WardenSlot, WardenSpec};
use agentd_protected::ProtectedPaths;
use agentd_protocol::SandboxLevel;
use agentd_protocol::sandbox::{Builder, Refusal};
use std::path::{Path, PathBuf};

/// The confinement of all commands on a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sandboxing {
    /// None, except for the environment by allow-list: the operator asked for this by name.
    None,
    /// A sandbox.
    Walls {
        /// The level.
        level: SandboxLevel,
        /// What creates the namespaces of isolated sessions.
        builder: Builder,
        /// The parent of the sessions' temporary directories.
        temp: PathBuf,
        /// What commands may read apart from their own directories.
        read: Vec<PathBuf>,
        /// The paths there that they must not read.
        hidden: Hidden,
        /// Which paths of a working directory commands must not write.
        protected: ProtectedPaths,
        /// Whether the warden performs the calls that change names and modes.
        broker: bool,
        /// The directory of the workspaces: [`crate::Annex`].
        workspaces: PathBuf,
    },
    /// The sandbox that the settings ask for is unavailable: no command runs.
    Missing(Refusal),
}

impl Sandboxing {
    /// The level that tool calls are recorded with.
    #[must_use]
    pub const fn level(&self) -> SandboxLevel {
        match self {
            Self::Walls { level, .. } => *level,
            Self::None | Self::Missing(_) => SandboxLevel::None,
        }
    }

    /// Why no command runs, if so.
    #[must_use]
    pub const fn refusal(&self) -> Option<&Refusal> {
        match self {
            Self::Missing(why) => Some(why),
            Self::None | Self::Walls { .. } => None,
        }
    }

    /// The same sandbox for one program that needs nothing but itself and the system's libraries.
    #[must_use]
    pub fn only_for(&self, program: &Path) -> Self {
        let mut narrowed = self.clone();
        if let Self::Walls { read, hidden, .. } = &mut narrowed {
            read.retain(|path| is_of_the_system(path));
            read.push(program.to_owned());
            *hidden = Hidden::default();
        }
        narrowed
    }

    /// Creates a slot for a warden in this sandbox. `name` identifies its owner and names its temporary directory.
    #[must_use]
    pub fn slot(&self, spec: WardenSpec, name: &str) -> WardenSlot {
        match self {
            Self::None => WardenSlot::new(spec),
            Self::Missing(why) => WardenSlot::refusing(spec, why.clone()),
            Self::Walls {
                level,
                builder,
                temp,
                read,
                hidden,
                protected,
                broker,
                workspaces,
            } => {
                let mut read = read.clone();
                read.retain(|path| !hidden.matches(&spec.workdir, path));
                let walls = Confinement {
                    builder: *builder,
                    hidden: hidden.clone(),
                    protected: protected.clone(),
                    broker: *broker,
                    workspaces: Some(workspaces.clone()),
                    ..Confinement::new(*level, temp.join(name), read)
                };
                WardenSlot::confined(spec, walls)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn i7_a_sandbox_for_one_program_contains_it_and_the_system_and_nothing_else() {
        let read = [
            "/usr",
            "/lib64",
            "/etc/ld.so.cache",
            "/etc/passwd",
            "/home/ana/.cargo/bin",
            "/srv/models",
        ];
        let walls = Sandboxing::Walls {
            level: SandboxLevel::Confined,
            builder: Builder::default(),
            temp: "/data/tmp".into(),
            read: read.map(PathBuf::from).to_vec(),
            hidden: Hidden::by(|_, _| true),
            protected: ProtectedPaths::default(),
            broker: true,
            workspaces: "/data/workspaces".into(),
        };
        let Sandboxing::Walls {
            level, read, hidden, ..
        } = walls.only_for(Path::new("/srv/agentd/agentd-tags"))
        else {
            panic!("the walls are gone");
        };
        let expected = ["/usr", "/lib64", "/etc/ld.so.cache", "/srv/agentd/agentd-tags"];
        assert_eq!(
            (level, read),
            (SandboxLevel::Confined, expected.map(PathBuf::from).to_vec())
        );
        // A rule about files must not hide the program: it would not start.
        assert_eq!(hidden, Hidden::default());
        for other in [
            Sandboxing::None,
            Sandboxing::Missing(Refusal {
                message: "no".into(),
                fix: "yes".into(),
            }),
        ] {
            assert_eq!(other.only_for(Path::new("/x")), other);
        }
    }
}
