//! Converts client values to messages: accepts only maps with named keys, and its errors name the field.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Reads a message. Serde would also accept the fields of a struct as a list, by position, and such a message would
/// change its meaning if the fields were reordered. So this rejects lists where a map belongs, at every depth.
///
/// # Errors
/// Says what is wrong and in which field: `content[0].text: invalid type: integer 3, expected a string`.
pub fn from_named<T: Serialize + DeserializeOwned>(value: &Value) -> Result<T, String> {
    if !value.is_object() {
        return Err(format!("expected a map with named keys, not {}", kind_of(value)));
    }
    let read: T = serde_path_to_error::deserialize(value).map_err(|error| {
        let path = error.path().to_string();
        match path.as_str() {
            // For an unknown or missing field, serde's message already names the field.
            "." => without_types(&error.inner().to_string(), "a map"),
            path => format!("{path}: {}", without_types(&error.inner().to_string(), "a map")),
        }
    })?;
    if holds_list(value) {
        let written = serde_json::to_value(&read).map_err(|error| error.to_string())?;
        if let Some(path) = positional(value, &written) {
            return Err(format!("{path}: expected a map with named keys, not a list"));
        }
    }
    Ok(read)
}

/// Rewrites what serde expects, in which it names types of the program: `expected struct Budget`. `map` is the word for a map.
#[must_use]
pub fn without_types(message: &str, map: &str) -> String {
    let Some((before, expected)) = message.rsplit_once("expected ") else {
        return match message.split_once("untagged enum ") {
            Some(_) => "it has none of the forms that are possible here".to_owned(),
            None => message.to_owned(),
        };
    };
    let kind = expected.split([' ', '\n']).next().unwrap_or_default();
    let meant = match kind {
        "struct" | "internally" | "adjacently" | "map" => map,
        "tuple" | "sequence" => "a list",
        "enum" | "unit" | "variant" => "one of the possible words",
        "u8" | "u16" | "u32" | "u64" | "usize" => "a whole number, 0 or more",
        "i8" | "i16" | "i32" | "i64" | "isize" => "a whole number",
        "f32" | "f64" => "a number",
        _ if expected.starts_with("a sequence") => "a list",
        _ if expected.starts_with("a map") => map,
        _ => return message.to_owned(),
    };
    format!("{before}expected {meant}")
}

/// The kind of a value, for error messages: `null`, `-1`, `a string`.
#[must_use]
pub fn kind_of(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(_) => "a boolean".to_owned(),
        Value::Number(number) => number.to_string(),
        Value::String(_) => "a string".to_owned(),
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "a map".to_owned(),
    }
}

fn holds_list(value: &Value) -> bool {
    match value {
        Value::Array(_) => true,
        Value::Object(map) => map.values().any(holds_list),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// Finds the place where serde accepted a list for something that it writes as a map.
fn positional(given: &Value, written: &Value) -> Option<String> {
    match (given, written) {
        (Value::Array(_), Value::Object(_)) => Some(String::new()),
        (Value::Array(given), Value::Array(written)) => {
            let mut pairs = given.iter().zip(written).enumerate();
            pairs.find_map(|(index, (given, written))| {
                Some(format!("[{index}]{}", below(&positional(given, written)?)))
            })
        }
        (Value::Object(given), Value::Object(written)) => given
            .iter()
            .find_map(|(key, given)| Some(format!("{key}{}", below(&positional(given, written.get(key)?)?)))),
        _ => None,
    }
}

/// The rest of a path after a key or an index.
fn below(path: &str) -> String {
    if path.is_empty() || path.starts_with('[') {
        path.to_owned()
    } else {
        format!(".{path}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Block, SendParams};
    use serde_json::json;

    fn refused(value: &Value) -> String {
        from_named::<SendParams>(value).unwrap_err()
    }

    #[test]
    fn lists_are_taken_where_a_list_belongs_and_nowhere_else() {
        let good = json!({"session": "s", "content": [{"type": "text", "text": "hi"}]});
        let read: SendParams = from_named(&good).unwrap();
        assert_eq!(
            (read.session.as_str(), read.content),
            ("s", vec![Block::text("hi")])
        );
        assert_eq!(
            refused(&json!(["s", []])),
            "expected a map with named keys, not a list"
        );
        assert_eq!(refused(&Value::Null), "expected a map with named keys, not null");
        assert_eq!(
            refused(&json!({"session": "s", "content": [["text", "hi"]]})),
            "content[0]: expected a map with named keys, not a list"
        );
    }

    #[test]
    fn an_error_names_its_field() {
        let wrong = json!({"session": "s", "content": [{"type": "text", "text": 3}]});
        assert!(refused(&wrong).starts_with("content[0]"), "{}", refused(&wrong));
        assert_eq!(
            refused(&json!({"session": 7, "content": []})),
            "session: invalid type: integer `7`, expected a string"
        );
        assert!(refused(&json!({"sesion": "s"})).contains("sesion"));
    }

    #[test]
    fn an_error_names_no_type_of_the_program() {
        for (message, told) in [
            (
                "invalid type: string \"x\", expected struct Written",
                "invalid type: string \"x\", expected a table",
            ),
            (
                "invalid type: map, expected internally tagged enum Block",
                "invalid type: map, expected a table",
            ),
            (
                "invalid type: integer `1`, expected a sequence",
                "invalid type: integer `1`, expected a list",
            ),
            (
                "invalid length 1, expected tuple struct P with 2 elements",
                "invalid length 1, expected a list",
            ),
            (
                "invalid value: integer `-1`, expected u32",
                "invalid value: integer `-1`, expected a whole number, 0 or more",
            ),
            (
                "invalid type: string \"x\", expected f64",
                "invalid type: string \"x\", expected a number",
            ),
            (
                "data did not match any variant of untagged enum Context",
                "it has none of the forms that are possible here",
            ),
            (
                "unknown variant `x`, expected `a` or `b`",
                "unknown variant `x`, expected `a` or `b`",
            ),
            (
                "invalid type: integer `3`, expected a string",
                "invalid type: integer `3`, expected a string",
            ),
            ("missing field `text`", "missing field `text`"),
        ] {
            assert_eq!(without_types(message, "a table"), told);
        }
        assert_eq!(
            from_named::<crate::CreateParams>(&json!({"budget": 3})).unwrap_err(),
            "budget: invalid type: integer `3`, expected a map"
        );
    }

    #[test]
    fn the_place_of_a_list_is_told_at_every_depth() {
        let given = json!({"a": {"b": [1, {"c": [1]}]}});
        let written = json!({"a": {"b": [1, {"c": {"d": 1}}]}});
        assert_eq!(positional(&given, &written).as_deref(), Some("a.b[1].c"));
    }
}
