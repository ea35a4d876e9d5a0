//! `BashStart`, `BashPoll`, `BashKill` (and [`crate::job_input`]): background commands, also under the session's warden.

use crate::bash;
use crate::catalog::object;
use crate::command_line;
use crate::context::{Finished, ToolContext, ToolLimits};
use crate::job::Job;
use crate::jobs::JobEnding;
use crate::prepared::Prepared;
use crate::refusal::{Code, from_sandbox, refuse};
use crate::shape::{ends, left_out};
use crate::spec::ToolSpec;
use crate::tool::{About, Runs, Tool};
use agentd_protocol::{EffectClass, ToolOutcome, ToolStatus, Truncated};
use agentd_sandbox::{
    AtTerminal, CaptureLimits, CollectSpec, Keyboard, Running, SandboxError, TerminalSize, Warden,
};
use serde_json::{Map, Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

/// The longest time that a job may run.
pub(crate) const LONGEST: Duration = Duration::from_secs(24 * 3_600);
/// The longest wait of a poll.
pub(crate) const MAX_WAIT_MS: u64 = 60_000;
/// The default size of a terminal.
const TERMINAL: TerminalSize = TerminalSize {
    columns: 120,
    rows: 40,
};
/// How long to wait for the end of a killed job: longer than the warden takes.
const KILL_WITHIN: Duration = Duration::from_secs(10);

fn job(input: &Value) -> String {
    format!(
        "job {}",
        input.get("job").and_then(Value::as_u64).unwrap_or_default()
    )
}

/// Starts a command in the background.
pub(crate) struct BashStart;

impl Tool for BashStart {
    fn name(&self) -> &'static str {
        "BashStart"
    }

    fn spec(&self, limits: &ToolLimits) -> ToolSpec {
        ToolSpec {
            name: self.name().into(),
            aliases: &["bash_start", "start_job", "run_in_background"],
            title: "Start a command in the background".into(),
            description: format!(
                "Starts a command with bash in the working directory and returns at once with the number of its job: for servers, watchers and long builds. \
                 Read its output with BashPoll, end it with BashKill; you are told when it ends. With `terminal` it runs at a terminal of its own, for programs that want one: BashWrite types into it. At most {} jobs run at once, none longer than a day or than the session.",
                limits.max_jobs
            ),
            schema: object(
                &json!({
                    "command": { "type": "string", "minLength": 1, "description": "The command line" },
                    "terminal": { "type": "boolean", "description": "Give it a terminal; without one it has no input" },
                    "columns": { "type": "integer", "minimum": 20, "maximum": 500, "description": "Width of the terminal; default 120" },
                    "rows": { "type": "integer", "minimum": 5, "maximum": 200, "description": "Height of the terminal; default 40" },
                    "description": { "type": "string", "description": "In a few words, what it does" }
                }),
                &["command"],
            ),
            example: json!({ "command": "npm run dev" }),
            effect: EffectClass::Exec,
            idempotent: false,
            server: None,
        }
    }

    fn subject(&self, input: &Value) -> Result<About, ToolOutcome> {
        About::command("command", input)
    }

    fn adapt(&self, input: &mut Map<String, Value>) {
        command_line::whole(input);
    }

    fn runs(&self) -> Runs {
        Runs::Worker(|call, ctx| Box::pin(start(call, ctx)))
    }
}

/// Reads the new output of a background command.
pub(crate) struct BashPoll;

impl Tool for BashPoll {
    fn name(&self) -> &'static str {
        "BashPoll"
    }

    fn spec(&self, _limits: &ToolLimits) -> ToolSpec {
        ToolSpec {
            name: self.name().into(),
            aliases: &["bash_poll", "bash_output", "poll_job"],
            title: "Read a background job".into(),
            description: "Gives the output of a background job since the last poll and says whether it still runs. With `wait_ms` it waits up to this long for the job's end."
                .to_owned(),
            schema: object(
                &json!({
                    "job": { "type": "integer", "minimum": 1, "description": "The job's number" },
                    "wait_ms": { "type": "integer", "minimum": 0, "maximum": MAX_WAIT_MS, "description": "Milliseconds to wait for its end" }
                }),
                &["job"],
            ),
            example: json!({ "job": 1, "wait_ms": 5_000 }),
            effect: EffectClass::None,
            idempotent: false,
            server: None,
        }
    }

    fn subject(&self, input: &Value) -> Result<About, ToolOutcome> {
        Ok(About::nothing(job(input)))
    }

    fn runs(&self) -> Runs {
        Runs::Worker(|call, ctx| Box::pin(poll(call, ctx)))
    }
}

