//! Finds tool calls in the text of an answer: the whole text, then a fenced block, then the first object that is a call.

use super::scan::{Part, closed, parts};
use crate::fields::parse_arguments;
use agentd_protocol::{Block, StopReason};
use serde_json::{Map, Value, json};

/// Longer texts are not searched for calls.
const LONGEST: usize = 4 << 20;
/// An answer with more calls than this comes from a broken model.
const MOST_CALLS: usize = 64;
/// The most unmatched brackets that the search skips before it gives up; each costs one pass over the text.
const UNCLOSED: usize = 16;

/// The keys under which models write the name of a tool, and its arguments. The prompt asks for the first.
const NAMES: &[&str] = &["tool", "tool_name", "name", "function", "action"];
const ARGUMENTS: &[&str] = &[
    "args",
    "arguments",
    "parameters",
    "params",
    "input",
    "tool_input",
    "action_input",
];
/// Keys that wrap one or several calls.
const AROUND: &[&str] = &["tool_call", "function_call", "function", "tool_calls", "calls"];

/// Finds the calls in an answer's text. The text is unchanged; the calls are appended.
pub(crate) fn lift(mut content: Vec<Block>, stop: StopReason, tools: &[String]) -> (Vec<Block>, StopReason) {
    let told = content.iter().any(|block| matches!(block, Block::ToolUse { .. }));
    if told || tools.is_empty() || !is_whole(stop) {
        return (content, stop);
    }
    let found = content.iter().find_map(|block| match block {
        Block::Text { text } if text.len() <= LONGEST => find(after_thinking(text), tools),
        Block::Text { .. }
        | Block::Image { .. }
        | Block::Thinking { .. }
        | Block::ToolUse { .. }
        | Block::ToolResult { .. }
        | Block::Unknown => None,
    });
    let Some(calls) = found else {
        return (content, stop);
    };
    let block = |(call, number): (Call, u32)| Block::ToolUse {
        id: format!("call_{number}"),
        name: call.name,
        input: call.input,
    };
    content.extend(calls.into_iter().zip(1..).map(block));
    (content, StopReason::ToolUse)
}

/// Only an answer that ended by itself is searched: a truncated call is not a call.
const fn is_whole(stop: StopReason) -> bool {
    match stop {
        StopReason::EndTurn | StopReason::ToolUse | StopReason::StopSequence | StopReason::Other => true,
        StopReason::MaxTokens
        | StopReason::PauseTurn
        | StopReason::Refusal
        | StopReason::ContentFilter
        | StopReason::ContextWindow => false,
    }
}

/// The text after the reasoning that some templates leave in the answer.
fn after_thinking(text: &str) -> &str {
    let trimmed = text.trim_start();
    if trimmed.starts_with("<think>") {
        return trimmed.split_once("</think>").map_or("", |(_, rest)| rest);
    }
    // If the template itself opens the reasoning, only the closing tag is in the text.
    match trimmed.split_once("</think>") {
        Some((thinking, rest)) if !thinking.starts_with(['{', '[', '`']) => rest,
        Some(_) | None => trimmed,
    }
}

#[derive(Debug)]
struct Call {
    name: String,
    input: Value,
}

fn find(text: &str, tools: &[String]) -> Option<Vec<Call>> {
    let text = text.trim();
    whole(text, tools).or_else(|| {
        let parts = parts(text);
        let fenced = parts.iter().find_map(|part| match part {
            Part::Fenced { language, body } if is_data(language) => whole(body, tools),
            Part::Fenced { .. } | Part::Prose(_) => None,
        });
        fenced.or_else(|| {
            parts.iter().find_map(|part| match part {
                Part::Prose(prose) => first(prose, tools),
                Part::Fenced { .. } => None,
            })
        })
    })
}

/// Blocks in other languages are code samples.
fn is_data(language: &str) -> bool {
    [
        "",
        "json",
        "jsonc",
        "json5",
        "tool",
        "tool_call",
        "tool_code",
        "tool_calls",
    ]
    .iter()
    .any(|known| known.eq_ignore_ascii_case(language))
}

/// A text that consists only of calls.
fn whole(text: &str, tools: &[String]) -> Option<Vec<Call>> {
    let text = text.trim().trim_matches('`');
    let start = skip_between(text, 0);
    let (calls, end) = sequence(text, start, tools, Shape::Told)?;
    (skip_between(text, end) == text.len() && calls.len() <= MOST_CALLS).then_some(calls)
}

/// The first calls within prose. Skipped parts (code, other objects) are skipped whole, so that a call quoted
/// inside one is not executed.
fn first(prose: &str, tools: &[String]) -> Option<Vec<Call>> {
    let (mut at, mut unclosed) = (0, 0);
    while let Some(start) = next_bracket(prose, at) {
        match closed(prose, start) {
            Some(end) => {
                let said = stands_alone(prose, start);
                if let Some((calls, _)) = said
                    .then(|| sequence(prose, start, tools, Shape::Known))
                    .flatten()
                {
                    return (calls.len() <= MOST_CALLS).then_some(calls);
                }
                at = end;
            }
            None => {
                unclosed += 1;
                if unclosed > UNCLOSED {
                    return None;
                }
                at = start + 1;
            }
        }
    }
    None
}

