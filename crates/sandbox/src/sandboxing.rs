//! How a node confines the commands of its sessions: decided once at its start.

use crate::confinement::Confinement;
use crate::level::Refusal;
use crate::slot::{WardenSlot, WardenSpec};
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
        /// The sessions' temporary directories are made in here.
        temp: PathBuf,
        /// What commands may read besides their own directories.
        read: Vec<PathBuf>,
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
            Self::Walls { level, temp, read } => {
                let walls = Confinement {
                    level: *level,
                    temp: temp.join(name),
                    read: read.clone(),
                };
                WardenSlot::confined(spec, walls)
            }
        }
    }
}
