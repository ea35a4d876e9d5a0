//! Bash: runs a command under the session's warden.

use crate::catalog::object;
use crate::command_line;
use crate::context::{Finished, Spilled, ToolContext, ToolLimits};
use crate::git_note::{without_objects, without_permission};
use crate::prepared::Prepared;
use crate::refusal::{Code, from_sandbox};
use crate::shape::{ends, left_out};
use crate::spec::ToolSpec;
use crate::tool::{About, Runs, Spelling, Tool};
use crate::yielding;
use agentd_protocol::{EffectClass, ToolOutcome, ToolStatus, Truncated};
use agentd_sandbox::{
    AtTerminal, Bound, Capture, CaptureLimits, CollectSpec, Collected, CommandSpec, Exit, Running,
    SandboxError, TerminalSize, Warden,
};
use agentd_text::plain;
use serde_json::{Map, Value, json};
use std::time::Duration;

/// The error numbers for a program that is missing or whose directory may not be searched.
const ENOENT: i32 = 2;
const EACCES: i32 = 13;

/// Runs a command while the model waits.
pub(crate) struct Bash;

impl Tool for Bash {
    fn name(&self) -> &'static str {
        "Bash"
    }

    fn spec(&self, limits: &ToolLimits) -> ToolSpec {
        ToolSpec {
            name: self.name().into(),
            aliases: &[
                "exec",
                "run_cmd",
                "shell",
                "run_command",
                "execute_command",
                "run_terminal_cmd",
                "terminal",
                "sh",
            ],
            title: "Run a command".into(),
            description: format!(
                "Runs a command with bash in the working directory, without a terminal or input. Returns its output, errors included, and the exit code; of a \
                 long output the beginning and the end. The command is stopped after `timeout_ms` (default {}, at most {}). Each call is a new shell: `cd` and \
                 variables do not persist. {}",
                limits.bash_timeout_ms,
                limits.bash_timeout_max_ms,
                yielding::described(limits)
            ),
            schema: object(
                &json!({
                    "command": { "type": "string", "minLength": 1 },
                    "timeout_ms": { "type": "integer", "minimum": 1, "maximum": limits.bash_timeout_max_ms },
                    "yield_ms": { "type": "integer", "minimum": 0, "maximum": limits.bash_timeout_max_ms },
                    "description": { "type": "string", "description": "What it does, in a few words" }
                }),
                &["command"],
            ),
            example: json!({ "command": "cargo test", "timeout_ms": 300_000.min(limits.bash_timeout_max_ms) }),
            effect: EffectClass::Exec,
            idempotent: false,
            server: None,
        }
    }

    fn subject(&self, input: &Value) -> Result<About, ToolOutcome> {
        About::command("command", input)
    }

    fn runs(&self) -> Runs {
        Runs::Worker(|call, ctx| Box::pin(run(call, ctx)))
    }

    fn spellings(&self) -> &'static [Spelling] {
        &[("command", &["cmd", "commandline", "script"])]
    }

    /// Some models mean seconds, some milliseconds; none means less than a second.
    fn adapt(&self, input: &mut Map<String, Value>) {
        command_line::whole(input);
        if !input.contains_key("timeout_ms")
            && let Some(timeout) = input.shift_remove("timeout")
        {
            let ms = |time: u64| {
                if time < 1000 {
                    time.saturating_mul(1000)
                } else {
                    time
                }
            };
            let ms = timeout.as_u64().map(ms);
            input.insert("timeout_ms".to_owned(), ms.map_or(timeout, Value::from));
        }
    }
}

async fn run(prepared: &Prepared, ctx: &ToolContext) -> Finished {
    let asked = prepared
        .number("timeout_ms")
        .unwrap_or(ctx.limits.bash_timeout_ms);
    let time = Duration::from_millis(asked.min(ctx.limits.bash_timeout_max_ms));
    let patience = yielding::patience(prepared, ctx, time);
    let spec = CollectSpec {
        time,
        limits: CaptureLimits::default(),
        spill_dir: ctx.spill_dir.clone(),
        spill_bytes: ctx.limits.spill_bytes,
    };
    let warden = match ctx.warden.get().await {
        Ok(warden) => warden,
        Err(error) => return from_sandbox(&error).into(),
    };
    let running = match start(&warden, prepared.text("command"), ctx).await {
        Ok(running) => running,
        Err(error) => return not_started(&error).into(),
    };
    ctx.on_start.begun();
    if let Some(patience) = patience {
        return yielding::run(running, prepared, ctx, time, patience).await;
    }
    let progress = ctx.progress.clone();
    match running.collect(&spec, move |fresh| progress.report(fresh)).await {
        Ok(collected) => finished(collected, time, ctx),
        Err(error) => lost(&error).into(),
    }
}

