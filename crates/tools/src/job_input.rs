//! `BashWrite`: what is typed into the terminal of a background job. A shell there would run it, so it is judged as a
//! command.

use crate::context::{Finished, ToolContext};
use crate::job_tools::{MAX_WAIT_MS, find, said};
use crate::prepared::{Prepared, Subject};
use crate::refusal::{Code, refuse};
use agentd_protocol::ToolOutcome;
use serde_json::Value;
use std::time::Duration;

/// The most characters of one call.
pub(crate) const MAX_INPUT: usize = 16_384;
/// Keys by their names, and what a terminal makes of them.
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
/// How long a job may take to read what is typed.
const TYPE_WITHIN: Duration = Duration::from_secs(10);
/// How long an answer is waited for, unless the call says otherwise.
const WAIT_MS: u64 = 2_000;
/// An answer is over when nothing more comes for so long.
const QUIET: Duration = Duration::from_millis(300);

/// What the gate judges, and what people read.
#[expect(clippy::result_large_err, reason = "the error is the result of the call")]
pub(crate) fn about(input: &Value) -> Result<(Subject, String), ToolOutcome> {
    let text = |name: &str| input.get(name).and_then(Value::as_str).unwrap_or_default();
    let (typed, key) = (text("input"), text("key"));
    if typed.is_empty() && key.is_empty() {
        let what = "BashWrite: there is nothing to type; give `input`, `key`, or both (key \"enter\" for an empty line).";
        return Err(refuse(Code::InvalidArgs, what));
    }
    if typed.chars().any(|c| c.is_control() && !matches!(c, '\n' | '\t')) {
        let what = "BashWrite: `input` has control characters in it; name the key in `key` instead.";
        return Err(refuse(Code::InvalidArgs, what));
    }
    let job = input.get("job").and_then(Value::as_u64).unwrap_or_default();
    if typed.is_empty() {
        return Ok((Subject::Nothing, format!("job {job}: {key}")));
    }
    let command = typed.to_owned();
    Ok((Subject::Command { command }, format!("job {job}: {typed}")))
}

pub(crate) async fn run(prepared: &Prepared, ctx: &ToolContext) -> Finished {
    let (number, job) = match find(prepared, ctx) {
        Ok(found) => found,
        Err(refusal) => return refusal.into(),
    };
    let Some(keyboard) = job.keyboard() else {
        let text = format!(
            "Job {number} has no terminal, so it has no input. Start it again with BashStart and `terminal`: true."
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
            "Job {number} did not take all that was typed ({error}); some of it may have been read. BashPoll shows how it is."
        );
        return refuse(Code::Exec, text).into();
    }
    let wait = prepared.number("wait_ms").unwrap_or(WAIT_MS).min(MAX_WAIT_MS);
    if wait > 0 {
        job.answers(before, Duration::from_millis(wait), QUIET).await;
    }
    said(number, &job, ctx, None)
}

/// As a keyboard would send it: Enter is a carriage return.
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
