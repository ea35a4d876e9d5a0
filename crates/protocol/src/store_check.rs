//! The answer of `node.check`.

use serde::{Deserialize, Serialize};

/// What a check of the store found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct StoreCheck {
    /// The problems; empty if the store is sound.
    pub problems: Vec<String>,
    /// Sessions checked.
    pub sessions: u64,
    /// Events checked.
    pub events: u64,
    /// Bytes checked.
    pub bytes: u64,
}
