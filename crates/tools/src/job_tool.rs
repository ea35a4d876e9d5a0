//! Job: one tool for background commands. Each action is a call of the tool that it stands for, which the gate judges and
//! which runs: `BashStart`, `BashPoll`, `BashWrite`, `BashKill`.

use crate::catalog::object;
use crate::context::ToolLimits;
use crate::job_input::{BashWrite, KEYS, MAX_INPUT};
use crate::job_tools::{BashKill, BashPoll, BashStart, MAX_WAIT_MS};
use crate::spec::ToolSpec;
use crate::tool::{About, Runs, Tool};
use agentd_protocol::{EffectClass, ToolOutcome};
use serde_json::{Map, Value, json};

/// The actions, with the tools that carry them out and the arguments that these take.
const ACTIONS: [(&str, &dyn Tool, &[&str]); 4] = [
    ("start", &BashStart, &["command", "terminal", "description"]),
    ("read", &BashPoll, &["job", "wait_ms"]),
    ("write", &BashWrite, &["job", "input", "key", "wait_ms"]),
    ("stop", &BashKill, &["job"]),
];

/// Starts, reads, writes to and stops background commands.
pub(crate) struct JobTool;

impl Tool for JobTool {
    fn name(&self) -> &'static str {
        "Job"
    }

    fn spec(&self, limits: &ToolLimits) -> ToolSpec {
        ToolSpec {
            name: self.name().into(),
            aliases: &["background_job", "manage_job"],
            title: "Work with background commands".into(),
            description: format!(
                "Background commands, for servers, watchers and very long builds. `start` runs `command` with bash and returns the number of its job at once; \
                 `read` returns the output since the last read and the state; `write` types `input` and then `key` (default: enter) into a job that was started \
                 with `terminal`; `stop` ends a job and all that it started. You are told when a job ends. At most {} at once.",
                limits.max_jobs
            ),
            schema: object(
                &json!({
                    "action": { "enum": ACTIONS.map(|(name, ..)| name) },
                    "command": { "type": "string", "minLength": 1, "description": "start: the command line" },
                    "terminal": { "type": "boolean", "description": "start: give it a terminal" },
                    "description": { "type": "string", "description": "start: what it does, in a few words" },
                    "job": { "type": "integer", "minimum": 1, "description": "read, write, stop: the number" },
                    "input": { "type": "string", "maxLength": MAX_INPUT },
                    "key": { "type": "string", "enum": KEYS.map(|(name, _)| name) },
                    "wait_ms": { "type": "integer", "minimum": 0, "maximum": MAX_WAIT_MS, "description": "read: wait up to this long for its end; write: for an answer" }
                }),
                &["action"],
            ),
            example: json!({ "action": "start", "command": "npm run dev" }),
            effect: EffectClass::Exec,
            idempotent: false,
            server: None,
        }
    }

    /// Never judged: the tool that the action stands for has the subject.
    fn subject(&self, _input: &Value) -> Result<About, ToolOutcome> {
        Ok(About::nothing(String::new()))
    }

    fn runs(&self) -> Runs {
        BashPoll.runs()
    }

    fn stands_for(&self, input: &Value) -> Option<(&'static str, Value)> {
        let action = input.get("action").and_then(Value::as_str)?;
        let (_, tool, takes) = ACTIONS.iter().find(|(name, ..)| *name == action)?;
        let given = takes
            .iter()
            .filter_map(|name| Some(((*name).to_owned(), input.get(*name)?.clone())));
        Some((tool.name(), Value::Object(given.collect::<Map<_, _>>())))
    }
}

#[cfg(test)]
mod tests {
    use crate::{Registry, Subject};
    use agentd_protocol::EffectClass;
    use agentd_settings::ToolsConfig;
    use serde_json::{Value, json};

    fn prepared(input: &Value) -> Result<(String, Subject, EffectClass, Value), String> {
        Registry::builtin(&ToolsConfig::default())
            .prepare("Job", input)
            .map(|call| (call.name.into_owned(), call.subject, call.effect, call.input))
            .map_err(|refusal| refusal.llm_text)
    }

    #[test]
    fn i7_an_action_is_judged_as_its_tool() {
        let (name, subject, effect, input) =
            prepared(&json!({ "action": "start", "command": "make", "job": 3 })).unwrap();
        assert_eq!((name.as_str(), effect), ("BashStart", EffectClass::Exec));
        assert!(matches!(subject, Subject::Command { .. }), "{subject:?}");
        assert_eq!(input, json!({ "command": "make" }));
        let (name, subject, effect, _) = prepared(&json!({ "action": "read", "job": 1 })).unwrap();
        assert_eq!((name.as_str(), effect), ("BashPoll", EffectClass::None));
        assert_eq!(subject, Subject::Nothing);
        let (name, subject, ..) = prepared(&json!({ "action": "write", "job": 1, "input": "rm x" })).unwrap();
        assert_eq!(name, "BashWrite");
        assert!(!matches!(subject, Subject::Nothing), "{subject:?}");
        let (name, ..) = prepared(&json!({ "action": "stop", "job": "1" })).unwrap();
        assert_eq!(name, "BashKill");
    }

    #[test]
    fn a_missing_argument_of_an_action_is_named() {
        for (input, missing) in [
            (json!({ "action": "start" }), "command"),
            (json!({ "action": "read" }), "job"),
            (json!({ "command": "make" }), "action"),
            (json!({ "action": "pause", "job": 1 }), "start"),
        ] {
            let refusal = prepared(&input).unwrap_err();
            assert!(refusal.contains(missing), "{refusal}");
        }
    }
}
