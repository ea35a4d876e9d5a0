//! The answer of `node.reload`.

use serde::{Deserialize, Serialize};

/// What a reload did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reloaded {
    /// The files that were read.
    pub files: Vec<String>,
    /// The keys that have other values now.
    pub changed: Vec<String>,
    /// What has changed in the files and needs a restart.
    pub restart: Vec<String>,
    /// Sessions that waited for a credential and try again.
    pub tried: u64,
}
