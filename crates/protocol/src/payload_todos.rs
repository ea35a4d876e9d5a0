//! Payloads of the agent's list of things to do, which it keeps without any outside effect.

use crate::ids::ToolCallId;
use serde::{Deserialize, Serialize};

/// The progress of an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum TodoStatus {
    /// Not started.
    Pending,
    /// In progress.
    InProgress,
    /// Done.
    Completed,
}

/// One item of the list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct TodoItem {
    /// The task.
    pub content: String,
    /// Its progress.
    pub status: TodoStatus,
}

/// `todo.updated`: the whole current list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct TodoUpdated {
    /// The call that changed it.
    pub tool_call: ToolCallId,
    /// The list.
    #[serde(default)]
    pub items: Vec<TodoItem>,
}
