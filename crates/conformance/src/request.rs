//! Checks of recorded requests: parse into our types, encode again, compare.

mod anthropic;
mod chat;
mod gemini;
mod ids;
mod ollama;
mod responses;

use crate::cassette::Exchange;
use crate::json::{brief, difference, text, tidy};
use crate::keys::strip;
use crate::report::Verdict;
use agentd_protocol::{Message, ThinkingLevel};
use agentd_provider::{
    Dialect, EncodedHistory, ModelSpec, Params, Prompt, RequestBody, ToolChoice, ToolDef, encode_prefix,
    encode_suffix,
};
use agentd_settings::ThinkingForm;
use serde_json::Value;
use std::sync::Arc;

/// The generation of a conversation that is encoded only once.
const GENERATION: u64 = 1;

/// Why a recorded request cannot be compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Unfit {
    /// It uses a feature that we never request.
    Skip(String),
    /// It is malformed.
    Fail(String),
}

impl Unfit {
    pub(crate) fn skip(reason: impl Into<String>) -> Self {
        Self::Skip(reason.into())
    }
}

/// The tool choice of a request.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) enum Choice {
    /// Not specified.
    #[default]
    Unsaid,
    /// The model chooses.
    Auto,
    /// No tool may be called.
    Off,
    /// Some tool must be called.
    Any,
    /// This tool must be called.
    Only(String),
}

/// A request parsed into our types.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Asked {
    pub(crate) spec: ModelSpec,
    pub(crate) system: String,
    pub(crate) tools: Vec<ToolDef>,
    pub(crate) messages: Vec<Arc<Message>>,
    pub(crate) choice: Choice,
    pub(crate) parallel: Option<bool>,
    pub(crate) schema: Option<(String, Value)>,
}

impl Asked {
    /// Parses what all dialects have in common; the model spec allows everything the request uses.
    pub(crate) fn of(dialect: Dialect, body: &Value) -> Self {
        let mut spec = crate::answer::plain_spec(dialect);
        text(body, "model").clone_into(&mut spec.model);
        spec.temperature = body.get("temperature").and_then(Value::as_f64);
        spec.stream = body.get("stream").and_then(Value::as_bool).unwrap_or_default();
        spec.context_window = 1 << 20;
        spec.capabilities.images = true;
        spec.capabilities.temperature = true;
        spec.capabilities.structured_output = true;
        spec.capabilities.thinking = ThinkingForm::None;
        spec.capabilities.thinking_levels = Vec::new();
        spec.compat.replay_reasoning = true;
        spec.compat.prompt_cache = false;
        spec.compat.usage_in_stream = true;
        spec.compat.tool_choice = true;
        spec.compat.short_tool_ids = false;
        Self {
            spec,
            system: String::new(),
            tools: Vec::new(),
            messages: Vec::new(),
            choice: Choice::Unsaid,
            parallel: None,
            schema: None,
        }
    }

    /// Sets the limit of the answer, if the request has one.
    pub(crate) fn limit(&mut self, limit: Option<&Value>) {
        if let Some(limit) = limit.and_then(Value::as_u64) {
            self.spec.max_output = u32::try_from(limit).unwrap_or(u32::MAX);
        }
    }

    pub(crate) fn say(&mut self, message: Message) {
        if !message.content.is_empty() {
            self.messages.push(Arc::new(message));
        }
    }

    /// Encodes the request with our own encoders.
    fn encode(&self) -> Result<Value, Unfit> {
        let params = Params {
            tool_choice: match &self.choice {
                Choice::Unsaid => ToolChoice::Unsaid,
                Choice::Auto => ToolChoice::Auto,
                Choice::Off => ToolChoice::Off,
                Choice::Any => ToolChoice::Any,
                Choice::Only(name) => ToolChoice::Only(name),
            },
            parallel_tools: self.parallel,
            max_output: None,
            schema: self.schema.as_ref().map(|(name, schema)| (name.as_str(), schema)),
            cache_key: "",
        };
        let prompt = Prompt::of(&self.system);
        let prefix = encode_prefix(&self.spec, &prompt, &self.tools, &params);
        let mut history = EncodedHistory::new();
        history.extend(&self.spec, GENERATION, &self.messages);
        let suffix = encode_suffix(&self.spec, &self.tools, &params);
        let body = RequestBody::new(prefix, &history, suffix).to_bytes();
        serde_json::from_slice(&body).map_err(|error| {
            Unfit::Fail(format!(
                "our own encoding is no JSON ({error}): {}",
                String::from_utf8_lossy(&body)
            ))
        })
    }
}

/// Checks the request of a model exchange.
pub(crate) fn check(dialect: Dialect, exchange: &Exchange) -> Verdict {
    match compare(dialect, exchange) {
        Ok(None) => Verdict::Passed,
        Ok(Some(difference)) => Verdict::Failed(difference),
        Err(Unfit::Skip(reason)) => Verdict::Skipped(reason),
        Err(Unfit::Fail(problem)) => Verdict::Failed(problem),
    }
}

fn compare(dialect: Dialect, exchange: &Exchange) -> Result<Option<String>, Unfit> {
    let body = exchange.when.body.as_deref().unwrap_or_default();
    let mut recorded: Value =
        serde_json::from_str(body).map_err(|_| Unfit::skip("the recorded request has no JSON body"))?;
    tidy(&mut recorded);
    let asked = match dialect {
        Dialect::Anthropic => anthropic::read(&recorded)?,
        Dialect::OpenaiChat => chat::read(&recorded)?,
        Dialect::LlamaCompletion => {
            return Err(Unfit::skip("the prompt is text that the server's template made"));
        }
        Dialect::OpenaiResponses => responses::read(&recorded)?,
        Dialect::Gemini => gemini::read(&recorded, &exchange.when.path)?,
        Dialect::Ollama => ollama::read(&recorded)?,
        Dialect::Scripted => return Err(Unfit::skip("a script sends nothing")),
    };
    let mut ours = asked.encode()?;
    tidy(&mut ours);
    let normal = match dialect {
        Dialect::Anthropic => anthropic::normal,
        Dialect::OpenaiResponses => responses::normal,
        Dialect::Gemini => gemini::normal,
        Dialect::Ollama => ollama::normal,
        _ => chat::normal,
    };
    strip(dialect, &mut recorded, &mut ours);
    normal(&mut recorded);
    normal(&mut ours);
    Ok(difference(&recorded, &ours, "$"))
}

/// The reason for a content part that our types cannot represent.
pub(crate) fn unknown_part(part: &Value) -> Unfit {
    let kind = text(part, "type");
    if kind.is_empty() {
        Unfit::Fail(format!("content without a type: {}", brief(part)))
    } else {
        Unfit::skip(format!("content of type {kind}"))
    }
}

/// The effort level with this name.
pub(crate) fn level(name: &str) -> Result<ThinkingLevel, Unfit> {
    Ok(match name {
        "none" | "off" => ThinkingLevel::Off,
        "minimal" => ThinkingLevel::Minimal,
        "low" => ThinkingLevel::Low,
        "medium" => ThinkingLevel::Medium,
        "high" => ThinkingLevel::High,
        "xhigh" | "max" => ThinkingLevel::Max,
        other => return Err(Unfit::skip(format!("the thinking level {other}"))),
    })
}

#[cfg(test)]
mod tests;
