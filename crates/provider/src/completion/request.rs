//! The two requests of a completion. The first has the messages and all parameters; the second has the same parameters,
//! with the prompt in place of the messages.

use crate::body::{Encoded, Params, Prompt, RequestBody};
use crate::chat;
use crate::error::ModelError;
use crate::fields::{close_messages, json_bytes};
use crate::spec::ModelSpec;
use crate::thinking;
use agentd_protocol::{Block, Message, ThinkingLevel};
use bytes::Bytes;
use serde_json::{Map, Value, json};

/// Everything before the messages. The parameters follow after them, so that both requests can use them.
pub(crate) fn prefix(spec: &ModelSpec, prompt: &Prompt<'_>) -> Bytes {
    let mut bytes = br#"{"messages":["#.to_vec();
    bytes.extend(chat::request::system(spec, prompt));
    bytes.into()
}

/// One message. Chat templates do not support images.
pub(crate) fn message(spec: &ModelSpec, message: &Message, after_text: bool) -> Encoded {
    let image = |block: &Block| matches!(block, Block::Image { .. });
    if !message.content.iter().any(image) {
        return chat::message::message(spec, message, after_text);
    }
    let told = |block: &Block| match block {
        Block::Image { .. } => Block::text("[image not available]"),
        other => other.clone(),
    };
    let message = Message {
        role: message.role,
        content: message.content.iter().map(told).collect(),
    };
    chat::message::message(spec, &message, after_text)
}

/// Everything after the messages.
pub(crate) fn suffix(spec: &ModelSpec, params: &Params<'_>) -> Bytes {
    let limit = params.max_output.unwrap_or(spec.max_output).min(spec.max_output);
    let mut fields = Map::new();
    fields.insert("model".into(), json!(spec.model));
    fields.insert("stream".into(), json!(spec.stream));
    fields.insert("n_predict".into(), json!(limit));
    fields.insert("cache_prompt".into(), json!(true));
    if spec.stream {
        // Processing a long prompt takes minutes; progress reports count as progress, silence does not.
        fields.insert("return_progress".into(), json!(true));
    }
    let temperature = spec.temperature.filter(|_| spec.capabilities.temperature);
    fields.extend(temperature.map(|value| ("temperature".to_owned(), json!(value))));
    let thinks = thinking::level(spec).map(|level| level != ThinkingLevel::Off);
    fields.extend(thinks.map(|on| {
        let switch = json!({ "enable_thinking": on });
        ("chat_template_kwargs".to_owned(), switch)
    }));
    if let (true, Some((_, schema))) = (spec.capabilities.structured_output, params.schema) {
        fields.insert("json_schema".into(), schema.clone());
    }
    close_messages(fields)
}

/// Builds the second request from the first and its answer.
pub(crate) fn with_prompt(asked: &RequestBody, answer: &Value) -> Result<RequestBody, ModelError> {
    let prompt = answer
        .get("prompt")
        .filter(|prompt| prompt.is_string())
        .ok_or_else(|| ModelError::transient("the server could not make a prompt from the messages"))?;
    let mut head = br#"{"prompt":"#.to_vec();
    head.extend(json_bytes(prompt));
    // Skips the bracket that closed the messages.
    let end = asked.end();
    let parameters = end.slice(end.len().min(1)..);
    Ok(RequestBody::of(vec![head.into(), parameters]))
}
