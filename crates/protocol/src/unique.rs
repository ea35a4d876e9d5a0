//! JSON whose objects have each key once. Readers disagree about a key that occurs twice, and the last one would win here
//! without a word: a limit that stands first would be gone.

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};
use std::fmt;

/// A value; reading it refuses a key that occurs twice in one object, at any depth.
#[derive(Debug, Clone, PartialEq)]
pub struct Unique(pub Value);

impl<'de> Deserialize<'de> for Unique {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AnyValue).map(Self)
    }
}

struct AnyValue;

impl<'de> Visitor<'de> for AnyValue {
    type Value = Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_none<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(Unique(item)) = items.next_element()? {
            list.push(item);
        }
        Ok(list.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(key) = entries.next_key::<String>()? {
            if map.contains_key(&key) {
                let shown: String = key.chars().take(64).collect();
                return Err(A::Error::custom(format_args!(
                    "the key {shown:?} occurs twice in one object; give it once"
                )));
            }
            let Unique(value) = entries.next_value()?;
            map.insert(key, value);
        }
        Ok(map.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_that_occurs_twice_is_refused_at_every_depth() {
        for (text, key) in [
            (r#"{"a":1,"a":1}"#, "\"a\""),
            (r#"{"budget":{"usd":1,"steps":2,"usd":100}}"#, "\"usd\""),
            (r#"[0,{"x":{"":1,"":2}}]"#, "\"\""),
            (r#"{"\u0061":1,"a":2}"#, "\"a\""),
        ] {
            let error = serde_json::from_str::<Unique>(text).unwrap_err().to_string();
            assert!(error.contains(&format!("the key {key} occurs twice")), "{error}");
        }
    }

    #[test]
    fn other_values_are_read_as_usual() {
        for text in [
            "null",
            "true",
            "-7",
            "18446744073709551615",
            "1.5e300",
            r#""a\u0000\ud83d\ude00""#,
            "[]",
            r#"{"a":{"b":[1,{"a":null}]},"b":{"a":1}}"#,
        ] {
            let usual: Value = serde_json::from_str(text).unwrap();
            assert_eq!(
                serde_json::from_str::<Unique>(text).unwrap(),
                Unique(usual),
                "{text}"
            );
        }
        let deep = "[".repeat(200) + &"]".repeat(200);
        assert!(serde_json::from_str::<Unique>(&deep).is_err());
    }
}
