//! The counting endpoint of each kind of server, and the request that it expects. Pure.

use crate::address::{beside, join};
use crate::fields::number;
use crate::gemini::address;
use crate::spec::ModelSpec;
use agentd_settings::Dialect;
use serde_json::{Map, Value, json};

/// A counting endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CountEndpoint {
    /// The protocol of Anthropic: the request without the fields that only an answer needs.
    Messages,
    /// The Responses protocol.
    Responses,
    /// Gemini: the request wrapped in another one.
    Gemini,
    /// llama.cpp: any request in the chat protocol.
    LlamaCpp,
    /// vLLM: it returns the tokens themselves along with their number.
    Vllm,
}

/// The endpoints to try, in this order, until the server knows one of them.
pub(crate) fn endpoints(spec: &ModelSpec) -> &'static [CountEndpoint] {
    match spec.dialect {
        Dialect::Anthropic => &[CountEndpoint::Messages],
        Dialect::OpenaiResponses => &[CountEndpoint::Responses],
        Dialect::Gemini => &[CountEndpoint::Gemini],
        // Cloud servers that speak this protocol do not count.
        Dialect::OpenaiChat if spec.credentials.is_empty() => &[CountEndpoint::LlamaCpp, CountEndpoint::Vllm],
        Dialect::LlamaCompletion => &[CountEndpoint::LlamaCpp],
        Dialect::OpenaiChat | Dialect::Ollama | Dialect::Scripted => &[],
    }
}

/// The fields that this kind of endpoint accepts; it may refuse others.
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

impl CountEndpoint {
    /// The URL.
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

    /// The body to send, derived from the body of the call.
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

    /// The count in an answer.
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
