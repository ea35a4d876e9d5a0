//! Helpers to compare JSON and to read foreign JSON.

use serde_json::{Map, Value};

/// Keys of schemas and arguments, whose content must not be normalised.
const OPAQUE: [&str; 8] = [
    "schema",
    "parameters",
    "parametersJsonSchema",
    "input_schema",
    "args",
    "arguments",
    "input_object",
    "response",
];

/// A string field; empty if it is missing or not a string.
pub(crate) fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// The items of an array field; none if it is missing or not an array.
pub(crate) fn items<'a>(value: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> {
    value.get(key).and_then(Value::as_array).into_iter().flatten()
}

/// A mutable field, if the value is an object that has it.
pub(crate) fn field<'a>(value: &'a mut Value, key: &str) -> Option<&'a mut Value> {
    value.get_mut(key)
}

/// Removes and returns a field of an object.
pub(crate) fn take(value: &mut Value, key: &str) -> Option<Value> {
    value.as_object_mut().and_then(|fields| fields.shift_remove(key))
}

/// Sets a field of an object.
pub(crate) fn set(value: &mut Value, key: &str, to: Value) {
    if let Some(fields) = value.as_object_mut() {
        fields.insert(key.to_owned(), to);
    }
}

/// Removes and returns all items of an array field.
pub(crate) fn drain(value: &mut Value, key: &str) -> Vec<Value> {
    field(value, key)
        .and_then(Value::as_array_mut)
        .map(std::mem::take)
        .unwrap_or_default()
}

/// The text of content that is a string or an array of parts with a `text`, joined by `between`.
pub(crate) fn joined(content: &Value, between: &str) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            let texts: Vec<&str> = parts
                .iter()
                .map(|part| part.as_str().unwrap_or_else(|| text(part, "text")))
                .filter(|text| !text.trim().is_empty())
                .collect();
            texts.join(between)
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => String::new(),
    }
}

/// Drops nulls and empty tool lists: a missing key means the same.
pub(crate) fn tidy(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            let kept: Map<String, Value> = std::mem::take(fields)
                .into_iter()
                .filter(|(key, inner)| {
                    !(inner.is_null() || key == "tools" && inner == &Value::Array(Vec::new()))
                })
                .map(|(key, mut inner)| {
                    if !OPAQUE.contains(&key.as_str()) {
                        tidy(&mut inner);
                    }
                    (key, inner)
                })
                .collect();
            *fields = kept;
        }
        Value::Array(items) => items.iter_mut().for_each(tidy),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Removes the fields at a path such as `messages[].content[].id`.
pub(crate) fn remove(value: &mut Value, path: &str) {
    let (head, rest) = path
        .split_once('.')
        .map_or((path, None), |(head, rest)| (head, Some(rest)));
    match (head.strip_suffix("[]"), rest) {
        (_, None) => {
            take(value, head);
        }
        (Some(list), Some(rest)) => {
            if let Some(items) = field(value, list).and_then(Value::as_array_mut) {
                items.iter_mut().for_each(|item| remove(item, rest));
            }
        }
        (None, Some(rest)) => {
            if let Some(inner) = field(value, head) {
                remove(inner, rest);
                // An object that had no other field is redundant.
                if inner.as_object().is_some_and(Map::is_empty) {
                    take(value, head);
                }
            }
        }
    }
}

/// Whether the value has a path; the path must not contain lists.
pub(crate) fn has(value: &Value, path: &str) -> bool {
    path.split('.')
        .try_fold(value, |value, key| value.get(key))
        .is_some()
}

/// The first difference between two values; the order of keys does not matter.
pub(crate) fn difference(recorded: &Value, ours: &Value, path: &str) -> Option<String> {
    match (recorded, ours) {
        (Value::Object(left), Value::Object(right)) => {
            let missing = left.iter().find(|(key, _)| !right.contains_key(*key));
            if let Some((key, value)) = missing {
                return Some(format!(
                    "{path}.{key}: recorded {}, ours has nothing",
                    brief(value)
                ));
            }
            let added = right.iter().find(|(key, _)| !left.contains_key(*key));
            if let Some((key, value)) = added {
                return Some(format!(
                    "{path}.{key}: recorded nothing, ours has {}",
                    brief(value)
                ));
            }
            left.iter().find_map(|(key, value)| {
                difference(
                    value,
                    right.get(key).unwrap_or(&Value::Null),
                    &format!("{path}.{key}"),
                )
            })
        }
        (Value::Array(left), Value::Array(right)) => left
            .iter()
            .zip(right)
            .enumerate()
            .find_map(|(at, (left, right))| difference(left, right, &format!("{path}[{at}]")))
            .or_else(|| {
                (left.len() != right.len()).then(|| {
                    format!(
                        "{path}: recorded {} items, ours has {}: {} / {}",
                        left.len(),
                        right.len(),
                        brief(recorded),
                        brief(ours)
                    )
                })
            }),
        (Value::Number(left), Value::Number(right)) if left.as_f64() == right.as_f64() => None,
        _ => (recorded != ours)
            .then(|| format!("{path}: recorded {}, ours has {}", brief(recorded), brief(ours))),
    }
}

/// A value as text, shortened.
pub(crate) fn brief(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(160) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_path_enters_lists_and_removes_empty_objects() {
        let mut value = json!({"a": {"b": 1}, "l": [{"x": 1, "y": 2}, {"x": 3}]});
        remove(&mut value, "a.b");
        remove(&mut value, "l[].x");
        assert_eq!(value, json!({"l": [{"y": 2}, {}]}));
    }

    #[test]
    fn the_first_difference_is_named_with_its_path() {
        let check = |left: Value, right: Value, expected: Option<&str>| {
            assert_eq!(difference(&left, &right, "$").as_deref(), expected);
        };
        check(
            json!({"a": 1, "b": [1, 2.0]}),
            json!({"b": [1.0, 2], "a": 1}),
            None,
        );
        check(
            json!({"a": [{"b": 1}]}),
            json!({"a": [{"b": 2}]}),
            Some("$.a[0].b: recorded 1, ours has 2"),
        );
        check(
            json!({"a": 1}),
            json!({}),
            Some("$.a: recorded 1, ours has nothing"),
        );
        check(
            json!({}),
            json!({"a": 1}),
            Some("$.a: recorded nothing, ours has 1"),
        );
        check(
            json!([1]),
            json!([1, 2]),
            Some("$: recorded 1 items, ours has 2: [1] / [1,2]"),
        );
    }
}
