//! The names of the root's children.

use std::fmt;

/// A child of the root.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Child {
    Feed,
    SessionStore,
    /// One per provider.
    ModelClient(String),
    Indexer,
    ToolExecutor,
    PermissionGate,
    LoopSupervisor,
    /// By its name.
    Service(&'static str),
}

impl fmt::Display for Child {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Feed => f.write_str("the feed"),
            Self::SessionStore => f.write_str("the session store"),
            Self::ModelClient(provider) => write!(f, "the model client of {provider}"),
            Self::Indexer => f.write_str("the indexer"),
            Self::ToolExecutor => f.write_str("the tool executor"),
            Self::PermissionGate => f.write_str("the permission gate"),
            Self::LoopSupervisor => f.write_str("the loop supervisor"),
            Self::Service(name) => f.write_str(name),
        }
    }
}
