//! Scripts: the output of a scripted model.
//!
//! A script is a TOML file of turns. The next turn depends only on the conversation (the number of answers
//! in it so far), so a script continues at the same place after a restart.
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
//! [[conversation]]                    # where the first input is or contains `when`, these turns are played instead
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

/// The answer of a model without a script.
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
    /// The turns for conversations that match no other entry.
    #[serde(rename = "turn", skip_serializing_if = "Vec::is_empty")]
    pub turns: Vec<ScriptedTurn>,
    /// The answer after the last turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// Conversations with their own turns.
    #[serde(rename = "conversation", skip_serializing_if = "Vec::is_empty")]
    pub conversations: Vec<ScriptedConversation>,
}

/// The turns for conversations with a certain first input.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ScriptedConversation {
    /// Matches when the first input equals this; if none is equal, the first entry matches that the input contains.
    pub when: String,
    /// The answer after the last turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// The turns.
    #[serde(rename = "turn")]
    pub turns: Vec<ScriptedTurn>,
}

/// One scripted answer.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ScriptedTurn {
    /// Reasoning, sent before the text.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub thinking: String,
    /// The text; `{{last_result}}` becomes the last tool result, `{{last_input}}` the last input.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// The text is sent unchanged: placeholders in braces are not replaced.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub verbatim: bool,
    /// Tool calls, sent after the text.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<ScriptedCall>,
    /// The delay before each piece, in milliseconds.
    #[serde(skip_serializing_if = "is_zero")]
    pub delay_ms: u64,
    /// The token counts; derived from the text when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// The stop reason, unless the calls imply it.
    #[serde(
        skip_serializing_if = "Option::is_none",
        deserialize_with = "words::stop_reason"
    )]
    pub stop_reason: Option<StopReason>,
    /// A failure of the first attempts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fail: Option<ScriptedFailure>,
}

/// One requested tool call.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ScriptedCall {
    /// The tool's name.
    pub name: String,
    /// The arguments. What TOML cannot express (null, large numbers) is a table with the one key `$json` that holds JSON.
    #[serde(with = "arguments")]
    pub input: Value,
}

/// Encodes arguments in TOML.
mod arguments {
    use serde::{Deserialize as _, Deserializer, Serialize as _, Serializer};
    use serde_json::Value;
    use std::collections::BTreeMap;

    const JSON: &str = "$json";

    pub(super) fn serialize<S: Serializer>(input: &Value, serializer: S) -> Result<S::Ok, S::Error> {
        if toml::Value::try_from(input).is_ok() {
            input.serialize(serializer)
        } else {
            BTreeMap::from([(JSON, input.to_string())]).serialize(serializer)
        }
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Value, D::Error> {
        let input = Value::deserialize(deserializer)?;
        let object = input.as_object().filter(|object| object.len() == 1);
        match object.and_then(|object| object.get(JSON)?.as_str()) {
            Some(json) => serde_json::from_str(json).map_err(serde::de::Error::custom),
            None => Ok(input),
        }
    }
}

/// Strict parsing: newer versions may add names to logs, but an unknown name in a hand-written script is an error.
mod words {
    use agentd_protocol::{FailureClass, StopReason};
    use serde::{Deserialize as _, Deserializer, Serialize, de::Error};

    const CLASSES: [FailureClass; 10] = [
        FailureClass::RateLimited,
        FailureClass::Overloaded,
        FailureClass::Transient,
        FailureClass::QuotaExhausted,
        FailureClass::Auth,
        FailureClass::ContextOverflow,
        FailureClass::ContentFilter,
        FailureClass::InvalidRequest,
        FailureClass::Internal,
        FailureClass::Cancelled,
    ];
    const STOP_REASONS: [StopReason; 9] = [
        StopReason::EndTurn,
        StopReason::ToolUse,
        StopReason::MaxTokens,
        StopReason::StopSequence,
        StopReason::PauseTurn,
        StopReason::Refusal,
        StopReason::ContentFilter,
        StopReason::ContextWindow,
        StopReason::Other,
    ];

    pub(super) fn class<'de, D: Deserializer<'de>>(deserializer: D) -> Result<FailureClass, D::Error> {
        one_of(&CLASSES, &String::deserialize(deserializer)?)
    }

    pub(super) fn stop_reason<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<StopReason>, D::Error> {
        one_of(&STOP_REASONS, &String::deserialize(deserializer)?).map(Some)
    }

    fn one_of<T: Serialize + Copy, E: Error>(known: &[T], text: &str) -> Result<T, E> {
        let name = |value: &T| serde_json::to_value(value).unwrap_or_default();
        let found = known.iter().find(|value| name(value) == text);
        found.copied().ok_or_else(|| {
            let names = known
                .iter()
                .map(|value| name(value).as_str().unwrap_or_default().to_owned());
            E::custom(format!(
                "{text:?} is not one of {}",
                Vec::from_iter(names).join(", ")
            ))
        })
    }
}

/// A failure that precedes the answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScriptedFailure {
    /// The class of failure.
    #[serde(deserialize_with = "words::class")]
    pub class: FailureClass,
    /// The error message.
    #[serde(default)]
    pub message: String,
    /// The wait that it requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
    /// How many attempts fail before one succeeds.
    #[serde(default = "once")]
    pub attempts: u32,
}

const fn once() -> u32 {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
const fn is_zero(ms: &u64) -> bool {
    *ms == 0
}

impl Script {
    /// Parses a script.
    ///
    /// # Errors
    /// When it is not TOML, or has unknown keys; the message names the line and the column.
    pub fn parse(name: &str, text: &str) -> Result<Self, ProviderError> {
        toml::from_str(text).map_err(|error| ProviderError::Script {
            name: name.to_owned(),
            reason: error.to_string(),
        })
    }

    /// The script of the stand-in model that is used when no real one is configured.
    #[must_use]
    pub fn builtin() -> Self {
        Self::default()
    }

    /// The next turn of a conversation.
    #[must_use]
    pub fn next(&self, messages: &[Arc<Message>]) -> ScriptedTurn {
        let opening = messages.first().map(|message| words(message)).unwrap_or_default();
        let own = self.conversation(&opening);
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

impl Script {
    /// The entry that matches a conversation's first input.
    fn conversation(&self, opening: &str) -> Option<&ScriptedConversation> {
        if self.conversations.is_empty() {
            return None;
        }
        let among = |opening: &str| {
            let mut all = self.conversations.iter();
            all.find(|one| !one.when.is_empty() && one.when == opening)
                .or_else(|| self.conversations.iter().find(|one| opening.contains(&one.when)))
        };
        // The recorder has cut secrets out of `when`.
        among(opening).or_else(|| among(&agentd_text::redact(opening)))
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
