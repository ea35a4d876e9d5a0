//! Reads the parameters of methods: a key that no type knows is an error at every depth, because a mistyped limit is no limit.

use agentd_protocol::{Fault, from_named, nearest};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// A key that no type has.
const UNKNOWN: &str = "\0";

/// Reads a method's parameters.
///
/// # Errors
/// A fault that names the field.
#[expect(
    clippy::needless_pass_by_value,
    reason = "the parameters are used up, and their memory with them"
)]
pub fn read_params<P: Serialize + DeserializeOwned>(params: Value) -> Result<P, Fault> {
    let read: P = from_named(&params).map_err(|error| explained(&error))?;
    let inside = |value: &Value| value.is_object() || value.is_array();
    if !params.as_object().is_some_and(|map| map.values().any(inside)) {
        return Ok(read);
    }
    let written = serde_json::to_value(&read).unwrap_or_default();
    let mut dropped = Vec::new();
    gather(&params, &written, &Place::default(), &mut dropped);
    match dropped.into_iter().find(|dropped| dropped.ignored::<P>(&params)) {
        Some(Dropped { place, key, known }) => {
            let known = known.iter().map(String::as_str);
            Err(no_such_key(&place.shown, &key, known))
        }
        None => Ok(read),
    }
}

fn bad_params(what: &str) -> Fault {
    Fault::invalid("bad_params", format!("params: {what}"))
}

fn no_such_key<'a>(place: &str, key: &str, known: impl Iterator<Item = &'a str> + Clone) -> Fault {
    let plain = key.chars().all(|c| c.is_ascii_alphanumeric() || "_-".contains(c));
    let fault = if plain && !key.is_empty() {
        bad_params(&format!(
            "{place}{}: there is no such key",
            crate::words::cut(key)
        ))
    } else {
        bad_params(&format!(
            "{place}{:?}: there is no such key",
            crate::words::cut(key)
        ))
    };
    let mut all = known.clone().peekable();
    match nearest(key, known) {
        Some(near) => fault.hint(format!("did you mean {near}?")),
        None if all.peek().is_none() => fault.hint("omit it: there are no keys here"),
        None => fault.hint(format!(
            "the keys here are {}",
            all.collect::<Vec<_>>().join(", ")
        )),
    }
}

/// Rewrites what serde says about an unknown key.
fn explained(error: &str) -> Fault {
    let Some((before, rest)) = error.split_once("unknown field `") else {
        return bad_params(error);
    };
    let mut quoted = rest.split('`').step_by(2);
    let key = quoted.next().unwrap_or_default();
    // The place, if there is one, ends with the key.
    let place = before.strip_suffix(": ").unwrap_or_default();
    let place = place.strip_suffix(key).unwrap_or(place);
    no_such_key(place, key, quoted)
}

/// Where a map is inside of the parameters.
#[derive(Debug, Clone, Default)]
struct Place {
    /// As a JSON pointer.
    pointer: String,
    /// As people read it, with what separates it from a key.
    shown: String,
}

impl Place {
    fn key(&self, key: &str) -> Self {
        let escaped = key.replace('~', "~0").replace('/', "~1");
        Self {
            pointer: format!("{}/{escaped}", self.pointer),
            shown: format!("{}{key}.", self.shown),
        }
    }

    fn item(&self, index: usize) -> Self {
        let list = self.shown.strip_suffix('.').unwrap_or(&self.shown);
        Self {
            pointer: format!("{}/{index}", self.pointer),
            shown: format!("{list}[{index}]."),
        }
    }
}

/// A key that is not in what was read: it was ignored, or it is not written because it has its default.
#[derive(Debug)]
struct Dropped {
    place: Place,
    key: String,
    /// The other keys there.
    known: Vec<String>,
}

