//! How a node confines the commands of its sessions: decided once at its start.

use crate::confinement::{Builder, Confinement};
use crate::hidden::Hidden;
use crate::level::Refusal;
use crate::slot::{WardenSlot, WardenSpec};
use agentd_protected::ProtectedPaths;
use agentd_protocol::SandboxLevel;
use std::path::PathBuf;

/// What is around the commands of every session of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sandboxing {
    /// Nothing but the environment by allow-list: the operator's choice by name.
    None,
    /// Walls.
    Walls {
        /// How strong.
        level: SandboxLevel,
        /// What makes the namespaces of isolated sessions.
        builder: Builder,
        /// The sessions' temporary directories are made in here.
        temp: PathBuf,
        /// What commands may read besides their own directories.
        read: Vec<PathBuf>,
        /// What they may not read there.
        hidden: Hidden,
        /// Which paths of a working directory commands must not write.
        protected: ProtectedPaths,
        /// The warden carries out calls that change names and modes.
        broker: bool,
    },
    /// The walls that the settings ask for are not there: no command runs.
    Missing(Refusal),
}

impl Sandboxing {
    /// The level that calls are recorded with.
    #[must_use]
    pub const fn level(&self) -> SandboxLevel {
        match self {
            Self::Walls { level, .. } => *level,
            Self::None | Self::Missing(_) => SandboxLevel::None,
        }
    }

    /// Why no command runs, if none does.
    #[must_use]
    pub const fn refusal(&self) -> Option<&Refusal> {
        match self {
            Self::Missing(why) => Some(why),
            Self::None | Self::Walls { .. } => None,
        }
    }

    /// A place for a warden behind these walls. `name` is its owner's and names its temporary directory.
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
            } => {
                let mut read = read.clone();
                read.retain(|path| !hidden.matches(&spec.workdir, path));
                let walls = Confinement {
                    builder: *builder,
                    hidden: hidden.clone(),
                    protected: protected.clone(),
                    broker: *broker,
                    ..Confinement::new(*level, temp.join(name), read)
                };
                WardenSlot::confined(spec, walls)
            }
        }
    }
}
