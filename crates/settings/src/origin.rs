//! Where a key was set.

use agentd_protocol::Preset;
use std::fmt;
use std::path::PathBuf;

/// Where a key was set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// The shipped file, at this line.
    Shipped(usize),
    /// The preset in `loop.preset`.
    Preset(Preset),
    /// A file, at this line.
    File(PathBuf, usize),
    /// An environment variable.
    Environment(String),
    /// A flag.
    Flag(String),
}

impl Origin {
    /// Whether an operator set the value. Otherwise it is a built-in default or part of a preset.
    #[must_use]
    pub const fn is_operator(&self) -> bool {
        matches!(self, Self::File(..) | Self::Environment(_) | Self::Flag(_))
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Shipped(line) => write!(f, "the defaults (config/agentd.toml:{line})"),
            Self::Preset(preset) => write!(f, "loop.preset = {}", preset.as_str()),
            Self::File(path, line) => write!(f, "{}:{line}", path.display()),
            Self::Environment(name) => write!(f, "environment variable {name}"),
            Self::Flag(name) => write!(f, "flag {name}"),
        }
    }
}
