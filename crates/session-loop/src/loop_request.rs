//! Calls that the loop answers itself: turns their checked arguments into requests to the loop.

use agentd_protocol::{Choice, TodoItem};
use agentd_tools::{LoopCall, Prepared, Runs};
use agentd_turn::{Delegation, LoopRequest, PlanRequest};
use serde_json::Value;

/// The request in a call, if it is one that the loop answers. Its arguments have passed the tool's schema.
#[must_use]
pub fn loop_request(prepared: &Prepared) -> Option<LoopRequest> {
    let input = &prepared.input;
    Some(match prepared.tool()?.runs() {
        Runs::Loop(LoopCall::Todo) => LoopRequest::Todo(items(input)),
        Runs::Loop(LoopCall::LeavePlanMode) => LoopRequest::LeavePlanMode(text(input, "plan")),
        Runs::Loop(LoopCall::Plan) => LoopRequest::Plan(plan(input)),
        Runs::Loop(LoopCall::Ask) => LoopRequest::Ask {
            question: text(input, "question"),
            choices: choices(input),
        },
        Runs::SubAgent => LoopRequest::Delegate(Delegation {
            purpose: text(input, "description"),
            prompt: text(input, "prompt"),
            agent: input.get("agent").and_then(Value::as_str).map(str::to_owned),
        }),
        Runs::Files(_) | Runs::Worker(_) => return None,
    })
}

fn text(input: &Value, name: &str) -> String {
    input
        .get(name)
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_owned()
}

/// A completed step, or else the steps of a plan.
fn plan(input: &Value) -> PlanRequest {
    if let Some(step) = input.get("done").and_then(Value::as_u64) {
        return PlanRequest::Done {
            step: u32::try_from(step).unwrap_or(u32::MAX),
            evidence: text(input, "evidence"),
        };
    }
    let steps = list(input, "steps").iter();
    PlanRequest::Steps {
        steps: steps
            .map(|step| (text(step, "title"), text(step, "check")))
            .collect(),
        reason: input.get("reason").and_then(Value::as_str).map(str::to_owned),
    }
}

fn list<'a>(input: &'a Value, name: &str) -> &'a [Value] {
    input
        .get(name)
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

fn items(input: &Value) -> Vec<TodoItem> {
    let items = list(input, "todos").iter();
    items
        .filter_map(|item| serde_json::from_value(item.clone()).ok())
        .collect()
}

/// The words are also the id: a person who answers by hand types the words that are shown.
fn choices(input: &Value) -> Vec<Choice> {
    let words = list(input, "choices").iter().filter_map(Value::as_str);
    words
        .map(|words| Choice {
            id: words.to_owned(),
            label: words.to_owned(),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use agentd_protocol::TodoStatus;
    use agentd_settings::ToolsConfig;
    use agentd_tools::Registry;
    use serde_json::json;

    fn said(name: &str, input: &Value) -> Option<LoopRequest> {
        let tools = Registry::builtin(&ToolsConfig::default());
        loop_request(&tools.prepare(name, input).unwrap())
    }

    #[test]
    fn a_list_and_a_question_are_read_from_their_arguments() {
        let todo = json!({ "todos": [{ "content": "a", "status": "in_progress" }] });
        let item = TodoItem {
            content: "a".into(),
            status: TodoStatus::InProgress,
        };
        assert_eq!(said("TodoWrite", &todo), Some(LoopRequest::Todo(vec![item])));
        let choice = |words: &str| Choice {
            id: words.into(),
            label: words.into(),
        };
        assert_eq!(
            said(
                "ask_user",
                &json!({ "question": "Which?", "choices": ["red", "blue"] })
            ),
            Some(LoopRequest::Ask {
                question: "Which?".into(),
                choices: vec![choice("red"), choice("blue")],
            })
        );
        let step = json!({ "title": "a", "check": "b" });
        assert_eq!(
            said("Plan", &json!({ "steps": [step] })),
            Some(LoopRequest::Plan(PlanRequest::Steps {
                steps: vec![("a".into(), "b".into())],
                reason: None,
            }))
        );
        assert_eq!(
            said("Plan", &json!({ "done": 1, "evidence": "ok" })),
            Some(LoopRequest::Plan(PlanRequest::Done {
                step: 1,
                evidence: "ok".into(),
            }))
        );
        let left = said("ExitPlanMode", &json!({ "plan": "do it" }));
        assert_eq!(left, Some(LoopRequest::LeavePlanMode("do it".into())));
        assert_eq!(said("Read", &json!({ "file_path": "a" })), None);
    }
}
