//! Arguments as models write them: accepts other spellings and explains mistakes.

use crate::refusal::{Code, refuse};
use crate::spec::ToolSpec;
use crate::tool::{Spelling, Tool};
use agentd_lenient_json::{Ending, decode};
use agentd_protocol::{ToolOutcome, nearest};
use jsonschema::Validator;
use jsonschema::error::{TypeKind, ValidationErrorKind};
use serde_json::{Map, Value};

/// Spellings that models use for arguments of any tool.
const COMMON: [Spelling; 3] = [
    ("case_insensitive", &["-i", "ignore_case", "ignoreCase"]),
    ("context", &["-C", "context_lines"]),
    ("timeout_ms", &["timeoutMs"]),
];

/// Renames the arguments to their canonical names; the error explains what is wrong with them.
#[expect(clippy::result_large_err, reason = "the error is the result of the call")]
pub(crate) fn checked(
    tool: Option<&'static dyn Tool>,
    spec: &ToolSpec,
    validator: &Validator,
    input: &Value,
) -> Result<Value, ToolOutcome> {
    let Value::Object(given) = input else {
        return Err(no_object(spec, input));
    };
    if spec.server.is_some() && validator.is_valid(input) {
        return Ok(input.clone());
    }
    let normal = Value::Object(normalised(tool, spec, given.clone()));
    let problems: Vec<String> = validator
        .iter_errors(&normal)
        .take(8)
        .map(|error| problem(spec, &error))
        .collect();
    if problems.is_empty() {
        return tool.map_or(Ok(()), |tool| tool.check(&normal)).map(|()| normal);
    }
    Err(refuse(
        Code::InvalidArgs,
        explain(spec, &problems.join("; "), input),
    ))
}

fn normalised(
    tool: Option<&'static dyn Tool>,
    spec: &ToolSpec,
    mut given: Map<String, Value>,
) -> Map<String, Value> {
    let own = tool.map_or(&[][..], Tool::spellings);
    for (name, others) in own.iter().copied().chain(COMMON) {
        if declared(spec, name).is_none() || given.contains_key(name) {
            continue;
        }
        if let Some(value) = others.iter().find_map(|other| given.shift_remove(*other)) {
            given.insert(name.to_owned(), value);
        }
    }
    given.retain(|_, value| !value.is_null());
    if let Some(tool) = tool {
        tool.adapt(&mut given);
    }
    for (name, value) in &mut given {
        let Some(wanted) = declared(spec, name).and_then(|schema| schema.get("type")?.as_str()) else {
            continue;
        };
        let Value::String(text) = &*value else { continue };
        let parsed = match wanted {
            "integer" => text.trim().parse::<i64>().ok().map(Value::from),
            "boolean" => text.trim().to_lowercase().parse::<bool>().ok().map(Value::from),
            _ => None,
        };
        if let Some(parsed) = parsed {
            *value = parsed;
        }
    }
    given
}

fn declared<'a>(spec: &'a ToolSpec, name: &str) -> Option<&'a Value> {
    spec.schema.get("properties")?.get(name)
}

fn no_object(spec: &ToolSpec, input: &Value) -> ToolOutcome {
    let what = match input {
        Value::String(text) => unreadable(text),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            "the arguments are not a JSON object".to_owned()
        }
    };
    refuse(Code::InvalidArgs, explain(spec, &what, input))
}

/// Says why arguments could not be repaired. Only those that end early may have been cut off.
fn unreadable(text: &str) -> String {
    match decode(text, Ending::Own) {
        Ok(_) => "the arguments are a string instead of a JSON object".to_owned(),
        Err(fault) if fault.ends_early() => {
            format!("the arguments are not valid JSON: {fault}; if they were cut off, give less at once")
        }
        Err(fault) => format!("the arguments are not valid JSON: {fault}"),
    }
}

fn explain(spec: &ToolSpec, what: &str, input: &Value) -> String {
    let got = match input {
        Value::String(text) => text.clone(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            input.to_string()
        }
    };
    let mut short: String = got.chars().take(300).collect();
    if short.len() < got.len() {
        short.push_str("...");
    }
    let fields: Vec<String> = spec
        .schema
        .get("properties")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
        .map(|(name, schema)| field(spec, name, schema))
        .collect();
    let mut text = format!(
        "{}: {what}.\nGot: {short}\nArguments: {}",
        spec.name,
        fields.join(", ")
    );
    if !spec.example.is_null() {
        text.push_str(&format!("\nExample: {}", spec.example));
    }
    text
}

fn field(spec: &ToolSpec, name: &str, schema: &Value) -> String {
    let kind = match (schema.get("type").and_then(Value::as_str), schema.get("enum")) {
        (Some(kind), _) => kind.to_owned(),
        (None, Some(options)) => format!("one of {options}"),
        (None, None) => "any".to_owned(),
    };
    let required = spec.schema.get("required").and_then(Value::as_array);
    let required = required.is_some_and(|names| names.iter().any(|other| other.as_str() == Some(name)));
    format!("{name} ({kind}{})", if required { ", required" } else { "" })
}

fn problem(spec: &ToolSpec, error: &jsonschema::ValidationError<'_>) -> String {
    let at = error.instance_path().to_string();
    let name = at.trim_start_matches('/');
    match error.kind() {
        ValidationErrorKind::Required { property } => {
            format!("`{}` is missing", property.as_str().unwrap_or_default())
        }
        ValidationErrorKind::AdditionalProperties { unexpected } => {
            let names = spec.schema.get("properties").and_then(Value::as_object);
            let all: Vec<&str> = names
                .into_iter()
                .flat_map(Map::keys)
                .map(String::as_str)
                .collect();
            let one = |name: &String| match nearest(name, all.iter().copied()) {
                Some(meant) => format!("`{name}` is not an argument (did you mean `{meant}`?)"),
                None => format!("`{name}` is not an argument"),
            };
            unexpected.iter().map(one).collect::<Vec<_>>().join("; ")
        }
        ValidationErrorKind::Type {
            kind: TypeKind::Single(kind),
        } => {
            format!(
                "`{name}` must be of type {kind}, got {}",
                kind_of(error.instance())
            )
        }
        ValidationErrorKind::Minimum { limit } => format!("`{name}` must be at least {limit}"),
        ValidationErrorKind::Maximum { limit } => format!("`{name}` must be at most {limit}"),
        ValidationErrorKind::MinLength { .. } => {
            let about = spec.schema.pointer(&format!("/properties/{name}/description"));
            let about = about.and_then(Value::as_str);
            format!(
                "`{name}` must not be empty{}",
                about.map_or_else(String::new, |about| format!(" ({about})"))
            )
        }
        _ => format!("`{name}`: {error}"),
    }
}

const fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}
