//! `BashWrite`: types into the terminal of a background job. A shell there would run the text, so it is judged as a
//! command.

use crate::catalog::object;
use crate::context::{Finished, ToolContext, ToolLimits};
use crate::job_tools::{MAX_WAIT_MS, find, said};
use crate::prepared::Prepared;
use crate::refusal::{Code, refuse};
use crate::spec::ToolSpec;
use crate::tool::{About, Runs, Tool};
use agentd_protocol::{EffectClass, ToolOutcome};
use serde_json::{Value, json};
use std::time::Duration;

/// The most characters per call.
pub(crate) const MAX_INPUT: usize = 16_384;
/// Key names, and the bytes that a terminal receives for them.
pub(crate) const KEYS: [(&str, &str); 13] = [
    ("enter", "\r"),
    ("none", ""),
    ("ctrl-c", "\u{3}"),
    ("ctrl-d", "\u{4}"),
    ("ctrl-z", "\u{1a}"),
    ("ctrl-\\", "\u{1c}"),
    ("tab", "\t"),
    ("escape", "\u{1b}"),
    ("backspace", "\u{7f}"),
    ("up", "\u{1b}[A"),
    ("down", "\u{1b}[B"),
    ("right", "\u{1b}[C"),
    ("left", "\u{1b}[D"),
];
/// How long a job may take to read the input.
const TYPE_WITHIN: Duration = Duration::from_secs(10);
/// How long to wait for an answer, unless the call says otherwise.
const WAIT_MS: u64 = 2_000;
/// An answer is complete after this time without further output.
const QUIET: Duration = Duration::from_millis(300);

/// Types text into a background command.
pub(crate) struct BashWrite;

impl Tool for BashWrite {
    fn name(&self) -> &'static str {
        "BashWrite"
    }

    fn spec(&self, _limits: &ToolLimits) -> ToolSpec {
        ToolSpec {
            name: self.name().into(),
            aliases: &["bash_write", "bash_input", "write_stdin", "send_keys"],
            title: "Type into a background job".into(),
            description: "Types into the terminal of a background job that was started with `terminal`: the text of `input`, then Enter, or the `key` if one is named. \
                          Waits until the job has answered and is quiet, at most `wait_ms`, and gives its new output."
                .to_owned(),
            schema: object(
                &json!({
                    "job": { "type": "integer", "minimum": 1, "description": "The job's number" },
                    "input": { "type": "string", "maxLength": MAX_INPUT, "description": "The text, without control characters" },
                    "key": { "type": "string", "enum": KEYS.map(|(name, _)| name), "description": "The key at its end; default: enter" },
                    "wait_ms": { "type": "integer", "minimum": 0, "maximum": MAX_WAIT_MS, "description": "Milliseconds to wait for an answer; default 2000" }
                }),
                &["job"],
            ),
            example: json!({ "job": 1, "input": "print(6 * 7)" }),
            effect: EffectClass::Exec,
            idempotent: false,
            server: None,
        }
    }

    fn subject(&self, input: &Value) -> Result<About, ToolOutcome> {
        about(input)
    }

    fn runs(&self) -> Runs {
        Runs::Worker(|call, ctx| Box::pin(run(call, ctx)))
    }
}

/// The line that the gate judges and a person reads.
#[expect(clippy::result_large_err, reason = "the error is the result of the call")]
fn about(input: &Value) -> Result<About, ToolOutcome> {
    let text = |name: &str| input.get(name).and_then(Value::as_str).unwrap_or_default();
    let (typed, key) = (text("input"), text("key"));
    if typed.is_empty() && key.is_empty() {
        let what = "BashWrite: there is nothing to type; give `input`, `key`, or both (key \"enter\" for an empty line).";
        return Err(refuse(Code::InvalidArgs, what));
    }
    if typed.chars().any(|c| c.is_control() && !matches!(c, '\n' | '\t')) {
        let what = "BashWrite: `input` contains control characters; name the key in `key` instead.";
        return Err(refuse(Code::InvalidArgs, what));
    }
    let job = input.get("job").and_then(Value::as_u64).unwrap_or_default();
    if typed.is_empty() {
        return Ok(About::nothing(format!("job {job}: {key}")));
    }
    Ok(About::typed(typed.to_owned(), format!("job {job}: {typed}")))
}

async fn run(prepared: &Prepared, ctx: &ToolContext) -> Finished {
    let (number, job) = match find(prepared, ctx) {
        Ok(found) => found,
        Err(refusal) => return refusal.into(),
    };
    let Some(keyboard) = job.keyboard() else {
        let text = format!(
            "Job {number} has no terminal, so it has no input. Start it again with `terminal`: true."
        );
        return refuse(Code::InvalidArgs, text).into();
    };
    if job.end().is_some() {
        return said(number, &job, ctx, None);
    }
    ctx.on_start.begun();
    let before = job.heard();
    let typed = {
        let mut keyboard = keyboard.lock().await;
        keyboard.type_in(&keys(prepared), TYPE_WITHIN).await
    };
    if let Err(error) = typed
        && job.end().is_none()
    {
        let text = format!(
            "Job {number} did not accept all input ({error}); it may have read some of it. BashPoll shows its state."
        );
        return refuse(Code::Exec, text).into();
    }
    let wait = prepared.number("wait_ms").unwrap_or(WAIT_MS).min(MAX_WAIT_MS);
    if wait > 0 {
        job.answers(before, Duration::from_millis(wait), QUIET).await;
    }
    said(number, &job, ctx, None)
}

/// The bytes that a keyboard would send: Enter is a carriage return.
fn keys(prepared: &Prepared) -> Vec<u8> {
    let typed = prepared.text("input").replace("\r\n", "\r").replace('\n', "\r");
    let named = match prepared.text("key") {
        "" => "enter",
        named => named,
    };
    let key = KEYS
        .iter()
        .find(|(name, _)| *name == named)
        .map_or("", |(_, key)| key);
    (typed + key).into_bytes()
}