/// Ends a background command.
pub(crate) struct BashKill;

impl Tool for BashKill {
    fn name(&self) -> &'static str {
        "BashKill"
    }

    fn spec(&self, _limits: &ToolLimits) -> ToolSpec {
        ToolSpec {
            name: self.name().into(),
            aliases: &["bash_kill", "kill_bash", "kill_shell", "kill_job"],
            title: "End a background job".into(),
            description:
                "Ends a background job with everything it started, and gives the rest of its output."
                    .to_owned(),
            schema: object(
                &json!({ "job": { "type": "integer", "minimum": 1, "description": "The job's number" } }),
                &["job"],
            ),
            example: json!({ "job": 1 }),
            effect: EffectClass::None,
            idempotent: true,
            server: None,
        }
    }

    fn subject(&self, input: &Value) -> Result<About, ToolOutcome> {
        Ok(About::nothing(job(input)))
    }

    fn runs(&self) -> Runs {
        Runs::Worker(|call, ctx| Box::pin(kill(call, ctx)))
    }
}

async fn start(prepared: &Prepared, ctx: &ToolContext) -> Finished {
    if ctx.jobs.running() >= most(ctx) {
        return too_many(ctx).into();
    }
    let warden = match ctx.warden.get().await {
        Ok(warden) => warden,
        Err(error) => return from_sandbox(&error).into(),
    };
    let command = prepared.text("command");
    let (running, keyboard) = match begin(&warden, prepared, ctx).await {
        Ok(begun) => begun,
        Err(error) => return bash::not_started(&error).into(),
    };
    ctx.on_start.begun();
    let spec = CollectSpec {
        time: LONGEST,
        // Readers have their own copy; the file has everything.
        limits: CaptureLimits { head: 0, tail: 0 },
        spill_dir: ctx.spill_dir.clone(),
        spill_bytes: ctx.limits.spill_bytes,
    };
    let with = if keyboard.is_some() {
        "Read its terminal with Job, action read; type into it with action write"
    } else {
        "Read its output with Job, action read"
    };
    let (job, collecting) = Job::follow(running, spec, keyboard, None);
    // A concurrent call may have taken the last place; then the command of this one is killed.
    let Ok(job) = ctx.jobs.keep(command.to_owned(), &job, collecting, most(ctx)) else {
        return too_many(ctx).into();
    };
    let text = format!("Job {job} runs in the background. {with}; end it with action stop.\n");
    ToolOutcome {
        details: Some(json!({ "job": job })),
        ..ToolOutcome::text(ToolStatus::Ok, text)
    }
    .into()
}

async fn begin(
    warden: &Warden,
    prepared: &Prepared,
    ctx: &ToolContext,
) -> Result<(Running, Option<Keyboard>), SandboxError> {
    let command = prepared.text("command");
    let flag = |name: &str| prepared.input.get(name).and_then(Value::as_bool);
    if flag("terminal") != Some(true) {
        return Ok((bash::start(warden, command, ctx).await?, None));
    }
    let side = |name: &str, usual| {
        let asked = prepared.number(name).and_then(|side| u16::try_from(side).ok());
        asked.unwrap_or(usual)
    };
    let size = TerminalSize {
        columns: side("columns", TERMINAL.columns),
        rows: side("rows", TERMINAL.rows),
    };
    let AtTerminal { keyboard, running } = bash::start_at_terminal(warden, command, size, ctx).await?;
    Ok((running, Some(keyboard)))
}

/// How many jobs may run at the same time.
pub(crate) fn most(ctx: &ToolContext) -> usize {
    usize::try_from(ctx.limits.max_jobs).unwrap_or(usize::MAX)
}

fn too_many(ctx: &ToolContext) -> ToolOutcome {
    let text = format!(
        "{} background jobs are already running; end one first (Job, action stop). The jobs are: {}.",
        ctx.limits.max_jobs,
        numbers(ctx)
    );
    refuse(Code::Exec, text)
}

async fn poll(prepared: &Prepared, ctx: &ToolContext) -> Finished {
    let (number, job) = match find(prepared, ctx) {
        Ok(found) => found,
        Err(refusal) => return refusal.into(),
    };
    ctx.on_start.begun();
    let wait = prepared.number("wait_ms").unwrap_or_default().min(MAX_WAIT_MS);
    if wait > 0 {
        // A timeout is fine: the job is still running.
        let _ = timeout(Duration::from_millis(wait), job.ended()).await;
    }
    said(number, &job, ctx, None)
}

