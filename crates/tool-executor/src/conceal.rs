//! Removes the credentials that this process knows from the output of tools (I8): a command or a file may reveal one,
//! and the log is permanent.

use agentd_protocol::ToolOutcome;
use agentd_text::{redact_known, redact_known_bytes};
use serde_json::Value;
use std::borrow::Cow;

/// A result that is safe for the log and the model.
pub(crate) fn outcome(mut outcome: ToolOutcome) -> ToolOutcome {
    conceal(&mut outcome.llm_text);
    if let Some(display) = &mut outcome.display {
        conceal(display);
    }
    if let Some(details) = &mut outcome.details {
        strings(details);
    }
    outcome
}

/// Text that is safe to show to people.
pub(crate) fn text(mut text: String) -> String {
    conceal(&mut text);
    text
}

/// A complete output; it can be long, so a blocking thread searches it.
#[expect(clippy::disallowed_methods, reason = "it works in memory only")]
pub(crate) async fn bytes(bytes: Vec<u8>) -> Result<Vec<u8>, String> {
    let looked = tokio::task::spawn_blocking(move || redact_known_bytes(bytes)).await;
    looked.map_err(|error| error.to_string())
}

fn conceal(text: &mut String) {
    if let Cow::Owned(safe) = redact_known(text) {
        *text = safe;
    }
}

fn strings(value: &mut Value) {
    match value {
        Value::String(text) => conceal(text),
        Value::Array(items) => items.iter_mut().for_each(strings),
        Value::Object(fields) => fields.values_mut().for_each(strings),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
