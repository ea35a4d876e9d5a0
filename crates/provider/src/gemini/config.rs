//! The settings of a Gemini request apart from the conversation: limits, thinking, tool choice, answer format.

use crate::body::{Params, ToolChoice, ToolDef};
use crate::fields::close_messages;
use crate::spec::ModelSpec;
use crate::thinking;
use agentd_protocol::ThinkingLevel;
use agentd_settings::ThinkingForm;
use bytes::Bytes;
use serde_json::{Map, Value, json};

/// The smallest thinking budget that every budget-based model accepts, in tokens.
const MIN_THINKING: u32 = 512;

/// The largest thinking budget that every budget-based model accepts, in tokens.
const MAX_THINKING: u32 = 24_576;

/// Everything after the messages. The protocol cannot express whether calls may be parallel.
pub(crate) fn suffix(spec: &ModelSpec, tools: &[ToolDef], params: &Params<'_>) -> Bytes {
    let limit = params.max_output.unwrap_or(spec.max_output).min(spec.max_output);
    let mut fields = Map::new();
    let choice =
        function_calling(params.tool_choice).filter(|_| !tools.is_empty() && spec.compat.tool_choice);
    if let Some(choice) = choice {
        fields.insert("toolConfig".into(), json!({ "functionCallingConfig": choice }));
    }
    let mut generation = Map::new();
    generation.insert("maxOutputTokens".into(), json!(limit));
    if let Some(temperature) = spec.temperature {
        generation.insert("temperature".into(), json!(temperature));
    }
    if let Some(thinking) = thinking(spec, limit) {
        generation.insert("thinkingConfig".into(), thinking);
    }
    // Models before the third generation refuse a response schema while they have tools.
    let held = spec.capabilities.structured_output && (tools.is_empty() || is_third(&spec.model));
    if let Some((_, schema)) = params.schema.filter(|_| held) {
        generation.insert("responseMimeType".into(), json!("application/json"));
        generation.insert("responseJsonSchema".into(), schema.clone());
    }
    fields.insert("generationConfig".into(), Value::Object(generation));
    close_messages(fields)
}

fn function_calling(choice: ToolChoice<'_>) -> Option<Value> {
    match choice {
        ToolChoice::Unsaid => None,
        ToolChoice::Auto => Some(json!({ "mode": "AUTO" })),
        ToolChoice::Off => Some(json!({ "mode": "NONE" })),
        ToolChoice::Any => Some(json!({ "mode": "ANY" })),
        ToolChoice::Only(name) => Some(json!({ "mode": "ANY", "allowedFunctionNames": [name] })),
    }
}

fn thinking(spec: &ModelSpec, limit: u32) -> Option<Value> {
    let level = thinking::level(spec)?;
    let shown = level != ThinkingLevel::Off;
    match spec.capabilities.thinking {
        ThinkingForm::None => None,
        ThinkingForm::Effort | ThinkingForm::Adaptive => {
            let word = match level {
                // The API has no level that turns thinking off.
                ThinkingLevel::Off | ThinkingLevel::Minimal => "minimal",
                ThinkingLevel::Low => "low",
                ThinkingLevel::Medium => "medium",
                ThinkingLevel::High | ThinkingLevel::Max => "high",
            };
            Some(json!({ "includeThoughts": shown, "thinkingLevel": word }))
        }
        // Thinking counts as output, so it must leave room for the answer.
        ThinkingForm::Budget => {
            let budget = match thinking::tokens(level) {
                0 => 0,
                tokens => tokens.min(MAX_THINKING).min(limit / 2).max(MIN_THINKING),
            };
            Some(json!({ "includeThoughts": shown, "thinkingBudget": budget }))
        }
        // The model decides how much it thinks.
        ThinkingForm::Switch => {
            Some(json!({ "includeThoughts": shown, "thinkingBudget": if shown { -1 } else { 0 } }))
        }
    }
}

/// Whether a model is of the third generation or later; names without a number refer to the newest.
pub(crate) fn is_third(model: &str) -> bool {
    let generation = model
        .rsplit('/')
        .next()
        .and_then(|name| name.strip_prefix("gemini-"));
    generation.is_some_and(|rest| {
        let digits = rest
            .split(|next: char| !next.is_ascii_digit())
            .next()
            .unwrap_or_default();
        digits.is_empty() || digits.parse::<u32>().is_ok_and(|number| number >= 3)
    })
}
