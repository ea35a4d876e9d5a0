//! Payloads of what an agent does by talking alone: its list of things to do.

use crate::ids::ToolCallId;
use serde::{Deserialize, Serialize};

/// How far a thing to do is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TodoStatus {
    /// Not begun.
    Pending,
    /// Being done.
    InProgress,
    /// Done.
    Completed,
}

/// One thing to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TodoItem {
    /// What.
    pub content: String,
    /// How far it is.
    pub status: TodoStatus,
}

/// `todo.updated`: the whole list as it is now.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TodoUpdated {
    /// The call that did it.
    pub tool_call: ToolCallId,
    /// The list.
    #[serde(default)]
    pub items: Vec<TodoItem>,
}