impl Dropped {
    /// Whether its map takes every key. A type that refuses unknown keys has accepted this one.
    fn ignored<T: DeserializeOwned>(&self, value: &Value) -> bool {
        let mut probe = value.clone();
        let map = probe
            .pointer_mut(&self.place.pointer)
            .and_then(Value::as_object_mut);
        if let Some(map) = map {
            map.insert(UNKNOWN.to_owned(), Value::Null);
        }
        T::deserialize(probe).is_ok()
    }
}

/// Collects the keys inside of the parameters that reading dropped. Those of the parameters themselves serde has refused.
fn gather(given: &Value, written: &Value, place: &Place, dropped: &mut Vec<Dropped>) {
    match (given, written) {
        (Value::Array(given), Value::Array(written)) => {
            for (index, (given, written)) in given.iter().zip(written).enumerate() {
                gather(given, written, &place.item(index), dropped);
            }
        }
        // A block of an unknown type is read as another one, and refused by its method.
        (Value::Object(given), Value::Object(written)) if given.get("type") == written.get("type") => {
            for (key, value) in given {
                match written.get(key) {
                    Some(written) => gather(value, written, &place.key(key), dropped),
                    None if place.pointer.is_empty() => {}
                    None => dropped.push(Dropped {
                        place: place.clone(),
                        key: key.clone(),
                        known: written.keys().cloned().collect(),
                    }),
                }
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use agentd_protocol::{CreateParams, ListParams, SendParams, UpdateParams};
    use serde_json::json;

    fn wrong<P: Serialize + DeserializeOwned + std::fmt::Debug>(value: Value) -> (String, String) {
        let fault = read_params::<P>(value).unwrap_err();
        (fault.message, fault.hint.unwrap_or_default())
    }

    fn told(message: &str, hint: &str) -> (String, String) {
        (format!("params: {message}"), hint.to_owned())
    }

    #[test]
    fn an_unknown_key_is_refused_where_it_is() {
        assert_eq!(
            wrong::<CreateParams>(json!({"workdir": "/w", "budget": {"dollars": 1}})),
            told(
                "budget.dollars: there is no such key",
                "the keys here are tokens, usd, time_ms, steps"
            )
        );
        assert_eq!(
            wrong::<UpdateParams>(json!({"session": "s", "budget": {"step": 1}})),
            told("budget.step: there is no such key", "did you mean steps?")
        );
        assert_eq!(
            wrong::<CreateParams>(json!({"workdir": "/w", "workspace": {"branch": "x", "repo": null}})).0,
            "params: workspace.branch: there is no such key"
        );
        assert_eq!(
            wrong::<SendParams>(json!({"content": [
                {"type": "text", "text": "a"}, {"type": "text", "text": "b", "cache": {}}
            ]})),
            told(
                "content[1].cache: there is no such key",
                "the keys here are type, text"
            )
        );
        assert_eq!(
            wrong::<SendParams>(json!({"sesion": "s"})),
            told("sesion: there is no such key", "did you mean session?")
        );
        let odd = json!({"session": "s", "budget": {"a b": 1}});
        assert_eq!(
            wrong::<UpdateParams>(odd).0,
            "params: budget.\"a b\": there is no such key"
        );
    }

    #[test]
    fn keys_with_their_defaults_and_keys_of_people_are_known() {
        let given = json!({
            "workdir": "/w", "prompt": [], "title": null, "force": false, "labels": {"any/key~": "x"},
            "workspace": {"kind": null, "repo": null, "ref": null, "with_changes": false},
            "budget": {"tokens": 0, "usd": 0}
        });
        let read: CreateParams = read_params(given).unwrap();
        assert_eq!(read.labels.len(), 1);
        // The method refuses a block of an unknown type.
        let newer = json!({"session": "s", "content": [{"type": "sound", "data": "x"}]});
        assert!(read_params::<SendParams>(newer).is_ok());
        let list = json!({"labels": {"team": "infra"}, "sort": "created"});
        assert!(read_params::<ListParams>(list).is_ok());
    }
}
