//! However a valid object is disfigured, it is read as the same object.

use crate::{Ending, Joiner, Repair, decode, keep_halves, mend, value_at};
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        (-999_999_i32..999_999).prop_map(|eighths| Value::from(f64::from(eighths) / 8.0)),
        text().prop_map(Value::String),
    ];
    leaf.prop_recursive(4, 24, 5, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..5).prop_map(Value::Array),
            vec((text(), inner), 0..5).prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

/// Texts full of what matters to a parser of JSON.
fn text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("\"".to_owned()),
        Just("'".to_owned()),
        Just("\\".to_owned()),
        Just("\n".to_owned()),
        Just("{}".to_owned()),
        Just("```".to_owned()),
        Just("</tool_call>".to_owned()),
        Just("😀".to_owned()),
        ".{0,6}",
        "[a-z]{1,6}",
    ];
    vec(piece, 0..5).prop_map(|pieces| pieces.concat())
}

fn object() -> impl Strategy<Value = Map<String, Value>> {
    vec((text(), value()), 1..5).prop_map(|fields| fields.into_iter().collect())
}

/// Writes a value with the habits of a careless writer.
#[expect(clippy::struct_excessive_bools, reason = "each is a habit of its own")]
#[derive(Clone, Copy, Default)]
struct Style {
    single_quotes: bool,
    raw_controls: bool,
    trailing_commas: bool,
    bare_keys: bool,
    python: bool,
}

impl Style {
    fn write(self, value: &Value) -> String {
        match value {
            Value::Object(fields) => {
                let fields = fields.iter().map(|(key, value)| {
                    let plain = key.starts_with(|c: char| c.is_ascii_alphabetic())
                        && key.chars().all(|c| c.is_ascii_alphanumeric());
                    let key = if self.bare_keys && plain {
                        key.clone()
                    } else {
                        self.string(key)
                    };
                    format!("{key}: {}", self.write(value))
                });
                self.bracketed("{", fields, "}")
            }
            Value::Array(items) => self.bracketed("[", items.iter().map(|item| self.write(item)), "]"),
            Value::String(text) => self.string(text),
            Value::Bool(true) if self.python => "True".to_owned(),
            Value::Bool(false) if self.python => "False".to_owned(),
            Value::Null if self.python => "None".to_owned(),
            Value::Null | Value::Bool(_) | Value::Number(_) => value.to_string(),
        }
    }

    fn bracketed(self, open: &str, parts: impl Iterator<Item = String>, close: &str) -> String {
        let mut inside = parts.collect::<Vec<_>>().join(", ");
        if self.trailing_commas && !inside.is_empty() {
            inside.push(',');
        }
        format!("{open}{inside}{close}")
    }

    fn string(self, text: &str) -> String {
        let quoted = json!(text).to_string();
        let mut inside = quoted[1..quoted.len() - 1].to_owned();
        if self.raw_controls {
            // No backslash may stand before the escape that is replaced.
            inside = text.replace('\\', "\\\\").replace('"', "\\\"");
        }
        if self.single_quotes {
            format!("'{}'", inside.replace('\'', "\\'"))
        } else {
            format!("\"{inside}\"")
        }
    }
}

fn same(text: &str, object: &Map<String, Value>) -> Result<(), TestCaseError> {
    let decoded =
        decode(text, Ending::Own).map_err(|fault| TestCaseError::fail(format!("{fault}: {text}")))?;
    prop_assert_eq!(&decoded.object, object, "{}", text);
    Ok(())
}

