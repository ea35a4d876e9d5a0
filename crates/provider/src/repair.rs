//! Repairs the calls of an answer, in every dialect: their names and their arguments.

use crate::names::meant;
use agentd_lenient_json::{Ending, decode};
use agentd_protocol::{Block, StopReason};
use serde_json::Value;

/// Repairs what is unambiguous and returns one text per repaired call. Arguments that cannot be read stay the raw text.
pub(crate) fn repair(content: &mut [Block], stop: StopReason, tools: &[String]) -> Vec<String> {
    let ending = match stop {
        StopReason::MaxTokens | StopReason::ContextWindow => Ending::Cut,
        StopReason::EndTurn
        | StopReason::ToolUse
        | StopReason::StopSequence
        | StopReason::PauseTurn
        | StopReason::Refusal
        | StopReason::ContentFilter
        | StopReason::Other => Ending::Own,
    };
    let mut repaired = Vec::new();
    for block in content {
        let Block::ToolUse { name, input, .. } = block else {
            continue;
        };
        let mut said = Vec::new();
        if let Some(tool) = renamed(name, tools) {
            said.push(format!("read the name {name:?} as {tool}"));
            tool.clone_into(name);
        }
        if let Value::String(text) = input
            && let Ok(decoded) = decode(text, ending)
        {
            if !decoded.repairs.is_empty() {
                said.push(decoded.repairs.to_string());
            }
            *input = Value::Object(decoded.object);
        }
        if !said.is_empty() {
            repaired.push(format!("{name}: {}", said.join(", ")));
        }
    }
    repaired
}

/// The offered tool that a name means, if that takes more than another case, which the tools themselves understand.
fn renamed<'a>(name: &str, tools: &'a [String]) -> Option<&'a String> {
    meant(name, tools)
        .filter(|_| name.contains(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '_' | '-')))
        .filter(|tool| *tool != name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn call(name: &str, input: Value) -> Block {
        Block::ToolUse {
            id: "x".into(),
            name: name.into(),
            input,
        }
    }

    #[track_caller]
    fn check(before: (&str, Value), stop: StopReason, after: (&str, Value), said: &[&str]) {
        let tools = ["Bash".to_owned()];
        let mut content = [call(before.0, before.1)];
        let repaired = repair(&mut content, stop, &tools);
        assert_eq!(
            (content, repaired),
            (
                [call(after.0, after.1)],
                said.iter().map(|said| (*said).to_owned()).collect()
            )
        );
    }

    #[test]
    fn a_call_is_repaired_and_says_so() {
        let ls = || json!({"command": "ls"});
        check(("Bash", ls()), StopReason::ToolUse, ("Bash", ls()), &[]);
        check(("bash", ls()), StopReason::ToolUse, ("bash", ls()), &[]);
        check(
            ("functions.Bash", json!("{}{\"command\": \"ls\",}")),
            StopReason::ToolUse,
            ("Bash", ls()),
            &[
                "Bash: read the name \"functions.Bash\" as Bash, removed a trailing comma, removed an empty object",
            ],
        );
        check(
            ("Bash", json!("{\"command\": \"ls\"")),
            StopReason::EndTurn,
            ("Bash", ls()),
            &["Bash: added a missing closing brace"],
        );
    }

    #[test]
    fn i4_a_call_that_was_cut_off_stays_as_it_is() {
        let cut = || json!("{\"command\": \"ls\"");
        check(("Bash", cut()), StopReason::MaxTokens, ("Bash", cut()), &[]);
        check(("Bash", cut()), StopReason::ContextWindow, ("Bash", cut()), &[]);
        let half = || json!("{\"command\": \"rm -rf /tm");
        check(("Bash", half()), StopReason::ToolUse, ("Bash", half()), &[]);
        check(
            ("Frob.nicate", json!([1])),
            StopReason::ToolUse,
            ("Frob.nicate", json!([1])),
            &[],
        );
    }
}
