//! The answer of `node.check`.

use serde::{Deserialize, Serialize};

/// The findings of a check of the store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct StoreCheck {
    /// The problems; empty if the store is sound.
    pub problems: Vec<String>,
    /// What could damage the store in the future, each with its remedy: settings of a database server.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// Sessions checked.
    pub sessions: u64,
    /// Events checked.
    pub events: u64,
    /// Bytes checked.
    pub bytes: u64,
}
