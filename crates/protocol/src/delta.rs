//! What is pushed to viewers and is in no log.

use crate::ids::{SessionId, ToolCallId};
use crate::open_approval::OpenApproval;
use crate::summary::Status;
use serde::{Deserialize, Serialize};

/// A live-only fragment. Never in the log, never numbered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type")]
pub enum Delta {
    /// Text of the model.
    #[serde(rename = "delta.text")]
    Text(Fragment),
    /// Reasoning of the model.
    #[serde(rename = "delta.thinking")]
    Thinking(Fragment),
    /// Arguments of a tool call as they stream.
    #[serde(rename = "delta.tool_input")]
    ToolInput(Fragment),
    /// Output of a running tool.
    #[serde(rename = "tool.output")]
    ToolOutput {
        /// Which call.
        tool_call: ToolCallId,
        /// Bytes of output before this.
        offset: u64,
        /// The text.
        text: String,
    },
    /// The open questions of a sub-agent, told to the viewers of the root: all of them, so none says that none is left.
    #[serde(rename = "subagent.asks")]
    Asks {
        /// The sub-agent.
        child: SessionId,
        /// Its questions.
        approvals: Vec<OpenApproval>,
    },
    /// The derived state changed.
    #[serde(rename = "status")]
    Status(Status),
    /// Something newer.
    #[serde(other)]
    Unknown,
}

/// A piece of a streaming model call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fragment {
    /// Which call.
    pub call: crate::ids::CallId,
    /// Which attempt; a new attempt starts over.
    pub attempt: u32,
    /// Which content block.
    pub block: u32,
    /// Bytes of the block before this.
    pub offset: u64,
    /// The text.
    pub text: String,
}
