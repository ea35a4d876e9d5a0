//! The author of a request or event.

use serde::{Deserialize, Serialize};
use std::fmt;

/// The author of a request or event: `user:ana` (a local user), `token:ci`, `node:a1/ana` (a local user of another node), or
/// `agentd` itself.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(transparent)]
pub struct Principal(pub String);

impl Principal {
    /// The author of agentd's own decisions.
    #[must_use]
    pub fn agentd() -> Self {
        Self("agentd".to_owned())
    }

    /// A local user, by name.
    #[must_use]
    pub fn user(name: &str) -> Self {
        Self(format!("user:{name}"))
    }

    /// A local user of another node, which vouches for the name. It is none of `user:NAME`.
    #[must_use]
    pub fn user_of_node(node: &str, name: &str) -> Self {
        Self(format!("node:{node}/{name}"))
    }

    /// The name of the local user, if it is one of this node.
    #[must_use]
    pub fn as_user(&self) -> Option<&str> {
        self.0.strip_prefix("user:")
    }

    /// A token, by name.
    #[must_use]
    pub fn token(name: &str) -> Self {
        Self(format!("token:{name}"))
    }

    /// The name of the token, if it is one.
    #[must_use]
    pub fn as_token(&self) -> Option<&str> {
        self.0.strip_prefix("token:")
    }
}

impl fmt::Display for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
