//! Reads and writes the JSON of other programs.

use bytes::Bytes;
use serde::Serialize;
use serde_json::{Map, Value, json};

/// JSON as bytes. Serialising a value that was built here cannot fail.
pub(crate) fn json_bytes(value: &Value) -> Vec<u8> {
    serde_json::to_vec(value).unwrap_or_default()
}

/// The beginning of a body, written field by field: the tools are too large to be copied into a value first.
#[derive(Debug, Default)]
pub(crate) struct Head(Vec<u8>);

impl Head {
    /// Adds a field. Serialising our own types to memory cannot fail.
    pub(crate) fn field(&mut self, name: &str, value: &(impl Serialize + ?Sized)) {
        self.name(name);
        let _ = serde_json::to_writer(&mut self.0, value);
    }

    /// Ends with the opening bracket of this array.
    pub(crate) fn open_array(mut self, name: &str) -> Vec<u8> {
        self.name(name);
        self.0.push(b'[');
        self.0
    }

    fn name(&mut self, name: &str) {
        let before = if self.0.is_empty() { "{" } else { "," };
        self.0
            .extend_from_slice(format!("{before}\"{name}\":").as_bytes());
    }
}

/// The end of a body: closes the array of messages and appends these fields.
pub(crate) fn close_messages(fields: Map<String, Value>) -> Bytes {
    if fields.is_empty() {
        return Bytes::from_static(b"]}");
    }
    let mut bytes = b"],".to_vec();
    bytes.extend_from_slice(json_bytes(&Value::Object(fields)).get(1..).unwrap_or_default());
    bytes.into()
}

/// The longest tool name that every provider accepts.
const LONGEST_NAME: usize = 64;

/// A tool's name as providers accept it in a conversation: a name that a model made up may have any form, and a refused
/// name would fail every request that follows.
pub(crate) fn wire_name(name: &str) -> String {
    let fit = |one: char| {
        if one.is_ascii_alphanumeric() || one == '-' {
            one
        } else {
            '_'
        }
    };
    let name: String = name.chars().take(LONGEST_NAME).map(fit).collect();
    if name.is_empty() {
        "unknown".to_owned()
    } else {
        name
    }
}

/// The arguments of a call as the object that providers require, even if the model wrote none.
pub(crate) fn arguments(input: &Value) -> Value {
    match input {
        Value::Object(_) => input.clone(),
        Value::String(text) => json!({ "unparsed": text }),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => {
            json!({ "unparsed": input.to_string() })
        }
    }
}

/// Parses the arguments that a model streamed: an object, `{}` for an empty text, else the raw text, which is repaired
/// when the whole answer is known.
pub(crate) fn parse_arguments(text: &str) -> Value {
    if text.trim().is_empty() {
        return json!({});
    }
    match serde_json::from_str::<Value>(text) {
        Ok(object @ Value::Object(_)) => object,
        Ok(_) | Err(_) => Value::String(text.to_owned()),
    }
}

/// A string field; empty when it is missing or not a string.
pub(crate) fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// A number at a JSON pointer.
pub(crate) fn number(value: &Value, pointer: &str) -> Option<u64> {
    value.pointer(pointer).and_then(Value::as_u64)
}

/// The message of an error, wherever this provider put it.
pub(crate) fn error_message(body: &Value) -> Option<String> {
    let error = body.get("error").unwrap_or(body);
    let found = [
        error.get("message"),
        Some(error),
        body.get("message"),
        body.get("detail"),
    ]
    .into_iter()
    .flatten()
    .find_map(Value::as_str)
    .filter(|text| !text.is_empty());
    found
        .map(str::to_owned)
        .or_else(|| body.get("detail").map(Value::to_string))
}

/// The identifiers by which providers name a kind of error: type, code and status.
pub(crate) fn error_kinds(body: &Value) -> String {
    let error = body.get("error").unwrap_or(body);
    let of = |key: &str| match error.get(key).or_else(|| body.get(key)) {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Number(number)) => number.to_string(),
        _ => String::new(),
    };
    [of("type"), of("code"), of("status")].join(" ").to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_an_object_or_the_raw_text() {
        assert_eq!(parse_arguments(""), json!({}));
        assert_eq!(parse_arguments(r#"{"a":1}"#), json!({"a": 1}));
        assert_eq!(parse_arguments(r#"{"a":"#), json!(r#"{"a":"#));
        assert_eq!(parse_arguments("[1]"), json!("[1]"));
    }

    #[test]
    fn a_name_that_a_model_made_up_fits_on_the_wire() {
        assert_eq!(wire_name("mcp__a-b__c"), "mcp__a-b__c");
        assert_eq!(wire_name("functions.Read file\n"), "functions_Read_file_");
        assert_eq!(wire_name(""), "unknown");
        assert_eq!(wire_name(&"你".repeat(100)), "_".repeat(64));
    }

    #[test]
    fn arguments_that_are_no_object_are_wrapped_for_replay() {
        assert_eq!(arguments(&json!({"a": 1})), json!({"a": 1}));
        assert_eq!(arguments(&json!("{\"a\":")), json!({"unparsed": "{\"a\":"}));
    }

    #[test]
    fn the_message_is_found_in_every_providers_error() {
        let check = |body: Value, expected: Option<&str>| {
            assert_eq!(error_message(&body).as_deref(), expected, "{body}");
        };
        check(json!({"error": {"message": "a", "type": "t"}}), Some("a"));
        check(json!({"error": "b", "code": "c"}), Some("b"));
        check(json!({"object": "error", "message": "c"}), Some("c"));
        check(json!({"detail": "d"}), Some("d"));
        check(json!({"detail": [{"msg": "e"}]}), Some(r#"[{"msg":"e"}]"#));
        check(json!({}), None);
    }
}