async fn kill(prepared: &Prepared, ctx: &ToolContext) -> Finished {
    let (number, job) = match find(prepared, ctx) {
        Ok(found) => found,
        Err(refusal) => return refusal.into(),
    };
    ctx.on_start.begun();
    job.stop();
    match timeout(KILL_WITHIN, job.ended()).await {
        Ok(()) => said(number, &job, ctx, None),
        Err(_) => refuse(
            Code::Timeout,
            format!("Job {number} got its signal to end but is still running; poll it later."),
        )
        .into(),
    }
}

#[expect(clippy::result_large_err, reason = "the error is the result of the call")]
pub(crate) fn find(prepared: &Prepared, ctx: &ToolContext) -> Result<(u32, Arc<Job>), ToolOutcome> {
    let wanted = prepared.number("job").unwrap_or_default();
    let number = u32::try_from(wanted).unwrap_or(u32::MAX);
    ctx.jobs.get(number).map(|job| (number, job)).ok_or_else(|| {
        refuse(
            Code::NotFound,
            format!("There is no job {wanted}. The jobs are: {}.", numbers(ctx)),
        )
    })
}

fn numbers(ctx: &ToolContext) -> String {
    let numbers: Vec<String> = ctx.jobs.numbers().iter().map(u32::to_string).collect();
    if numbers.is_empty() {
        "none".to_owned()
    } else {
        numbers.join(", ")
    }
}

/// The output of a job since the last poll, and its state: as described by `words`, or as observed.
pub(crate) fn said(number: u32, job: &Job, ctx: &ToolContext, words: Option<String>) -> Finished {
    // Reads the end first: the output before it is complete then.
    let end = job.end();
    let unread = job.take();
    let mut text = String::new();
    if unread.dropped > 0 {
        text.push_str(&format!(
            "[... {} bytes of older output omitted ...]\n",
            unread.dropped
        ));
    }
    let (max_lines, max_bytes) = bash::most_of_output(&ctx.limits);
    match ends(&unread.text, "", 0, max_lines, max_bytes) {
        None => text.push_str(&unread.text),
        Some((first, last)) => {
            job.cut();
            let lines = unread.text.lines().count() as u64;
            let notice = left_out(&first, &last, lines, unread.text.len() as u64);
            let first = first.trim_end_matches('\n');
            text.push_str(&format!("{first}\n{notice}\n{last}"));
        }
    }
    if unread.text.is_empty() {
        text.push_str("[no new output]\n");
    } else if !text.ends_with('\n') {
        text.push('\n');
    }
    text.push_str(&words.unwrap_or_else(|| state(number, end.as_ref())));
    let whole = end.as_ref().and_then(|_| job.take_whole());
    Finished {
        outcome: ToolOutcome {
            details: Some(details(number, end.as_ref())),
            truncated: whole.as_ref().map(|whole| Truncated {
                bytes: whole.bytes,
                lines: whole.lines,
                spill: None,
            }),
            ..ToolOutcome::text(ToolStatus::Ok, text)
        },
        spilled: whole.map(|whole| whole.kept),
        pre_images: Vec::new(),
    }
}

fn state(number: u32, end: Option<&JobEnding>) -> String {
    match end {
        None => format!("[job {number} runs]\n"),
        Some(JobEnding::Lost(why)) => format!("[job {number} is lost: {why}]\n"),
        Some(JobEnding::Exited {
            stopped: Some(why), ..
        }) => format!("[job {number} was stopped: {why}]\n"),
        Some(JobEnding::Exited {
            exit_code, signal, ..
        }) => match (exit_code, signal) {
            (Some(code), _) => format!("[job {number} ended with exit code {code}]\n"),
            (None, Some(signal)) => format!("[job {number} was ended by signal {signal}]\n"),
            (None, None) => format!("[job {number} ended]\n"),
        },
    }
}

fn details(number: u32, end: Option<&JobEnding>) -> Value {
    let (exit_code, signal) = match end {
        Some(JobEnding::Exited {
            exit_code, signal, ..
        }) => (*exit_code, *signal),
        Some(JobEnding::Lost(_)) | None => (None, None),
    };
    json!({ "job": number, "running": end.is_none(), "exit_code": exit_code, "signal": signal })
}
