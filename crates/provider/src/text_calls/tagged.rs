//! Calls between the tags of a model's own template, which some servers pass on unread.

use super::places::Found;
use super::scan::closed;
use super::shape::{Call, Names, Shaped, shape};
use crate::names::meant;
use agentd_lenient_json::{Ending, Repairs, value_at};
use serde_json::{Map, Value};

/// Tags around JSON.
const AROUND_JSON: [(&str, &str); 6] = [
    ("<tool_call>", "</tool_call>"),
    ("<function_call>", "</function_call>"),
    ("<tool_calls>", "</tool_calls>"),
    ("<|tool_call|>", "<|/tool_call|>"),
    ("<|python_tag|>", "<|eom_id|>"),
    ("[TOOL_CALLS]", "[/TOOL_CALLS]"),
];
const FUNCTION: &str = "<function=";
const FUNCTION_END: &str = "</function>";
const PARAMETER: &str = "<parameter=";
const PARAMETER_END: &str = "</parameter>";
const ARGS: &str = "[ARGS]";

/// What follows an opening tag: the calls, where they end, and their repairs; or what is wrong.
type Tagged = Result<(Vec<Call>, usize, Repairs), String>;

/// All opening tags.
pub(crate) fn openers() -> impl Iterator<Item = &'static str> {
    AROUND_JSON.iter().map(|(open, _)| *open).chain([FUNCTION])
}

/// The calls after the tag at a byte of the text, or what is wrong with them, and where they end; none if there is no
/// tag, or if words follow it.
pub(crate) fn tagged(text: &str, start: usize, tools: &[String], ending: Ending) -> Option<(Found, usize)> {
    let rest = text.get(start..)?;
    let (inside, close) = match AROUND_JSON.iter().find(|(open, _)| rest.starts_with(open)) {
        Some((open, close)) => (skip_space(text, start + open.len()), *close),
        None => (start, FUNCTION_END),
    };
    let within = text.get(inside..)?;
    let found = if within.starts_with(FUNCTION) {
        function(text, inside, tools, ending)?
    } else if within.starts_with(['{', '[']) {
        json(text, inside, close, tools, ending)
    } else {
        named(text, inside, within, tools, ending)?
    };
    Some(match found {
        Ok((calls, end, repairs)) => (Ok((calls, repairs)), skip(text, end, close)),
        Err(why) => {
            let closing = within.find(close).map(|length| inside + length + close.len());
            (
                Err(why),
                closing.or_else(|| closed(text, inside)).unwrap_or(text.len()),
            )
        }
    })
}

/// JSON up to the closing tag; a brace may be missing before it.
fn json(text: &str, start: usize, close: &str, tools: &[String], ending: Ending) -> Tagged {
    let inner = text
        .get(start..)
        .and_then(|rest| rest.find(close))
        .and_then(|length| text.get(..start + length));
    let found = match (value_at(text, start, ending), inner) {
        (Err(_), Some(inner)) => value_at(inner, start, Ending::Own),
        (found, _) => found,
    };
    let found = found.map_err(|mistake| mistake.located(text).to_string())?;
    match shape(found.value, tools, Names::Marked) {
        Shaped::Calls(calls) => Ok((calls, found.end, found.repairs)),
        Shaped::Bad(why) => Err(why),
        Shaped::Other => Err("it does not name a tool and its arguments".to_owned()),
    }
}

/// `NAME[ARGS]{…}`, or `NAME{…}`.
fn named(text: &str, start: usize, within: &str, tools: &[String], ending: Ending) -> Option<Tagged> {
    let length = within.find(|c: char| !is_word(c))?;
    let name = within.get(..length)?;
    let at = skip_space(text, skip(text, start + length, ARGS));
    let called = !name.is_empty() && text.as_bytes().get(at) == Some(&b'{');
    called.then(|| with_arguments(text, name, at, tools, ending))
}

/// `<function=NAME>`, then an object or parameters; none if it is no such tag.
fn function(text: &str, start: usize, tools: &[String], ending: Ending) -> Option<Tagged> {
    let rest = text.get(start + FUNCTION.len()..)?;
    let length = rest.find(|c: char| !is_word(c) && c != '"').unwrap_or(rest.len());
    let name = rest.get(..length)?.trim_matches('"');
    match rest.get(length..)?.chars().next() {
        Some('>') => {
            let at = skip_space(text, start + FUNCTION.len() + length + 1);
            Some(called(text, name, at, tools, ending))
        }
        Some(_) => None,
        None => Some(Err("the tag <function= does not end".to_owned())),
    }
}

/// The text after the tag of a function.
fn called(text: &str, name: &str, at: usize, tools: &[String], ending: Ending) -> Tagged {
    let (calls, end, repairs) = if text.as_bytes().get(at) == Some(&b'{') {
        with_arguments(text, name, at, tools, ending)?
    } else {
        let (input, end) = parameters(text, at)?;
        (vec![call(name, input, tools)?], end, Repairs::default())
    };
    let closed = skip(text, end, FUNCTION_END);
    let rest = text.get(end..).unwrap_or_default().trim_start();
    let ends = ending == Ending::Own && (rest.is_empty() || rest.starts_with("</tool_call>"));
    if closed == end && !ends {
        return Err(format!("</function> is missing after the call of {name}"));
    }
    Ok((calls, closed, repairs))
}

/// An object with the arguments of a named tool.
fn with_arguments(text: &str, name: &str, at: usize, tools: &[String], ending: Ending) -> Tagged {
    let found = value_at(text, at, ending).map_err(|mistake| mistake.located(text).to_string())?;
    match found.value {
        Value::Object(input) => Ok((vec![call(name, input, tools)?], found.end, found.repairs)),
        _ => Err(format!("the arguments of {name} are not an object")),
    }
}

fn call(name: &str, input: Map<String, Value>, tools: &[String]) -> Result<Call, String> {
    let name = meant(name, tools).ok_or_else(|| format!("there is no tool {name:?}"))?;
    Ok(Call {
        name: name.clone(),
        input: Value::Object(input),
    })
}

const fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.')
}

/// Parameters between tags; the templates put a line break on each side of a value.
fn parameters(text: &str, start: usize) -> Result<(Map<String, Value>, usize), String> {
    let (mut input, mut at) = (Map::new(), start);
    loop {
        at = skip_space(text, at);
        let rest = text.get(at..).unwrap_or_default();
        let Some(begun) = rest.strip_prefix(PARAMETER) else {
            return Ok((input, at));
        };
        let (name, value) = begun.split_once('>').ok_or("the tag <parameter= does not end")?;
        let name = name.trim().trim_matches('"');
        let Some((value, after)) = value.split_once(PARAMETER_END) else {
            return Err(format!("the parameter {name} does not end with </parameter>"));
        };
        let value = value
            .strip_prefix("\r\n")
            .or_else(|| value.strip_prefix('\n'))
            .unwrap_or(value);
        let value = value
            .strip_suffix('\n')
            .map_or(value, |value| value.strip_suffix('\r').unwrap_or(value));
        input.insert(name.to_owned(), Value::String(value.to_owned()));
        at = text.len() - after.len();
    }
}

/// Skips a tag after white space, if it is there.
fn skip(text: &str, at: usize, tag: &str) -> usize {
    let from = skip_space(text, at);
    match text.get(from..) {
        Some(rest) if rest.starts_with(tag) => from + tag.len(),
        _ => at,
    }
}

fn skip_space(text: &str, at: usize) -> usize {
    let rest = text.get(at..).unwrap_or_default();
    text.len() - rest.trim_start().len()
}
