//! The calls that an agent's loop answers itself: its to-do list, and questions to a person.

use crate::catalog::object;
use crate::context::ToolLimits;
use crate::spec::ToolSpec;
use crate::tool::{About, LoopCall, Runs, Tool, counted, word};
use agentd_protocol::{EffectClass, ToolOutcome};
use serde_json::{Value, json};

/// The longest list.
const MAX_ITEMS: usize = 100;
/// The longest text of one to-do item, or of one choice.
const MAX_LINE: usize = 500;
/// The longest question.
const MAX_QUESTION: usize = 4_000;

/// Sets the to-do list, which the loop keeps.
pub(crate) struct TodoWrite;

impl Tool for TodoWrite {
    fn name(&self) -> &'static str {
        "TodoWrite"
    }

    fn spec(&self, _limits: &ToolLimits) -> ToolSpec {
        ToolSpec {
            name: self.name().into(),
            aliases: &["todo_write", "update_todos", "write_todos"],
            title: "Keep a list of things to do".into(),
            description: "Replaces your to-do list, which the person sees. Use it for work of several steps; keep one item in_progress.".to_owned(),
            schema: object(
                &json!({
                    "todos": {
                        "type": "array",
                        "maxItems": MAX_ITEMS,
                        "items": object(
                            &json!({
                                "content": { "type": "string", "minLength": 1, "maxLength": MAX_LINE },
                                "status": { "enum": ["pending", "in_progress", "completed"] }
                            }),
                            &["content", "status"],
                        )
                    }
                }),
                &["todos"],
            ),
            example: json!({ "todos": [{ "content": "run the tests", "status": "in_progress" }] }),
            effect: EffectClass::None,
            idempotent: true,
            server: None,
        }
    }

    fn subject(&self, input: &Value) -> Result<About, ToolOutcome> {
        Ok(About::nothing(counted(input, "todos", "item")))
    }

    fn runs(&self) -> Runs {
        Runs::Loop(LoopCall::Todo)
    }
}

/// Asks a person a question.
pub(crate) struct AskUser;

impl Tool for AskUser {
    fn name(&self) -> &'static str {
        "AskUser"
    }

    fn spec(&self, _limits: &ToolLimits) -> ToolSpec {
        ToolSpec {
            name: self.name().into(),
            aliases: &["ask_user", "ask_user_question", "ask_followup_question", "ask_human"],
            title: "Ask the person".into(),
            description: "Asks the person a question and waits for the answer. Use it only for things that you cannot find out or decide yourself; the answer may never come.".to_owned(),
            schema: object(
                &json!({
                    "question": { "type": "string", "minLength": 1, "maxLength": MAX_QUESTION },
                    "choices": {
                        "type": "array",
                        "maxItems": 10,
                        "description": "Suggested answers",
                        "items": { "type": "string", "minLength": 1, "maxLength": MAX_LINE }
                    }
                }),
                &["question"],
            ),
            example: json!({ "question": "Which database should the tests use?", "choices": ["SQLite", "PostgreSQL"] }),
            effect: EffectClass::None,
            idempotent: true,
            server: None,
        }
    }

    fn subject(&self, input: &Value) -> Result<About, ToolOutcome> {
        Ok(About::nothing(word(input, "question")))
    }

    fn runs(&self) -> Runs {
        Runs::Loop(LoopCall::Ask)
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
        let item = json!({ "content": "a", "status": "pending" });
        let talks = [
            ("TodoWrite", json!({ "todos": [item] }), "TodoWrite 1 item"),
            ("todo_write", json!({ "todos": [] }), "TodoWrite 0 items"),
            ("AskUser", json!({ "question": "Which?" }), "AskUser Which?"),
        ];
        for (name, input, title) in talks {
            let expected = (title.to_owned(), Subject::Nothing, EffectClass::None);
            assert_eq!(prepared(name, &input), Ok(expected));
        }
    }

    #[test]
    fn lists_and_questions_have_limits() {
        let items = |count: usize| vec![json!({ "content": "a", "status": "pending" }); count];
        assert!(prepared("TodoWrite", &json!({ "todos": items(100) })).is_ok());
        assert!(prepared("TodoWrite", &json!({ "todos": items(101) })).is_err());
        for (name, bad) in [
            (
                "TodoWrite",
                json!({ "todos": [{ "content": "a", "status": "maybe" }] }),
            ),
            (
                "TodoWrite",
                json!({ "todos": [{ "content": "", "status": "pending" }] }),
            ),
            (
                "TodoWrite",
                json!({ "todos": [{ "content": "x".repeat(501), "status": "pending" }] }),
            ),
            ("AskUser", json!({})),
            ("AskUser", json!({ "question": "x".repeat(4_001) })),
            ("AskUser", json!({ "question": "a", "choices": vec!["b"; 11] })),
        ] {
            assert!(prepared(name, &bad).is_err(), "{name} {bad}");
        }
    }
}