proptest! {
    #[test]
    fn every_style_of_writing_an_object_is_read(
        object in object(), single_quotes: bool, raw_controls: bool, trailing_commas: bool, bare_keys: bool, python: bool,
    ) {
        let style = Style { single_quotes, raw_controls, trailing_commas, bare_keys, python };
        same(&style.write(&Value::Object(object.clone())), &object)?;
    }

    #[test]
    fn every_decoration_of_an_object_is_removed(object in object()) {
        let plain = Value::Object(object.clone()).to_string();
        for text in [
            format!("```json\n{plain}\n```"),
            format!("```\n{plain}"),
            format!("{plain}\n```"),
            format!("\u{feff} {plain}\r\n"),
            format!("{{}}{plain}"),
            format!("{{}}\n{{}}{plain}"),
            format!("{plain}{plain}"),
            format!("{plain}}}"),
            format!("{plain}<|im_end|>"),
            format!("{plain}\n</tool_call>"),
            json!(plain).to_string(),
            serde_json::to_string_pretty(&object).unwrap(),
        ] {
            same(&text, &object)?;
        }
    }

    #[test]
    fn a_missing_last_brace_is_added_or_refused(object in object()) {
        let plain = Value::Object(object.clone()).to_string();
        let open = &plain[..plain.len() - 1];
        let last_is_number = object.values().next_back().is_some_and(Value::is_number);
        let read = decode(open, Ending::Own);
        prop_assert_eq!(read.is_err(), last_is_number, "{}", open);
        if let Ok(read) = read {
            prop_assert_eq!(read.object, object);
            prop_assert_eq!(read.repairs.as_slice(), [Repair::MissingBrace]);
        }
        prop_assert!(decode(open, Ending::Cut).is_err());
    }

    /// No part of a text is taken for a whole: what is read of a beginning differs from the object only in braces.
    #[test]
    fn a_cut_text_never_gives_a_shorter_value(object in object(), cut in 0_usize..200) {
        let plain = Value::Object(object.clone()).to_string();
        let cut = plain.floor_char_boundary(cut.min(plain.len()));
        prop_assert!(cut == plain.len() || decode(&plain[..cut], Ending::Cut).is_err());
        if let Ok(read) = decode(&plain[..cut], Ending::Own) {
            for (key, value) in &read.object {
                let whole = object.get(key);
                prop_assert!(whole == Some(value) || value.is_object(), "{}", &plain[..cut]);
            }
        }
    }

    #[test]
    fn different_objects_are_never_merged(one in object(), other in object()) {
        prop_assume!(one != other);
        let text = format!("{}{}", Value::Object(one), Value::Object(other));
        prop_assert!(decode(&text, Ending::Own).is_err());
    }

    #[test]
    fn valid_values_are_read_as_serde_reads_them(value in value()) {
        let text = value.to_string();
        let found = value_at(&text, 0, Ending::Cut).unwrap();
        prop_assert_eq!((found.value, found.end, found.repairs.is_empty()), (value, text.len(), true));
    }

    #[test]
    fn a_character_is_whole_again_wherever_its_escapes_were_cut(text in "[^\u{10f800}-\u{10ffff}]{0,12}", cut in 0_usize..80) {
        let units: String = text.encode_utf16().map(|unit| format!("\\u{unit:04x}")).collect();
        let cut = (cut * 6).min(units.len());
        let halves = [&units[..cut], &units[cut..]].map(|half| {
            let kept = keep_halves(half).unwrap_or_else(|| half.to_owned());
            serde_json::from_str::<String>(&format!("\"{kept}\"")).unwrap()
        });
        prop_assert_eq!(mend(&halves.concat()), text.as_str());
        let mut joiner = Joiner::default();
        let pieces = halves.map(|half| joiner.feed(&half));
        prop_assert_eq!(pieces.concat(), text);
        prop_assert_eq!(joiner.end(), None);
    }
}

#[test]
fn a_half_without_its_other_half_is_replaced() {
    assert_eq!(keep_halves(r#"{"a":"\\ud83d \n"}"#), None);
    assert_eq!(keep_halves(r#"{"a":"\ud83d\ude00"}"#), None);
    let kept = keep_halves(r#""a\ud83d b\\\ude00""#).unwrap();
    let text: String = serde_json::from_str(&kept).unwrap();
    assert_eq!(mend(&text), "a\u{fffd} b\\\u{fffd}");
    let mut joiner = Joiner::default();
    assert_eq!(
        (joiner.feed(&text[..5]), joiner.end()),
        ("a".to_owned(), Some('\u{fffd}'))
    );
}
