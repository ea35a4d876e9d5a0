//! Makes a server's texts safe for a model, a terminal and a log.

use agentd_text::{for_terminal, one_line};
use serde_json::Value;

/// Longest text in a schema.
const SCHEMA_TEXT: usize = 1_024;
/// Deepest schema.
const SCHEMA_DEPTH: usize = 24;
/// Largest schema in bytes.
const SCHEMA_BYTES: usize = 32 << 10;
/// Longest description in characters.
const DESCRIPTION: usize = 2_048;

/// An error text: one short line without terminal control sequences.
pub(crate) fn words(text: &str) -> String {
    one_line(text, 300)
}

/// A description: hidden characters are made visible, and a long one is cut.
pub(crate) fn description(text: &str) -> String {
    cut(&for_terminal(text), DESCRIPTION)
}

fn cut(text: &str, max: usize) -> String {
    match text.char_indices().nth(max) {
        None => text.to_owned(),
        Some((at, _)) => format!("{}\u{2026}", text.get(..at).unwrap_or_default().trim_end()),
    }
}

/// A tool's schema with cleaned texts, or why the tool cannot be offered.
pub(crate) fn schema(mut schema: Value) -> Result<Value, &'static str> {
    let Some(object) = schema.as_object_mut() else {
        return Err("its schema is not an object");
    };
    // Some servers write an empty list or map as null.
    for name in ["properties", "required"] {
        if object.get(name).is_some_and(Value::is_null) {
            object.remove(name);
        }
    }
    match object.get("type") {
        None => {
            object.insert("type".to_owned(), "object".into());
        }
        Some(Value::String(kind)) if kind == "object" => {}
        Some(_) => return Err("its schema does not describe an object"),
    }
    clean(&mut schema, 0)?;
    // Some providers require the key.
    if let Some(object) = schema.as_object_mut() {
        object
            .entry("properties")
            .or_insert_with(|| Value::Object(serde_json::Map::new()));
    }
    if schema.to_string().len() > SCHEMA_BYTES {
        return Err("its schema is longer than 32 KiB");
    }
    Ok(schema)
}

fn clean(value: &mut Value, depth: usize) -> Result<(), &'static str> {
    if depth > SCHEMA_DEPTH {
        return Err("its schema is nested too deeply");
    }
    match value {
        Value::Object(map) => {
            if matches!(map.get("$ref"), Some(Value::String(target)) if !target.starts_with('#')) {
                return Err("its schema refers to another document");
            }
            if map.keys().any(|key| key.len() > 256 || for_terminal(key) != *key) {
                return Err("a name in its schema is too long or contains hidden characters");
            }
            map.values_mut().try_for_each(|inner| clean(inner, depth + 1))
        }
        Value::Array(items) => items.iter_mut().try_for_each(|inner| clean(inner, depth + 1)),
        Value::String(text) => {
            let better = cut(&for_terminal(text), SCHEMA_TEXT);
            if better != *text {
                *text = better;
            }
            Ok(())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_schema_is_completed_and_its_texts_are_cleaned() {
        let said =
            json!({ "properties": { "a": { "type": "string", "description": "x\u{1b}[2J\u{200b}" } } });
        let kept = json!({
            "properties": { "a": { "type": "string", "description": "x\u{241b}[2J\\u{200b}" } },
            "type": "object"
        });
        assert_eq!(schema(said), Ok(kept));
        assert_eq!(
            schema(json!({})),
            Ok(json!({ "type": "object", "properties": {} }))
        );
    }

    #[test]
    fn a_schema_that_is_too_much_is_refused() {
        let deep = (0..40).fold(json!({}), |inner, _| json!({ "type": "object", "items": inner }));
        let refused = [
            json!("x"),
            json!({ "type": "array" }),
            json!({ "properties": { "a": { "$ref": "http://elsewhere/x" } } }),
            json!({ "properties": { "a\u{202e}": {} } }),
            json!({ "enum": (0..10_000).collect::<Vec<_>>() }),
            deep,
        ];
        for said in refused {
            assert!(schema(said.clone()).is_err(), "{said}");
        }
    }

    #[test]
    fn descriptions_have_an_end() {
        assert_eq!(description("short\nand two lines"), "short\nand two lines");
        assert_eq!(
            description(&"\u{fc}".repeat(DESCRIPTION + 1)).chars().count(),
            DESCRIPTION + 1
        );
    }
}
