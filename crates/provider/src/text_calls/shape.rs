//! The objects that are calls, in every form that models write.

use crate::fields::parse_arguments;
use crate::names::meant;
use agentd_protocol::Block;
use serde_json::{Map, Value, json};

/// An answer with more calls than this comes from a broken model.
pub(crate) const MOST_CALLS: usize = 64;

/// The keys under which models write the name of a tool, and its arguments. The prompt asks for the first.
const NAMES: [&str; 5] = ["tool", "tool_name", "name", "function", "action"];
const ARGUMENTS: [&str; 7] = [
    "args",
    "arguments",
    "parameters",
    "params",
    "input",
    "tool_input",
    "action_input",
];
/// Keys that wrap one or several calls.
const AROUND: [&str; 5] = ["tool_call", "function_call", "function", "tool_calls", "calls"];

/// A call in a text.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Call {
    pub(crate) name: String,
    pub(crate) input: Value,
}

impl Call {
    /// The call as a block; `number` makes its id.
    pub(crate) fn into_block(self, number: usize) -> Block {
        Block::ToolUse {
            id: format!("call_{number}"),
            name: self.name,
            input: self.input,
        }
    }
}

/// What a value is.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Shaped {
    /// Calls.
    Calls(Vec<Call>),
    /// It names an offered tool, but is no call: what is wrong with it.
    Bad(String),
    /// Something else.
    Other,
}

/// How strictly a name is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Names {
    /// Only an offered tool is a call.
    Offered,
    /// So is any name in exactly the form that the prompt asks for: the model hears that there is no such tool.
    AsTold,
    /// Something that is marked as a call, but names no offered tool, is a mistake.
    Marked,
}

/// One call or several; something else if any element is not a call.
pub(crate) fn shape(value: Value, tools: &[String], names: Names) -> Shaped {
    match value {
        Value::Array(items) if (1..=MOST_CALLS).contains(&items.len()) => all(items, tools, names),
        Value::Object(mut object) => {
            let around = AROUND.iter().find(|key| {
                object
                    .get(**key)
                    .is_some_and(|value| value.is_object() || value.is_array())
            });
            match around.and_then(|key| object.remove(*key)) {
                Some(Value::Array(items)) if (1..=MOST_CALLS).contains(&items.len()) => {
                    all(items, tools, names)
                }
                Some(inner) => one(inner, tools, names),
                None => one(Value::Object(object), tools, names),
            }
        }
        Value::Array(_) | Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Shaped::Other,
    }
}

fn all(items: Vec<Value>, tools: &[String], names: Names) -> Shaped {
    let mut calls = Vec::with_capacity(items.len());
    for item in items {
        match one(item, tools, names) {
            Shaped::Calls(one) => calls.extend(one),
            other => return other,
        }
    }
    Shaped::Calls(calls)
}

fn one(value: Value, tools: &[String], names: Names) -> Shaped {
    let Value::Object(mut object) = value else {
        return Shaped::Other;
    };
    if object.get("function").is_some_and(Value::is_object)
        && let Some(function) = object.remove("function")
    {
        return one(function, tools, names);
    }
    let told = names == Names::AsTold && looks_as_told(&object);
    let Some(key) = NAMES
        .iter()
        .find(|key| object.get(**key).is_some_and(Value::is_string))
    else {
        return Shaped::Other;
    };
    let said = match object.remove(*key) {
        Some(Value::String(said)) => said.trim().to_owned(),
        _ => return Shaped::Other,
    };
    let name = match meant(&said, tools) {
        Some(tool) => tool.clone(),
        None if told => said,
        None if names == Names::Marked => return Shaped::Bad(format!("there is no tool {said:?}")),
        None => return Shaped::Other,
    };
    let input = match ARGUMENTS.iter().find_map(|key| object.remove(*key)) {
        Some(Value::String(text)) => parse_arguments(&text),
        Some(input @ Value::Object(_)) => input,
        Some(Value::Null) => json!({}),
        Some(Value::Bool(_) | Value::Number(_) | Value::Array(_)) => {
            return Shaped::Bad(format!("the arguments of {name} are not an object"));
        }
        // Some models put the arguments next to the name. With other keys, any object with a name would match.
        None if key.starts_with("tool") => Value::Object(object),
        None => return Shaped::Bad(format!("the call of {name} has no `args`")),
    };
    Shaped::Calls(vec![Call { name, input }])
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

/// Whether an object that cannot be read was meant as a call: it begins with one of the keys of a call, and the name, if
/// that comes first, is an offered tool.
pub(crate) fn begins_call(text: &str, tools: &[String]) -> bool {
    let Some((key, after)) = first_key(text) else {
        return false;
    };
    if AROUND.contains(&key) && after.starts_with(['{', '[']) {
        return true;
    }
    let quoted = after.strip_prefix(['"', '\'']).unwrap_or_default();
    let name = quoted.split(['"', '\'', '\n']).next().unwrap_or_default();
    NAMES.contains(&key) && (key.starts_with("tool") || meant(name, tools).is_some())
}

/// Whether the beginning of an object can still become one that [`begins_call`].
pub(crate) fn may_begin_call(text: &str) -> bool {
    match first_key(text) {
        Some((key, _)) => {
            AROUND.contains(&key) || NAMES.contains(&key) || ARGUMENTS.contains(&key) || key == "type"
        }
        None => opening(text)
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '"' | '\'' | ' ')),
    }
}

fn opening(text: &str) -> &str {
    text.trim_start_matches(|c: char| c.is_whitespace() || matches!(c, '{' | '['))
}

/// The first key of an object, and the text after its colon.
fn first_key(text: &str) -> Option<(&str, &str)> {
    let inside = opening(text);
    let word = inside.strip_prefix(['"', '\'']).unwrap_or(inside);
    let length = word.find(|c: char| !c.is_ascii_alphanumeric() && c != '_')?;
    let (key, after) = word.split_at(length);
    let after = after.strip_prefix(['"', '\'']).unwrap_or(after).trim_start();
    after.strip_prefix(':').map(|after| (key, after.trim_start()))
}
