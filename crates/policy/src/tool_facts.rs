//! Questions about the tools, from a program that does not contain them to the program `agentd`, and the answers.

use crate::request::Subject;
use agentd_protocol::EffectClass;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The argument with which `agentd` answers questions about its tools: each line of its input is a [`ToolQuestion`], and
/// each line of its output the [`ToolAnswer`], both as JSON and in the same order.
pub const TOOLS_ARG: &str = "__tools";
/// The most bytes of a question or an answer. The longest part of either is the arguments of a call.
pub const LONGEST_LINE: u64 = 64 << 20;
/// The prefix of the names of all tools of tool servers: `mcp__SERVER__TOOL`.
pub const REMOTE_PREFIX: &str = "mcp__";

/// A question about a built-in tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolQuestion {
    /// Whether there is a tool with this name, and its effect.
    Tool(String),
    /// Which facts about a call the rules judge.
    Call {
        /// The name of the tool, as the model wrote it.
        tool: String,
        /// The arguments, as the model wrote them.
        input: Value,
        /// The working directory of the session.
        workdir: String,
    },
}

/// The answer to a [`ToolQuestion`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolAnswer {
    /// The tool exists.
    Tool {
        /// Its canonical name.
        name: String,
        /// The effect of its calls.
        effect: EffectClass,
    },
    /// The call is valid.
    Call(CallFacts),
    /// The tool does not exist, or the arguments do not fit it: the text that a model gets.
    Refused(String),
}

/// The facts about a call that the rules judge.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallFacts {
    /// The canonical name of the tool.
    pub name: String,
    /// The effect of the call.
    pub effect: EffectClass,
    /// One line for people.
    pub title: String,
    /// The target of the call.
    pub subject: Subject,
}
