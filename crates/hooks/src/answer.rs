//! What the end of a hook means: exit codes, and the JSON on its standard output.

use crate::launch::Ended;
use agentd_protocol::{HookEvent, HookStatus, VerdictKind};
use agentd_settings::{HookConfig, HookFallback};
use agentd_text::redact_known;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::borrow::Cow;

/// The exit code of a hook that objects.
const BLOCK: i32 = 2;
/// The exit code by which a hook says that its time was over.
const TIMEOUT: i32 = 124;
/// Characters of a reason that are kept.
const REASON: usize = 1_000;
/// Characters that a hook may add to a result.
const CONTEXT: usize = 8_000;

/// What a hook said, as it counts.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Answer {
    pub(crate) status: HookStatus,
    pub(crate) decision: Option<VerdictKind>,
    pub(crate) reason: Option<String>,
    pub(crate) input: Option<Value>,
    pub(crate) context: Option<String>,
}

/// The answer before a call.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Before {
    decision: Option<VerdictKind>,
    reason: Option<String>,
    input: Option<Map<String, Value>>,
}

/// The answer after a call.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct After {
    context: Option<String>,
}

/// What a hook's end means.
pub(crate) fn read(hook: &HookConfig, ended: Ended) -> Answer {
    let (stdout, stderr, code) = match ended {
        Ended::TimedOut => return missing(hook, HookStatus::Timeout, "it took too long"),
        Ended::Failed(why) => return missing(hook, HookStatus::Failed, &why),
        Ended::Exited { code, stdout, stderr } => (stdout, stderr, code),
    };
    match code {
        Some(0) => said(hook, &stdout).unwrap_or_else(|why| {
            missing(
                hook,
                HookStatus::Failed,
                &format!("its answer is not understood: {why}"),
            )
        }),
        Some(BLOCK) => blocked(hook, &stderr),
        Some(TIMEOUT) => missing(hook, HookStatus::Timeout, "it took too long"),
        Some(code) => {
            let why = format!("it ended with exit code {code}: {}", clip(&stderr, REASON));
            missing(hook, HookStatus::Failed, why.trim_end_matches([' ', ':']))
        }
        None => missing(hook, HookStatus::Failed, "it was ended by a signal"),
    }
}

fn said(hook: &HookConfig, stdout: &str) -> Result<Answer, String> {
    let quiet = Answer {
        status: HookStatus::Ok,
        decision: None,
        reason: None,
        input: None,
        context: None,
    };
    if hook.event == HookEvent::PreToolUse {
        let before: Before = parsed(stdout)?;
        return Ok(Answer {
            decision: before.decision,
            reason: before.reason.map(|reason| clip(&reason, REASON)),
            input: before.input.map(|input| concealed(Value::Object(input))),
            ..quiet
        });
    }
    let after: After = parsed(stdout)?;
    Ok(Answer {
        context: after.context.map(|context| clip(&context, CONTEXT)),
        ..quiet
    })
}

/// No output is an answer: the hook has nothing to say.
fn parsed<T: DeserializeOwned + Default>(stdout: &str) -> Result<T, String> {
    if stdout.trim().is_empty() {
        return Ok(T::default());
    }
    serde_json::from_str(stdout).map_err(|error| error.to_string())
}

fn blocked(hook: &HookConfig, stderr: &str) -> Answer {
    let before = hook.event == HookEvent::PreToolUse;
    let text = Some(clip(stderr.trim(), REASON)).filter(|text| !text.is_empty());
    Answer {
        status: HookStatus::Blocked,
        decision: before.then_some(VerdictKind::Deny),
        reason: if before { text.clone() } else { None },
        input: None,
        context: if before { None } else { text },
    }
}

fn missing(hook: &HookConfig, status: HookStatus, why: &str) -> Answer {
    let decision = match hook.fallback(status == HookStatus::Timeout) {
        HookFallback::Ignore => None,
        HookFallback::Ask => Some(VerdictKind::Ask),
        HookFallback::Deny => Some(VerdictKind::Deny),
    };
    Answer {
        status,
        decision,
        reason: Some(clip(why, REASON)),
        input: None,
        context: None,
    }
}

/// At most so many characters, and no known credential.
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
