//! Interprets the end of a hook: its exit code, and the JSON on its standard output.

use crate::launch::Ended;
use agentd_protocol::{HookEvent, HookStatus, VerdictKind};
use agentd_settings::{HookConfig, HookFallback};
use agentd_text::redact_known;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::borrow::Cow;

/// The exit code of a hook that blocks.
const BLOCK: i32 = 2;
/// The exit code by which a hook reports its own time-out.
const TIMEOUT: i32 = 124;
/// The most characters of a reason.
const REASON: usize = 1_000;
/// The most characters of added context.
const CONTEXT: usize = 8_000;
/// The most characters of a replaced result.
const OUTPUT: usize = 50_000;

/// The interpreted answer of a hook.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct HookAnswer {
    pub(crate) status: HookStatus,
    pub(crate) decision: Option<VerdictKind>,
    pub(crate) reason: Option<String>,
    pub(crate) input: Option<Value>,
    pub(crate) context: Option<String>,
    pub(crate) output: Option<String>,
}

impl HookAnswer {
    const fn of(status: HookStatus) -> Self {
        Self {
            status,
            decision: None,
            reason: None,
            input: None,
            context: None,
            output: None,
        }
    }
}

/// All fields of an answer; the event determines which of them are allowed.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Said {
    decision: Option<VerdictKind>,
    r#continue: Option<bool>,
    reason: Option<String>,
    #[serde(alias = "modifiedInput")]
    input: Option<Map<String, Value>>,
    #[serde(alias = "additionalContext")]
    context: Option<String>,
    #[serde(alias = "modifiedOutput")]
    output: Option<String>,
}

impl Said {
    /// The names of the present fields.
    fn fields(&self) -> impl Iterator<Item = &'static str> {
        [
            ("decision", self.decision.is_some()),
            ("continue", self.r#continue.is_some()),
            ("reason", self.reason.is_some()),
            ("input", self.input.is_some()),
            ("context", self.context.is_some()),
            ("output", self.output.is_some()),
        ]
        .into_iter()
        .filter_map(|(name, there)| there.then_some(name))
    }
}

/// The fields that an answer to an event may have.
const fn fields_of(event: HookEvent) -> &'static [&'static str] {
    match event {
        HookEvent::PreToolUse => &["decision", "reason", "input"],
        HookEvent::PostToolUse | HookEvent::PostToolUseFailure => &["context", "output"],
        HookEvent::PermissionRequest | HookEvent::Compaction => &["decision", "reason"],
        HookEvent::UserPromptSubmit => &["decision", "reason", "context"],
        HookEvent::SessionStart => &["context"],
        HookEvent::Stop | HookEvent::SubagentStop => &["continue", "reason"],
        HookEvent::SessionEnd | HookEvent::Notification => &[],
    }
}

/// Interprets the end of a hook.
pub(crate) fn read(hook: &HookConfig, ended: Ended) -> HookAnswer {
    let (stdout, stderr, code) = match ended {
        Ended::TimedOut => return missing(hook, HookStatus::Timeout, "it took too long"),
        Ended::Failed(why) => return missing(hook, HookStatus::Failed, &why),
        Ended::Exited { code, stdout, stderr } => (stdout, stderr, code),
    };
    match code {
        Some(0) => said(hook.event, &stdout).unwrap_or_else(|why| {
            missing(hook, HookStatus::Failed, &format!("its answer is invalid: {why}"))
        }),
        Some(BLOCK) => blocked(hook.event, &stderr),
        Some(TIMEOUT) => missing(hook, HookStatus::Timeout, "it took too long"),
        Some(code) => {
            let why = format!("it ended with exit code {code}: {}", clip(&stderr, REASON));
            missing(hook, HookStatus::Failed, why.trim_end_matches([' ', ':']))
        }
        None => missing(hook, HookStatus::Failed, "a signal ended it"),
    }
}

fn said(event: HookEvent, stdout: &str) -> Result<HookAnswer, String> {
    // Empty output is a valid answer: the hook has nothing to add.
    let said: Said = match stdout.trim() {
        "" => Said::default(),
        text => serde_json::from_str(text).map_err(|error| error.to_string())?,
    };
    if let Some(odd) = said.fields().find(|name| !fields_of(event).contains(name)) {
        return Err(format!("an answer to {event:?} cannot contain {odd:?}"));
    }
    if said.decision == Some(VerdictKind::Ask) && !event.is_of_call() {
        return Err(format!("{event:?} does not support the decision ask"));
    }
    let goes_on = (said.r#continue == Some(true)).then_some(VerdictKind::Deny);
    Ok(HookAnswer {
        decision: said.decision.or(goes_on),
        reason: said.reason.map(|reason| clip(&reason, REASON)),
        input: said.input.map(|input| concealed(Value::Object(input))),
        context: said.context.map(|context| clip(&context, CONTEXT)),
        output: said.output.map(|output| clip(&output, OUTPUT)),
        ..HookAnswer::of(HookStatus::Ok)
    })
}

/// The hook blocks: whatever it can prevent is denied, a turn goes on, and after a call the model reads the reason.
fn blocked(event: HookEvent, stderr: &str) -> HookAnswer {
    let text = Some(clip(stderr.trim(), REASON)).filter(|text| !text.is_empty());
    let quiet = HookAnswer::of(HookStatus::Blocked);
    match event {
        HookEvent::PostToolUse | HookEvent::PostToolUseFailure => HookAnswer {
            context: text,
            ..quiet
        },
        HookEvent::SessionStart | HookEvent::SessionEnd | HookEvent::Notification => HookAnswer {
            reason: text,
            ..quiet
        },
        HookEvent::PreToolUse
        | HookEvent::PermissionRequest
        | HookEvent::UserPromptSubmit
        | HookEvent::Compaction
        | HookEvent::Stop
        | HookEvent::SubagentStop => HookAnswer {
            decision: Some(VerdictKind::Deny),
            reason: text,
            ..quiet
        },
    }
}

fn missing(hook: &HookConfig, status: HookStatus, why: &str) -> HookAnswer {
    let decision = match hook.fallback(status == HookStatus::Timeout) {
        HookFallback::Ignore => None,
        HookFallback::Ask => Some(VerdictKind::Ask),
        HookFallback::Deny => Some(VerdictKind::Deny),
    };
    HookAnswer {
        decision,
        reason: Some(clip(why, REASON)),
        ..HookAnswer::of(status)
    }
}

/// The first characters of a text, with known credentials redacted.
fn clip(text: &str, most: usize) -> String {
    let text = redact_known(text);
    text.chars().take(most).collect()
}

fn concealed(value: Value) -> Value {
    match value {
        Value::String(text) => Value::String(match redact_known(&text) {
            Cow::Owned(safe) => safe,
            Cow::Borrowed(_) => text,
        }),
        Value::Array(items) => items.into_iter().map(concealed).collect(),
        Value::Object(fields) => fields
            .into_iter()
            .map(|(name, value)| (name, concealed(value)))
            .collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) => value,
    }
}
