//! Finding calls in the text of an answer: the whole text, then a fenced block, then the first object that calls.

use super::scan::{Part, closed, parts};
use crate::fields::parse_arguments;
use agentd_protocol::{Block, StopReason};
use serde_json::{Map, Value, json};

/// Longer texts are words, whatever is in them.
const LONGEST: usize = 4 << 20;
/// More calls than this in one answer are a broken model.
const MOST_CALLS: usize = 64;
/// Brackets without a partner that are passed over before the search is given up; each costs one pass over the text.
const UNCLOSED: usize = 16;

/// Under which keys models write the name of a tool, and its arguments. The first is the one they are told to use.
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
/// Keys around one call or several.
const AROUND: &[&str] = &["tool_call", "function_call", "function", "tool_calls", "calls"];

/// Finds the calls in an answer's text. The text stays as it is; the calls are added behind it.
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

/// A call is only looked for in an answer that ended by itself: half a call is none.
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

/// What follows the reasoning that some templates leave in the text.
fn after_thinking(text: &str) -> &str {
    let trimmed = text.trim_start();
    if trimmed.starts_with("<think>") {
        return trimmed.split_once("</think>").map_or("", |(_, rest)| rest);
    }
    // Where the template itself opens the reasoning, only its end is in the text.
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

/// Blocks of other languages are samples of code.
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

/// A text that is calls and nothing else.
fn whole(text: &str, tools: &[String]) -> Option<Vec<Call>> {
    let text = text.trim().trim_matches('`');
    let start = skip_between(text, 0);
    let (calls, end) = sequence(text, start, tools, Shape::Told)?;
    (skip_between(text, end) == text.len() && calls.len() <= MOST_CALLS).then_some(calls)
}

/// The first calls among words. What is passed over (code, other objects) is passed over as a whole, so that a call that
/// is quoted inside of it stays a quotation.
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

/// The next `{`, or `[` that a `{` follows.
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

/// Not an argument, not inside inline code.
fn stands_alone(text: &str, start: usize) -> bool {
    let before = text.get(..start).and_then(|before| before.chars().next_back());
    before.is_none_or(|c| c.is_whitespace() || matches!(c, ':' | '>' | '：'))
}

/// Calls from `start` on that follow each other with nothing but separators between them, and where they end.
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

/// Past what models write between calls: white space, commas, tags.
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

/// Which objects are calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    /// Those that name a tool that was offered, and those that look exactly as told: a wrong name is then an error that
    /// the model hears of.
    Told,
    /// Only those that name a tool that was offered.
    Known,
}

/// One call or several; nothing when anything among them is none.
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
        // Some models write the arguments beside the name. Under other keys that would be any object with a name.
        None if key.starts_with("tool") => Value::Object(object),
        None => return None,
    };
    Some(Call { name, input })
}

/// Exactly the keys that the model was told to write.
fn looks_as_told(object: &Map<String, Value>) -> bool {
    let name = object.get("tool").and_then(Value::as_str).unwrap_or_default();
    let word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    object.len() == 2
        && object.get("args").is_some_and(Value::is_object)
        && (1..=64).contains(&name.len())
        && name.chars().all(word)
}

/// The same name but for case and for what stands between its words.
fn is_name(tool: &str, said: &str) -> bool {
    let letters = |name: &str| -> String {
        let kept = name.chars().filter(|c| !matches!(c, '_' | '-' | ' '));
        kept.flat_map(char::to_lowercase).collect()
    };
    tool == said || letters(tool) == letters(said)
}