/// The next `{`, or the next `[` followed by a `{`.
fn next_bracket(text: &str, from: usize) -> Option<usize> {
    let rest = text.get(from..)?;
    let list = |at: usize| {
        rest.get(at + 1..)
            .is_some_and(|after| after.trim_start().starts_with('{'))
    };
    rest.match_indices(['{', '['])
        .find(|(at, bracket)| *bracket == "{" || list(*at))
        .map(|(at, _)| from + at)
}

/// Not an argument, not within inline code.
fn stands_alone(text: &str, start: usize) -> bool {
    let before = text.get(..start).and_then(|before| before.chars().next_back());
    before.is_none_or(|c| c.is_whitespace() || matches!(c, ':' | '>' | '：'))
}

/// Consecutive calls from `start` on, with only separators between them, and their end.
fn sequence(text: &str, start: usize, tools: &[String], shape: Shape) -> Option<(Vec<Call>, usize)> {
    let (mut calls, mut end) = (Vec::new(), start);
    loop {
        let at = skip_between(text, end);
        let Some(next) = closed(text, at) else { break };
        let parsed = serde_json::from_str::<Value>(text.get(at..next)?).ok();
        let Some(more) = parsed.and_then(|value| calls_of(value, tools, shape)) else {
            break;
        };
        calls.extend(more);
        end = next;
        if calls.len() > MOST_CALLS {
            break;
        }
    }
    (!calls.is_empty()).then_some((calls, end))
}

/// Skips what models write between calls: white space, commas, tags.
fn skip_between(text: &str, from: usize) -> usize {
    let mut rest = text.get(from..).unwrap_or_default();
    loop {
        let trimmed = rest.trim_start_matches(|c: char| c.is_whitespace() || matches!(c, ',' | ';'));
        let next = ["<tool_call>", "</tool_call>", "[TOOL_CALLS]", "<|tool_call|>"]
            .iter()
            .find_map(|tag| trimmed.strip_prefix(tag))
            .unwrap_or(trimmed);
        if next.len() == rest.len() {
            return text.len() - rest.len();
        }
        rest = next;
    }
}

/// The objects that count as calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    /// Those that name an offered tool, and those in exactly the requested form: a wrong name there is an error that is
    /// reported to the model.
    Told,
    /// Only those that name an offered tool.
    Known,
}

/// One call or several; none if any element is not a call.
fn calls_of(value: Value, tools: &[String], shape: Shape) -> Option<Vec<Call>> {
    match value {
        Value::Array(items) if (1..=MOST_CALLS).contains(&items.len()) => {
            items.into_iter().map(|item| one(item, tools, shape)).collect()
        }
        Value::Object(mut object) => {
            let around = AROUND.iter().find(|key| {
                object
                    .get(**key)
                    .is_some_and(|value| value.is_object() || value.is_array())
            });
            match around.and_then(|key| object.remove(*key)) {
                Some(Value::Array(items)) if (1..=MOST_CALLS).contains(&items.len()) => {
                    items.into_iter().map(|item| one(item, tools, shape)).collect()
                }
                Some(inner) => one(inner, tools, shape).map(|call| vec![call]),
                None => one(Value::Object(object), tools, shape).map(|call| vec![call]),
            }
        }
        Value::Array(_) | Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    }
}

fn one(value: Value, tools: &[String], shape: Shape) -> Option<Call> {
    let Value::Object(mut object) = value else {
        return None;
    };
    if let Some(Value::Object(_)) = object.get("function") {
        return one(object.remove("function")?, tools, shape);
    }
    let told = shape == Shape::Told && looks_as_told(&object);
    let key = NAMES
        .iter()
        .find(|key| object.get(**key).is_some_and(Value::is_string))?;
    let said = object.remove(*key)?.as_str()?.trim().to_owned();
    let known = tools.iter().find(|tool| is_name(tool, &said));
    let name = match known {
        Some(tool) => tool.clone(),
        None if told => said,
        None => return None,
    };
    let arguments = ARGUMENTS.iter().find_map(|key| object.remove(*key));
    let input = match arguments {
        Some(Value::String(text)) => parse_arguments(&text),
        Some(input @ Value::Object(_)) => input,
        Some(Value::Null) => json!({}),
        Some(Value::Bool(_) | Value::Number(_) | Value::Array(_)) => return None,
        // Some models put the arguments next to the name. With other keys, any object with a name would match.
        None if key.starts_with("tool") => Value::Object(object),
        None => return None,
    };
    Some(Call { name, input })
}

/// Whether an object has exactly the requested keys.
fn looks_as_told(object: &Map<String, Value>) -> bool {
    let name = object.get("tool").and_then(Value::as_str).unwrap_or_default();
    let word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    object.len() == 2
        && object.get("args").is_some_and(Value::is_object)
        && (1..=64).contains(&name.len())
        && name.chars().all(word)
}

/// Compares names, ignoring case and word separators.
fn is_name(tool: &str, said: &str) -> bool {
    let letters = |name: &str| -> String {
        let kept = name.chars().filter(|c| !matches!(c, '_' | '-' | ' '));
        kept.flat_map(char::to_lowercase).collect()
    };
    tool == said || letters(tool) == letters(said)
}
