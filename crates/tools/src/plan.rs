//! The plan calls, which the agent's loop answers itself.

use crate::catalog::object;
use crate::context::ToolLimits;
use crate::spec::ToolSpec;
use crate::tool::{About, LoopCall, Runs, Tool, counted, word};
use agentd_protocol::{EffectClass, ToolOutcome};
use serde_json::{Value, json};

/// The longest plan to show to a person.
const MAX_PLAN: usize = 20_000;
/// The longest title, check, reason or evidence.
const MAX_LINE: usize = 1_000;
/// More steps than any session allows.
const MAX_STEPS: usize = 100;

/// Shows a plan for approval and ends plan mode.
pub(crate) struct ExitPlanMode;

impl Tool for ExitPlanMode {
    fn name(&self) -> &'static str {
        "ExitPlanMode"
    }

    fn spec(&self, _limits: &ToolLimits) -> ToolSpec {
        ToolSpec {
            name: self.name().into(),
            aliases: &["exit_plan_mode", "plan_exit", "submit_plan"],
            title: "Show the plan for approval".into(),
            description: "Only in plan mode, when the plan is ready: shows it to the person, who approves it or says what to change. After the approval plan mode is \
                          over, and you carry out the plan."
                .to_owned(),
            schema: object(
                &json!({ "plan": { "type": "string", "minLength": 1, "maxLength": MAX_PLAN, "description": "In Markdown" } }),
                &["plan"],
            ),
            example: json!({ "plan": "# Summary\n..." }),
            effect: EffectClass::None,
            idempotent: true,
            server: None,
        }
    }

    fn subject(&self, input: &Value) -> Result<About, ToolOutcome> {
        Ok(About::nothing(word(input, "plan")))
    }

    fn runs(&self) -> Runs {
        Runs::Loop(LoopCall::LeavePlanMode)
    }
}

/// Sets a plan of steps, or marks a step as done.
pub(crate) struct Plan;

impl Tool for Plan {
    fn name(&self) -> &'static str {
        "Plan"
    }

    fn spec(&self, _limits: &ToolLimits) -> ToolSpec {
        let line = |what: &str| json!({ "type": "string", "minLength": 1, "maxLength": MAX_LINE, "description": what });
        ToolSpec {
            name: self.name().into(),
            aliases: &["update_plan", "make_plan"],
            title: "Make a plan or report a step".into(),
            description: "With `steps`: makes the plan of the work, or replaces its open steps and says the `reason`. With `done` and `evidence`: reports a step as done, \
                          after its check. Done steps never change."
                .to_owned(),
            schema: object(
                &json!({
                    "steps": {
                        "type": "array",
                        "minItems": 1,
                        "maxItems": MAX_STEPS,
                        "items": object(
                            &json!({ "title": line("What to do"), "check": line("How to check that it is done") }),
                            &["title", "check"],
                        )
                    },
                    "reason": line("Why the plan changes"),
                    "done": { "type": "integer", "minimum": 1, "description": "The number of a step, from 1" },
                    "evidence": line("What the check showed")
                }),
                &[],
            ),
            example: json!({ "steps": [{ "title": "Add the flag", "check": "cargo test -p cli" }] }),
            effect: EffectClass::None,
            idempotent: true,
            server: None,
        }
    }

    fn subject(&self, input: &Value) -> Result<About, ToolOutcome> {
        let done = input.get("done").and_then(Value::as_u64);
        Ok(About::nothing(match done {
            Some(step) => format!("step {step} done"),
            None => counted(input, "steps", "step"),
        }))
    }

    fn runs(&self) -> Runs {
        Runs::Loop(LoopCall::Plan)
    }
}

#[cfg(test)]
mod tests {
    use crate::{Registry, Subject};
    use agentd_protocol::EffectClass;
    use agentd_settings::ToolsConfig;
    use serde_json::{Value, json};

    fn prepared(name: &str, input: &Value) -> Result<(String, Subject, EffectClass), String> {
        Registry::builtin(&ToolsConfig::default())
            .prepare(name, input)
            .map(|prepared| (prepared.title, prepared.subject, prepared.effect))
            .map_err(|outcome| outcome.llm_text)
    }

    #[test]
    fn their_subject_is_the_session_itself() {
        let step = json!({ "title": "a", "check": "b" });
        for (name, input, title) in [
            (
                "ExitPlanMode",
                json!({ "plan": "# Do it\nnow" }),
                "ExitPlanMode # Do it⏎now",
            ),
            ("Plan", json!({ "steps": [step] }), "Plan 1 step"),
            (
                "update_plan",
                json!({ "done": 2, "evidence": "ok" }),
                "Plan step 2 done",
            ),
            ("Skill", json!({ "name": "release" }), "Skill release"),
        ] {
            assert_eq!(
                prepared(name, &input),
                Ok((title.to_owned(), Subject::Nothing, EffectClass::None))
            );
        }
    }

    #[test]
    fn plans_have_limits() {
        let steps = |count: usize| vec![json!({ "title": "a", "check": "b" }); count];
        assert!(prepared("Plan", &json!({ "steps": steps(100) })).is_ok());
        assert!(prepared("Plan", &json!({ "steps": steps(101) })).is_err());
        assert!(prepared("Plan", &json!({ "steps": [{ "title": "a" }] })).is_err());
        assert!(prepared("ExitPlanMode", &json!({ "plan": "x".repeat(20_000) })).is_ok());
        assert!(prepared("ExitPlanMode", &json!({ "plan": "x".repeat(20_001) })).is_err());
        assert!(prepared("Skill", &json!({ "name": "x".repeat(65) })).is_err());
    }
}