/// The result for a command that, as far as we know, did not start.
pub(crate) fn not_started(error: &SandboxError) -> ToolOutcome {
    match error {
        // The warden may have started it before the connection was lost.
        SandboxError::WardenGone | SandboxError::WardenSlow { .. } => lost(error),
        _ => from_sandbox(error),
    }
}

/// The result for a command whose end was not observed: its effects are unknown.
pub(crate) fn lost(error: &SandboxError) -> ToolOutcome {
    let mut outcome = from_sandbox(error);
    outcome.status = ToolStatus::Interrupted;
    outcome.outcome_unknown = true;
    outcome
        .llm_text
        .push_str(" The command may have started; its effects are unknown.");
    outcome
}

/// Looks up the shell inside the terminal, so that a missing shell is reported there and not to us.
const SHELL_AT_TERMINAL: &str = "command -v bash >/dev/null 2>&1 && exec bash -c \"$1\"; exec sh -c \"$1\"";

pub(crate) async fn start_at_terminal(
    warden: &Warden,
    command: &str,
    size: TerminalSize,
    ctx: &ToolContext,
) -> Result<AtTerminal, SandboxError> {
    let argv = ["/bin/sh", "-c", SHELL_AT_TERMINAL, "sh", command];
    let command = CommandSpec {
        argv: argv.map(str::to_owned).to_vec(),
        cwd: ctx.workdir.path().to_owned(),
        // The reader of the output is not a screen.
        env: vec![("TERM".to_owned(), "dumb".to_owned())],
    };
    warden.run_at_terminal(command, size).await
}

pub(crate) async fn start(
    warden: &Warden,
    command: &str,
    ctx: &ToolContext,
) -> Result<Running, SandboxError> {
    let with = |shell: &str| CommandSpec {
        argv: vec![shell.to_owned(), "-c".to_owned(), command.to_owned()],
        cwd: ctx.workdir.path().to_owned(),
        env: Vec::new(),
    };
    match warden.run(with("bash")).await {
        Err(SandboxError::CommandStart {
            errno: Some(ENOENT | EACCES),
            ..
        }) => warden.run(with("sh")).await,
        other => other,
    }
}

/// The lines and bytes of a command's output that the model reads.
pub(crate) fn most_of_output(limits: &ToolLimits) -> (usize, usize) {
    let bytes = limits.max_bytes.min(limits.bash_max_bytes);
    (
        usize::try_from(limits.max_lines).unwrap_or(usize::MAX),
        usize::try_from(bytes).unwrap_or(usize::MAX),
    )
}

/// The ends of an output as plain text.
struct Readable {
    head: String,
    tail: String,
    /// Whether text is missing in them that the command overwrote.
    lost: bool,
    /// The bytes of the whole output, without what was removed from its ends.
    bytes: u64,
    /// The lines of the whole output, with those that NUL characters end.
    lines: u64,
}

fn readable(output: &Capture) -> Readable {
    let (mut head, mut tail) = (output.head().to_vec(), output.tail());
    if output.skipped() == 0 {
        // A line, a character or an escape sequence may be in both.
        head.append(&mut tail);
    }
    let [head, tail] = [head, tail].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    let plain = [plain(&head), plain(&tail)];
    let removed = (head.len() + tail.len()) - plain.iter().map(|end| end.text.len()).sum::<usize>();
    let lost = plain.iter().any(|end| end.lost);
    let bytes = output.bytes().saturating_sub(removed as u64);
    let ends = |text: &str| text.matches('\n').count() as u64;
    let ended = plain.iter().map(|end| ends(&end.text)).sum::<u64>();
    let lines = (output.lines() + ended).saturating_sub(ends(&head) + ends(&tail));
    let [head, tail] = plain.map(|end| end.text.into_owned());
    Readable {
        head,
        tail,
        lost,
        bytes,
        lines,
    }
}

