//! Arguments as models write them: other spellings are understood, what is wrong is explained.

use crate::refusal::{Code, refuse};
use crate::spec::ToolSpec;
use crate::suggest::nearest;
use agentd_protocol::ToolOutcome;
use jsonschema::Validator;
use jsonschema::error::{TypeKind, ValidationErrorKind};
use serde_json::{Map, Value};

/// Other spellings of a field: tool, canonical name, the others.
const SPELLINGS: [(&str, &str, &[&str]); 18] = [
    (
        "Read",
        "file_path",
        &["path", "file", "filename", "filepath", "filePath", "target_file"],
    ),
    (
        "Write",
        "file_path",
        &["path", "file", "filename", "filepath", "filePath", "target_file"],
    ),
    ("Write", "content", &["contents", "text", "file_content"]),
    (
        "Edit",
        "file_path",
        &["path", "file", "filename", "filepath", "filePath", "target_file"],
    ),
    (
        "Edit",
        "old_string",
        &["old_text", "old", "old_str", "oldText", "oldString"],
    ),
    (
        "Edit",
        "new_string",
        &["new_text", "new", "new_str", "newText", "newString"],
    ),
    (
        "MultiEdit",
        "file_path",
        &["path", "file", "filename", "filepath", "filePath", "target_file"],
    ),
    (
        "ApplyPatch",
        "patch",
        &["input", "patch_text", "patchText", "diff"],
    ),
    ("ApplyPatch", "path", &["file_path", "file", "filePath"]),
    ("ApplyPatch", "old", OLD),
    ("ApplyPatch", "new", NEW),
    (
        "Ls",
        "path",
        &[
            "directory",
            "dir",
            "target_directory",
            "dir_path",
            "relative_workspace_path",
        ],
    ),
    ("Glob", "pattern", &["glob", "glob_pattern", "query"]),
    ("Glob", "path", &["directory", "dir", "target_directory"]),
    ("Grep", "pattern", &["query", "regex", "search"]),
    ("Grep", "path", &["directory", "dir", "target_directory"]),
    ("Grep", "glob", &["include", "include_pattern", "file_pattern"]),
    ("Bash", "command", &["cmd", "commandline", "script"]),
];
const OLD: &[&str] = &["old_string", "old_text", "old_str", "oldText", "oldString"];
const NEW: &[&str] = &["new_string", "new_text", "new_str", "newText", "newString"];
/// The same for all tools.
const COMMON: [(&str, &[&str]); 3] = [
    ("case_insensitive", &["-i", "ignore_case", "ignoreCase"]),
    ("context", &["-C", "context_lines"]),
    ("timeout_ms", &["timeoutMs"]),
];

/// The arguments under their canonical names, or what is wrong with them.
#[expect(clippy::result_large_err, reason = "the error is the result of the call")]
pub(crate) fn checked(spec: &ToolSpec, validator: &Validator, input: &Value) -> Result<Value, ToolOutcome> {
    let Value::Object(given) = input else {
        return Err(no_object(spec, input));
    };
    if spec.server.is_some() && validator.is_valid(input) {
        return Ok(input.clone());
    }
    let normal = Value::Object(normalised(spec, given.clone()));
    let problems: Vec<String> = validator
        .iter_errors(&normal)
        .take(8)
        .map(|error| problem(spec, &error))
        .collect();
    if problems.is_empty() {
        return Ok(normal);
    }
    Err(refuse(
        Code::InvalidArgs,
        explain(spec, &problems.join("; "), input),
    ))
}

fn normalised(spec: &ToolSpec, mut given: Map<String, Value>) -> Map<String, Value> {
    let own = SPELLINGS
        .iter()
        .filter(|(tool, ..)| *tool == spec.name)
        .map(|(_, name, others)| (*name, *others));
    for (name, others) in own.chain(COMMON) {
        if declared(spec, name).is_none() || given.contains_key(name) {
            continue;
        }
        if let Some(value) = others.iter().find_map(|other| given.shift_remove(*other)) {
            given.insert(name.to_owned(), value);
        }
    }
    if spec.name == "Bash"
        && !given.contains_key("timeout_ms")
        && let Some(timeout) = given.shift_remove("timeout")
    {
        // Some models mean seconds, some milliseconds; nobody means less than a second.
        let ms = timeout.as_u64().map(|time| {
            if time < 1000 {
                time.saturating_mul(1000)
            } else {
                time
            }
        });
        given.insert("timeout_ms".to_owned(), ms.map_or(timeout, Value::from));
    }
    given.retain(|_, value| !value.is_null());
    if spec.name == "MultiEdit"
        && let Some(edits) = given.get_mut("edits").and_then(Value::as_array_mut)
    {
        for edit in edits.iter_mut().filter_map(Value::as_object_mut) {
            respell(
                edit,
                "old_string",
                ["old", "old_text", "old_str", "oldText", "oldString"],
            );
            respell(
                edit,
                "new_string",
                ["new", "new_text", "new_str", "newText", "newString"],
            );
        }
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

fn respell(given: &mut Map<String, Value>, name: &str, others: [&str; 5]) {
    if given.contains_key(name) {
        return;
    }
    if let Some(value) = others.iter().find_map(|other| given.shift_remove(*other)) {
        given.insert(name.to_owned(), value);
    }
}

fn declared<'a>(spec: &'a ToolSpec, name: &str) -> Option<&'a Value> {
    spec.schema.get("properties")?.get(name)
}

fn no_object(spec: &ToolSpec, input: &Value) -> ToolOutcome {
    let what = match input {
        Value::String(_) => "the arguments are not valid JSON (perhaps they were cut off; give less at once)",
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            "the arguments are not a JSON object"
        }
    };
    refuse(Code::InvalidArgs, explain(spec, what, input))
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
        ValidationErrorKind::MinLength { .. } => format!("`{name}` must not be empty"),
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
