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
            "." => error.inner().to_string(),
            path => format!("{path}: {}", error.inner()),
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
    fn the_place_of_a_list_is_told_at_every_depth() {
        let given = json!({"a": {"b": [1, {"c": [1]}]}});
        let written = json!({"a": {"b": [1, {"c": {"d": 1}}]}});
        assert_eq!(positional(&given, &written).as_deref(), Some("a.b[1].c"));
    }
}
