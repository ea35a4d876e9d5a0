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
    #[serde(rename = "turn", skip_serializing_if = "Vec::is_empty")]
    pub turns: Vec<ScriptedTurn>,
    /// What is said when the turns are used up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// Conversations with turns of their own.
    #[serde(rename = "conversation", skip_serializing_if = "Vec::is_empty")]
    pub conversations: Vec<ScriptedConversation>,
}

/// The turns of the conversations that begin in a certain way.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ScriptedConversation {
    /// Matches when the first input is this; where no entry is, the first one matches that the input contains.
    pub when: String,
    /// What is said when the turns are used up.
    #[serde(skip_serializing_if = "Option::is_none")]
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
    #[serde(skip_serializing_if = "String::is_empty")]
    pub thinking: String,
    /// The text; `{{last_result}}` becomes the last tool result, `{{last_input}}` the last input.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// The text is said as it stands, with whatever is in braces.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub verbatim: bool,
    /// Tool calls, after the text.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<ScriptedCall>,
    /// Milliseconds before each piece.
    #[serde(skip_serializing_if = "is_zero")]
    pub delay_ms: u64,
    /// Tokens; made up from the text when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// Why it stopped, unless it is plain from the calls.
    #[serde(
        skip_serializing_if = "Option::is_none",
        deserialize_with = "words::stop_reason"
    )]
    pub stop_reason: Option<StopReason>,
    /// The first attempts fail.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fail: Option<ScriptedFailure>,
}

/// One requested tool call.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ScriptedCall {
    /// The tool's name.
    pub name: String,
    /// The arguments. What TOML cannot say (null, large numbers) is a table with the one key `$json` and the JSON in it.
    #[serde(with = "arguments")]
    pub input: Value,
}

/// Arguments in TOML.
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

/// Words that a log of a newer version may have in any spelling, and a script that a person writes may not.
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
                "{text:?} is none of {}",
                Vec::from_iter(names).join(", ")
            ))
        })
    }
}

/// A failure before the answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScriptedFailure {
    /// What kind.
    #[serde(deserialize_with = "words::class")]
    pub class: FailureClass,
    /// What it says.
    #[serde(default)]
    pub message: String,
    /// The wait it asks for.
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
    /// The entry of the conversations that begin so.
    fn conversation(&self, opening: &str) -> Option<&ScriptedConversation> {
        if self.conversations.is_empty() {
            return None;
        }
        let among = |opening: &str| {
            let mut all = self.conversations.iter();
            all.find(|one| !one.when.is_empty() && one.when == opening)
                .or_else(|| self.conversations.iter().find(|one| opening.contains(&one.when)))
        };
        // What was recorded has its secrets cut out.
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
