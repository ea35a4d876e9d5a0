//! Where each kind of server counts, and what it wants to be sent. Pure.

use crate::address::{beside, join};
use crate::fields::number;
use crate::gemini::address;
use crate::spec::ModelSpec;
use agentd_settings::Dialect;
use serde_json::{Map, Value, json};

/// A way to have a request counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// The protocol of Anthropic: the request without what only an answer needs.
    Messages,
    /// The Responses protocol.
    Responses,
    /// Gemini: the request inside another one.
    Gemini,
    /// llama.cpp: any request of the chat protocol.
    LlamaCpp,
    /// vLLM: it tells the tokens themselves, with their number.
    Vllm,
}

/// What servers of a kind are asked, in this order, until one of them knows the address.
pub(crate) fn places(spec: &ModelSpec) -> &'static [Place] {
    match spec.dialect {
        Dialect::Anthropic => &[Place::Messages],
        Dialect::OpenaiResponses => &[Place::Responses],
        Dialect::Gemini => &[Place::Gemini],
        // Those of the cloud that speak this protocol do not count.
        Dialect::OpenaiChat if spec.credentials.is_empty() => &[Place::LlamaCpp, Place::Vllm],
        Dialect::LlamaCompletion => &[Place::LlamaCpp],
        Dialect::OpenaiChat | Dialect::Ollama | Dialect::Scripted => &[],
    }
}

/// Fields that an endpoint of this kind knows; another one may be refused.
const OF_MESSAGES: [&str; 8] = [
    "model",
    "messages",
    "system",
    "tools",
    "tool_choice",
    "thinking",
    "output_config",
    "cache_control",
];
const OF_RESPONSES: [&str; 9] = [
    "model",
    "input",
    "instructions",
    "tools",
    "tool_choice",
    "parallel_tool_calls",
    "reasoning",
    "text",
    "truncation",
];
const OF_TOKENIZE: [&str; 4] = ["model", "messages", "tools", "chat_template_kwargs"];

impl Place {
    /// The address.
    pub(crate) fn url(self, spec: &ModelSpec) -> String {
        let base = &spec.base_url;
        match self {
            Self::Messages => join(base, "v1/messages/count_tokens"),
            Self::Responses => join(base, "responses/input_tokens"),
            Self::Gemini => address(spec, "countTokens"),
            Self::LlamaCpp => beside(base, "v1/chat/completions/input_tokens"),
            Self::Vllm => beside(base, "tokenize"),
        }
    }

    /// What is sent, from the body of the call.
    pub(crate) fn body(self, spec: &ModelSpec, call: &Map<String, Value>) -> Value {
        match self {
            Self::Messages => only(call, &OF_MESSAGES),
            Self::Responses => only(call, &OF_RESPONSES),
            Self::Gemini => {
                let mut inside = call.clone();
                let collection = if spec.model.contains('/') { "" } else { "models/" };
                inside.insert("model".into(), json!(format!("{collection}{}", spec.model)));
                json!({ "generateContentRequest": inside })
            }
            Self::LlamaCpp => {
                let mut whole = call.clone();
                whole.remove("stream");
                whole.remove("stream_options");
                Value::Object(whole)
            }
            Self::Vllm => only(call, &OF_TOKENIZE),
        }
    }

    /// The number in an answer.
    pub(crate) fn tokens(self, answer: &Value) -> Option<u64> {
        let field = match self {
            Self::Messages | Self::Responses | Self::LlamaCpp => "/input_tokens",
            Self::Gemini => "/totalTokens",
            Self::Vllm => "/count",
        };
        number(answer, field).filter(|tokens| *tokens > 0)
    }
}

fn only(call: &Map<String, Value>, fields: &[&str]) -> Value {
    let known = call.iter().filter(|(name, _)| fields.contains(&name.as_str()));
    Value::Object(known.map(|(name, value)| (name.clone(), value.clone())).collect())
}
