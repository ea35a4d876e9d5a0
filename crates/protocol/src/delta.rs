//! Live messages to viewers, which no log contains.

use crate::ids::{SessionId, ToolCallId};
use crate::open_approval::OpenApproval;
use crate::summary::Status;
use serde::{Deserialize, Serialize};

/// A live-only fragment: never in the log, never numbered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
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
        /// The call.
        tool_call: ToolCallId,
        /// The number of output bytes before this.
        offset: u64,
        /// The text.
        text: String,
    },
    /// All open questions of a sub-agent, sent to the viewers of the root; an empty list means that none is left.
    #[serde(rename = "subagent.asks")]
    Asks {
        /// The sub-agent.
        child: SessionId,
        /// Its questions.
        approvals: Vec<OpenApproval>,
    },
    /// How many viewers follow the session, this one included. Sent when one comes or goes; until then there is only one.
    #[serde(rename = "viewers")]
    Viewers {
        /// The number.
        count: u32,
    },
    /// The derived state changed.
    #[serde(rename = "status")]
    Status(Status),
    /// A newer type.
    #[serde(other)]
    Unknown,
}

/// A piece of a streaming model call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Fragment {
    /// The call.
    pub call: crate::ids::CallId,
    /// The attempt; a new attempt starts over.
    pub attempt: u32,
    /// The content block.
    pub block: u32,
    /// The number of bytes of the block before this.
    pub offset: u64,
    /// The text.
    pub text: String,
}
