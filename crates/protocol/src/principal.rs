//! The author of a request or event.

use serde::{Deserialize, Serialize};
use std::fmt;

/// The author of a request or event: `user:ana` (a local user), `token:ci`, `node:a1`, or `agentd` itself.
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
