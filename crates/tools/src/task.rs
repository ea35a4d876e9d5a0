//! The call that becomes a sub-agent. The agent's loop handles it: no tool runs.

use crate::catalog::object;
use crate::context::ToolLimits;
use crate::spec::{Registry, ToolEntry, ToolSpec};
use crate::tool::{About, Runs, Tool, word};
use agentd_protocol::{EffectClass, ToolOutcome};
use serde_json::{Value, json};

/// The longest purpose.
const MAX_PURPOSE: usize = 200;
/// The longest task.
const MAX_PROMPT: usize = 100_000;
/// The longest name of an agent.
const MAX_AGENT: usize = 64;

/// Starts a sub-agent.
pub(crate) struct Task;

impl Tool for Task {
    fn name(&self) -> &'static str {
        "Task"
    }

    fn spec(&self, _limits: &ToolLimits) -> ToolSpec {
        ToolSpec {
            name: self.name().into(),
            aliases: &["spawn_agent", "delegate", "new_task", "dispatch_agent"],
            title: "Give a task to a sub-agent".into(),
            description: "Starts a sub-agent with its own conversation, for a part of the work that you can describe completely: it sees nothing of this \
                          conversation. Its last message is the result. Several calls in one message run in parallel."
                .to_owned(),
            schema: object(
                &json!({
                    "description": { "type": "string", "minLength": 1, "maxLength": MAX_PURPOSE, "description": "Its purpose, in a few words" },
                    "prompt": { "type": "string", "minLength": 1, "maxLength": MAX_PROMPT, "description": "The whole task: what to do, where, and what the answer must contain" },
                    "agent": { "type": "string", "minLength": 1, "maxLength": MAX_AGENT, "description": "A custom agent; default: one like you" }
                }),
                &["description", "prompt"],
            ),
            example: json!({ "description": "find the parser's tests", "prompt": "List the files below tests/ that test the parser, with one line on each." }),
            effect: EffectClass::None,
            idempotent: false,
            server: None,
        }
    }

    fn subject(&self, input: &Value) -> Result<About, ToolOutcome> {
        Ok(About::nothing(word(input, "description")))
    }

    fn runs(&self) -> Runs {
        Runs::SubAgent
    }
}

impl Registry {
    /// These tools, with the list of custom agents in the description of Task.
    #[must_use]
    pub fn with_agents(&self, list: &str) -> Self {
        let tool: &'static dyn Tool = &Task;
        let mut spec = tool.spec(&ToolLimits::default());
        spec.description
            .push_str("\nAgents that can be named in `agent`:\n");
        spec.description.push_str(list);
        self.replacing(&ToolEntry::builtin(tool, spec))
    }
}

#[cfg(test)]
mod tests {
    use crate::{Registry, Subject};
    use agentd_protocol::EffectClass;
    use agentd_settings::ToolsConfig;
    use serde_json::json;

    #[test]
    fn a_task_concerns_only_the_session_and_has_limits() {
        let tools = Registry::builtin(&ToolsConfig::default());
        let input = json!({ "description": "count", "prompt": "Count the files." });
        let prepared = tools.prepare("task", &input).unwrap();
        assert_eq!(
            (
                prepared.name.as_ref(),
                prepared.title.as_str(),
                &prepared.subject,
                prepared.effect
            ),
            ("Task", "Task count", &Subject::Nothing, EffectClass::None)
        );
        for bad in [
            json!({ "prompt": "x" }),
            json!({ "description": "x" }),
            json!({ "description": "x".repeat(201), "prompt": "x" }),
            json!({ "description": "x", "prompt": "x".repeat(100_001) }),
        ] {
            assert!(tools.prepare("Task", &bad).is_err());
        }
    }

    #[test]
    fn the_list_of_agents_has_a_fixed_place_among_the_tools() {
        let plain = Registry::builtin(&ToolsConfig::default());
        let told = plain.with_agents("- reviewer: Reads code");
        let names = |of: &Registry| of.specs().map(|spec| spec.name.clone()).collect::<Vec<_>>();
        assert_eq!(names(&told), names(&plain));
        let words = &told.get("Task").unwrap().description;
        assert!(
            words.starts_with(&plain.get("Task").unwrap().description),
            "{words}"
        );
        assert!(words.ends_with("`agent`:\n- reviewer: Reads code"), "{words}");
        let input = json!({ "description": "a", "prompt": "b", "agent": "reviewer" });
        assert!(told.prepare("Task", &input).is_ok());
    }
}