pub(crate) fn finished(collected: Collected, time: Duration, ctx: &ToolContext) -> Finished {
    let output = &collected.output;
    let Readable {
        head,
        tail,
        lost,
        bytes,
        lines,
    } = readable(output);
    let (max_lines, max_bytes) = most_of_output(&ctx.limits);
    let cut = ends(&head, &tail, output.skipped(), max_lines, max_bytes);
    // The log keeps the whole output if the model does not see all of it.
    let truncated = (cut.is_some() || lost).then(|| Truncated {
        bytes: output.bytes(),
        lines: output.lines(),
        spill: None,
    });
    let mut text = match cut {
        None => format!("{head}{tail}"),
        Some((first, last)) => {
            let notice = left_out(&first, &last, lines, bytes);
            format!("{}\n{notice}\n{last}", first.trim_end_matches('\n'))
        }
    };
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    let (status, code, ending) = ending(collected.exit, collected.timed_out, time);
    text.push_str(&without_objects(&text, &collected.denied_history));
    text.push_str(&without_permission(&text, collected.exit));
    if text.is_empty() && ending.is_empty() {
        text.push_str("[no output]\n");
    }
    text.push_str(&ending);
    let details = json!({
        "code": code.map(Code::as_str),
        "exit_code": collected.exit.code,
        "signal": collected.exit.signal,
        "timed_out": collected.timed_out,
        "exceeded": collected.exit.exceeded.filter(|found| !found.earlier),
        "bytes": output.bytes(),
        "lines": output.lines(),
        "spill_error": collected.spill_error,
    });
    let whole_in_memory = truncated.is_some() && collected.spill.is_none() && output.skipped() == 0;
    let spilled = match collected.spill {
        Some(file) if truncated.is_some() => Some(Spilled::File(file)),
        _ if whole_in_memory => Some(Spilled::Memory([output.head(), &output.tail()].concat())),
        _ => None,
    };
    Finished {
        outcome: ToolOutcome {
            details: Some(details),
            truncated,
            ..ToolOutcome::text(status, text)
        },
        spilled,
        pre_images: Vec::new(),
    }
}

fn ending(exit: Exit, timed_out: bool, time: Duration) -> (ToolStatus, Option<Code>, String) {
    if timed_out {
        let text = format!(
            "[stopped after {} ms: time limit reached. Give a larger `timeout_ms`, or do less at once.]\n",
            time.as_millis()
        );
        return (ToolStatus::Timeout, Some(Code::Timeout), text);
    }
    let left = match exit.exceeded {
        Some(exceeded) if exceeded.earlier => {
            format!(
                "[before this, agentd killed processes that an earlier command had left running: they used {exceeded}]\n"
            )
        }
        Some(exceeded) if exceeded.bound == Bound::Lease => {
            let text = "[killed: this node could not reach the database of its fleet, so that another node may run the session. \
                        Look at what the command has done before you run it again.]\n";
            return (ToolStatus::Error, Some(Code::Exec), text.to_owned());
        }
        Some(exceeded) => {
            let text = format!(
                "[killed, together with everything running in this session, because it used {exceeded}. Do less at once.]\n"
            );
            return (ToolStatus::Error, Some(Code::Exec), text);
        }
        None => String::new(),
    };
    let (status, code, ending) = ended(exit);
    (status, code, left + &ending)
}

fn ended(exit: Exit) -> (ToolStatus, Option<Code>, String) {
    match (exit.code, exit.signal) {
        (Some(0), _) => (ToolStatus::Ok, None, String::new()),
        (Some(code), _) => (
            ToolStatus::Error,
            Some(Code::Exec),
            format!("[exit code {code}]\n"),
        ),
        (None, Some(signal)) => (
            ToolStatus::Error,
            Some(Code::Exec),
            format!("[ended by signal {signal}]\n"),
        ),
        (None, None) => (
            ToolStatus::Error,
            Some(Code::Exec),
            "[ended in an unknown way]\n".to_owned(),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use agentd_sandbox::{Exceeded, GitRefusals};

    #[test]
    fn i4_a_command_that_ended_with_the_lease_is_not_repeated_blindly() {
        let exit = Exit {
            code: None,
            signal: Some(9),
            exceeded: Some(Exceeded {
                bound: Bound::Lease,
                limit: 0,
                earlier: false,
            }),
            refused: GitRefusals::default(),
        };
        let (status, _, text) = ending(exit, false, Duration::ZERO);
        assert_eq!(status, ToolStatus::Error);
        assert!(
            text.contains("database of its fleet") && text.contains("before you run it again"),
            "{text}"
        );
    }
}
