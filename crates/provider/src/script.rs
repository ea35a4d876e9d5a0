//! Scripts: what a scripted model says.
//!
//! A script is a TOML file of turns. The turn that is played depends only on the conversation (the number of answers
//! in it so far), so a script goes on where it was after a restart.
//!
//! ```toml
//! [[turn]]
//! text = "I look at the file first."
//! calls = [{ name = "Read", input = { file_path = "a.txt" } }]
//! delay_ms = 20                       # before each piece; 0 is the default
//! usage = { input = 900, output = 40 }
//! fail = { class = "overloaded", message = "try later", attempts = 1 }   # the first attempt fails
//!
//! [[turn]]
//! text = "The file says: {{last_result}}"
//!
//! [[conversation]]                    # where the first input contains `when`, these turns are played instead
//! when = "deploy"
//! after = "That was all."             # said when the turns are used up
//! [[conversation.turn]]
//! text = "I do not deploy on Fridays."
//! ```

use crate::error::ProviderError;
use agentd_protocol::{Block, FailureClass, Message, Role, StopReason, Usage};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;

/// What a model without a script says.
const NO_MODEL: &str = "I am the scripted model that is built into agentd: no real language model is configured, so I \
can only say this.\n\nTo use a real one, do one of these and start the daemon again:\n\
- set ANTHROPIC_API_KEY or OPENAI_API_KEY in its environment;\n\
- start Ollama (port 11434) or the server of llama.cpp (port 8080) on this machine;\n\
- name a provider and a model under [providers] and [models] in the configuration file.\n\n\
`agentctl models` shows what the daemon found and why a model cannot be used; `agentctl demo` shows agents at work \
without any model.";

/// A script.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Script {
    /// The turns of conversations that no other entry matches.
    #[serde(rename = "turn")]
    pub turns: Vec<ScriptedTurn>,
    /// What is said when the turns are used up.
    pub after: Option<String>,
    /// Conversations with turns of their own.
    #[serde(rename = "conversation")]
    pub conversations: Vec<ScriptedConversation>,
}

/// The turns of the conversations that begin in a certain way.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ScriptedConversation {
    /// Matches when the first input contains this.
    pub when: String,
    /// What is said when the turns are used up.
    pub after: Option<String>,
    /// The turns.
    #[serde(rename = "turn")]
    pub turns: Vec<ScriptedTurn>,
}

/// One answer.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ScriptedTurn {
    /// Reasoning, before the text.
    pub thinking: String,
    /// The text; `{{last_result}}` becomes the last tool result, `{{last_input}}` the last input.
    pub text: String,
    /// Tool calls, after the text.
    pub calls: Vec<ScriptedCall>,
    /// Milliseconds before each piece.
    pub delay_ms: u64,
    /// Tokens; made up from the text when absent.
    pub usage: Option<Usage>,
    /// Why it stopped, unless it is plain from the calls.
    pub stop_reason: Option<StopReason>,
    /// The first attempts fail.
    pub fail: Option<ScriptedFailure>,
}

/// One requested tool call.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ScriptedCall {
    /// The tool's name.
    pub name: String,
    /// The arguments.
    pub input: Value,
}

/// A failure before the answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScriptedFailure {
    /// What kind.
    pub class: FailureClass,
    /// What it says.
    #[serde(default)]
    pub message: String,
    /// The wait it asks for.
    #[serde(default)]
    pub retry_after_ms: Option<u64>,
    /// How many attempts fail before one succeeds.
    #[serde(default = "once")]
    pub attempts: u32,
}

const fn once() -> u32 {
    1
}

impl Script {
    /// Reads a script.
    ///
    /// # Errors
    /// When it is not TOML, or has unknown keys; the message names line and column.
    pub fn parse(name: &str, text: &str) -> Result<Self, ProviderError> {
        toml::from_str(text).map_err(|error| ProviderError::Script {
            name: name.to_owned(),
            reason: error.to_string(),
        })
    }

    /// The script of the model that stands in where no real one is configured.
    #[must_use]
    pub fn builtin() -> Self {
        Self::default()
    }

    /// The turn that comes next in a conversation.
    #[must_use]
    pub fn next(&self, messages: &[Arc<Message>]) -> ScriptedTurn {
        let opening = messages.first().map(|message| words(message)).unwrap_or_default();
        let own = self
            .conversations
            .iter()
            .find(|conversation| opening.contains(&conversation.when));
        let (turns, after) = own.map_or((&self.turns, &self.after), |own| (&own.turns, &own.after));
        let at = messages
            .iter()
            .filter(|message| message.role == Role::Assistant)
            .count();
        turns.get(at).cloned().unwrap_or_else(|| ScriptedTurn {
            text: after.clone().unwrap_or_else(|| NO_MODEL.to_owned()),
            ..ScriptedTurn::default()
        })
    }
}

/// The text of a message.
pub(crate) fn words(message: &Message) -> String {
    let text = |block: &Block| match block {
        Block::Text { text } => Some(text.clone()),
        Block::Image { .. }
        | Block::Thinking { .. }
        | Block::ToolUse { .. }
        | Block::ToolResult { .. }
        | Block::Unknown => None,
    };
    message
        .content
        .iter()
        .filter_map(text)
        .collect::<Vec<_>>()
        .join("\n")
}
