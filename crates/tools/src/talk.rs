//! Specs of the calls that an agent's loop answers by itself: its list of things to do, and questions to the person.

use crate::catalog::object;
use crate::spec::ToolSpec;
use agentd_protocol::EffectClass;
use serde_json::{Value, json};

/// The longest list.
const MAX_ITEMS: usize = 100;
/// The longest text of one thing to do, or of one choice.
const MAX_LINE: usize = 500;
/// The longest question.
const MAX_QUESTION: usize = 4_000;

pub(crate) fn todo_write() -> ToolSpec {
    ToolSpec {
        name: "TodoWrite".into(),
        aliases: &["todo_write", "update_todos", "write_todos"],
        title: "Keep a list of things to do".into(),
        description: "Replaces your list of things to do, which people see. Use it for work of several steps; keep one item in_progress.".to_owned(),
        schema: object(
            &json!({
                "todos": {
                    "type": "array",
                    "maxItems": MAX_ITEMS,
                    "description": "The whole list",
                    "items": object(
                        &json!({
                            "content": { "type": "string", "minLength": 1, "maxLength": MAX_LINE, "description": "What is to be done" },
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

pub(crate) fn ask_user() -> ToolSpec {
    ToolSpec {
        name: "AskUser".into(),
        aliases: &["ask_user", "ask_user_question", "ask_followup_question", "ask_human"],
        title: "Ask the person".into(),
        description: "Asks the person a question and waits for the answer. Only for what you cannot find out or decide yourself; there may be nobody who answers.".to_owned(),
        schema: object(
            &json!({
                "question": { "type": "string", "minLength": 1, "maxLength": MAX_QUESTION, "description": "The question" },
                "choices": {
                    "type": "array",
                    "maxItems": 10,
                    "description": "Answers to choose from; the person may say something else",
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

/// What such a call is about, for its title.
pub(crate) fn about(input: &Value) -> String {
    if let Some(question) = input.get("question").and_then(Value::as_str) {
        return question.to_owned();
    }
    let text = |name: &str| input.get(name).and_then(Value::as_str);
    if let Some(words) = text("plan")
        .or_else(|| text("name"))
        .or_else(|| text("description"))
    {
        return words.to_owned();
    }
    if let Some(step) = input.get("done").and_then(Value::as_u64) {
        return format!("step {step} done");
    }
    if let Some(steps) = input.get("steps").and_then(Value::as_array) {
        return if steps.len() == 1 {
            "1 step".to_owned()
        } else {
            format!("{} steps", steps.len())
        };
    }
    if let Some(job) = input.get("job").and_then(Value::as_u64) {
        return format!("job {job}");
    }
    match input.get("todos").and_then(Value::as_array).map_or(0, Vec::len) {
        1 => "1 item".to_owned(),
        count => format!("{count} items"),
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
    fn they_are_about_nothing_outside_the_session() {
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
