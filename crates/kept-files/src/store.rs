//! The parts that keep files and bring them back.

use agentd_actor_kit::{Clock, Handle, StoreMsg};
use agentd_checkpoint::Keeper;
use agentd_workspace::Workspaces;

/// Keeps recorded files, and makes workspaces of them. Cheap to clone.
#[derive(Debug, Clone)]
pub struct FileStore {
    /// The recorded files of this machine.
    pub keeper: Keeper,
    /// The workspaces of this machine.
    pub workspaces: Workspaces,
    /// The store.
    pub store: Handle<StoreMsg>,
    /// The present time.
    pub clock: Clock,
    /// The operator's settings.
    pub rules: crate::Rules,
}
