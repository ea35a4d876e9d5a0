//! The tools for background jobs as the model is told of them.

use crate::catalog::object;
use crate::context::ToolLimits;
use crate::job_input::{KEYS, MAX_INPUT};
use crate::job_tools::MAX_WAIT_MS;
use crate::spec::ToolSpec;
use agentd_protocol::EffectClass;
use serde_json::json;

pub(crate) fn bash_start(limits: &ToolLimits) -> ToolSpec {
    ToolSpec {
        name: "BashStart".into(),
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

pub(crate) fn bash_poll() -> ToolSpec {
    ToolSpec {
        name: "BashPoll".into(),
        aliases: &["bash_poll", "bash_output", "poll_job"],
        title: "Read a background job".into(),
        description: "Gives the output of a background job since the last poll and says whether it still runs. With `wait_ms` it waits so long for the job's end."
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

pub(crate) fn bash_write() -> ToolSpec {
    ToolSpec {
        name: "BashWrite".into(),
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

pub(crate) fn bash_kill() -> ToolSpec {
    ToolSpec {
        name: "BashKill".into(),
        aliases: &["bash_kill", "kill_bash", "kill_shell", "kill_job"],
        title: "End a background job".into(),
        description: "Ends a background job with everything it started, and gives the rest of its output."
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
