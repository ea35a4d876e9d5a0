//! Selects sessions by their labels: the set-based selectors of kubectl.

use crate::vocabulary::Labels;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Error as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::str::FromStr;

/// The maximum number of conditions per selector.
const MAX_REQUIREMENTS: usize = 64;
/// Characters that end a key or a value.
const MARKS: [char; 5] = [',', '(', ')', '=', '!'];

/// Conditions that the labels of a session must all meet; an empty selector matches every session.
///
/// Its text form is `team=infra, tier in (a, b), !urgent`. On the wire it is that text, or a map of labels that a session
/// must carry.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Selector(Vec<Requirement>);

/// One condition.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Requirement {
    /// The label exists.
    Exists(String),
    /// The label does not exist.
    Missing(String),
    /// The label exists and has one of these values.
    In(String, Vec<String>),
    /// The label does not exist, or has none of these values.
    NotIn(String, Vec<String>),
}

/// Why a text is not a valid selector.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadSelector {
    text: String,
    why: &'static str,
}

impl fmt::Display for BadSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (text, why) = (&self.text, self.why);
        write!(
            f,
            "{text:?} is not a label selector: {why}; write KEY=VALUE, KEY!=VALUE, KEY in (A,B), KEY notin (A,B), KEY or \
             !KEY, separated by commas"
        )
    }
}

impl std::error::Error for BadSelector {}

impl Requirement {
    fn key(&self) -> &str {
        match self {
            Self::Exists(key) | Self::Missing(key) | Self::In(key, _) | Self::NotIn(key, _) => key,
        }
    }

    fn holds(&self, labels: &Labels) -> bool {
        match self {
            Self::Exists(key) => labels.contains_key(key),
            Self::Missing(key) => !labels.contains_key(key),
            Self::In(key, values) => labels.get(key).is_some_and(|value| values.contains(value)),
            Self::NotIn(key, values) => labels.get(key).is_none_or(|value| !values.contains(value)),
        }
    }
}

impl Selector {
    /// Whether it matches every session.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether it matches a session with these labels.
    #[must_use]
    pub fn matches(&self, labels: &Labels) -> bool {
        self.0.iter().all(|requirement| requirement.holds(labels))
    }

    /// The labels that every matching session must have: a store can look them up.
    #[must_use]
    pub fn carried(&self) -> Labels {
        let single = self.0.iter().filter_map(|requirement| match requirement {
            Requirement::In(key, values) => match values.as_slice() {
                [value] => Some((key.clone(), value.clone())),
                _ => None,
            },
            Requirement::Exists(_) | Requirement::Missing(_) | Requirement::NotIn(..) => None,
        });
        single.collect()
    }

    /// A key on which the conditions contradict each other, so that no session can match.
    #[must_use]
    pub fn contradiction(&self) -> Option<&str> {
        self.0.iter().find_map(|requirement| match requirement {
            // One of these values must be there, and the other conditions on the key exclude each.
            Requirement::In(key, values) => {
                let fits = |value: &String| self.matches_value(key, value);
                (!values.iter().any(fits)).then_some(key.as_str())
            }
            Requirement::Exists(key) => {
                let missing = Requirement::Missing(key.clone());
                self.0.contains(&missing).then_some(key.as_str())
            }
            Requirement::Missing(_) | Requirement::NotIn(..) => None,
        })
    }

    /// Whether all conditions on a key hold if it has this value.
    fn matches_value(&self, key: &str, value: &str) -> bool {
        let labels = Labels::from([(key.to_owned(), value.to_owned())]);
        let on_key = |requirement: &&Requirement| requirement.key() == key;
        self.0
            .iter()
            .filter(on_key)
            .all(|requirement| requirement.holds(&labels))
    }

    /// Combines the conditions of both.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        self.0.extend(other.0);
        self
    }
}

impl From<Labels> for Selector {
    fn from(labels: Labels) -> Self {
        let one = |(key, value)| Requirement::In(key, vec![value]);
        Self(labels.into_iter().map(one).collect())
    }
}

impl FromStr for Selector {
    type Err = BadSelector;

    fn from_str(text: &str) -> Result<Self, BadSelector> {
        let bad = |why| BadSelector {
            text: text.chars().take(200).collect(),
            why,
        };
        let mut found = Vec::new();
        let mut rest = text.trim();
        if rest.is_empty() {
            return Err(bad("it is empty"));
        }
        loop {
            let (requirement, after) = requirement(rest).map_err(bad)?;
            found.push(requirement);
            if found.len() > MAX_REQUIREMENTS {
                return Err(bad("it has too many conditions"));
            }
            let after = after.trim_start();
            if after.is_empty() {
                return Ok(Self(found));
            }
            rest = after
                .strip_prefix(',')
                .ok_or_else(|| bad("a comma is missing between two conditions"))?
                .trim_start();
        }
    }
}

/// Parses the first condition and returns it with the rest of the text.
fn requirement(text: &str) -> Result<(Requirement, &str), &'static str> {
    if let Some(rest) = text.strip_prefix('!') {
        let (key, rest) = key(rest)?;
        return Ok((Requirement::Missing(key), rest));
    }
    let (key, rest) = key(text)?;
    let rest = rest.trim_start();
    for (sign, equal) in [("!=", false), ("==", true), ("=", true)] {
        if let Some(rest) = rest.strip_prefix(sign) {
            let (value, rest) = word(rest);
            return Ok((of_values(key, vec![value.trim().to_owned()], equal), rest));
        }
    }
    for (word, equal) in [("notin", false), ("in", true)] {
        let list = rest.strip_prefix(word).map(str::trim_start);
        if let Some(list) = list.and_then(|list| list.strip_prefix('(')) {
            let (values, rest) = list.split_once(')').ok_or("a closing bracket is missing")?;
            let values: Vec<String> = values.split(',').map(|value| value.trim().to_owned()).collect();
            if values.iter().any(|value| value.contains(MARKS)) {
                return Err("a value has a character that labels cannot have");
            }
            return Ok((of_values(key, values, equal), rest));
        }
    }
    Ok((Requirement::Exists(key), rest))
}

const fn of_values(key: String, values: Vec<String>, equal: bool) -> Requirement {
    if equal {
        Requirement::In(key, values)
    } else {
        Requirement::NotIn(key, values)
    }
}

fn key(text: &str) -> Result<(String, &str), &'static str> {
    let text = text.trim_start();
    let end = text
        .find(|c: char| MARKS.contains(&c) || c.is_whitespace())
        .unwrap_or(text.len());
    let (key, rest) = text.split_at(end);
    let fine = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | '/');
    if key.is_empty() {
        return Err("a key is missing");
    }
    if !key.chars().all(fine) {
        return Err("a key has a character that labels cannot have");
    }
    Ok((key.to_owned(), rest))
}

/// Splits the text at the next mark.
fn word(text: &str) -> (&str, &str) {
    text.split_at(text.find(MARKS).unwrap_or(text.len()))
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exists(key) => f.write_str(key),
            Self::Missing(key) => write!(f, "!{key}"),
            Self::In(key, values) => match values.as_slice() {
                [value] => write!(f, "{key}={value}"),
                values => write!(f, "{key} in ({})", values.join(",")),
            },
            Self::NotIn(key, values) => write!(f, "{key} notin ({})", values.join(",")),
        }
    }
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, requirement) in self.0.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            write!(f, "{comma}{requirement}")?;
        }
        Ok(())
    }
}

impl Serialize for Selector {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let carried = self.carried();
        // Older daemons accept only the map.
        if carried.len() == self.0.len() {
            carried.serialize(serializer)
        } else {
            serializer.collect_str(self)
        }
    }
}

impl<'de> Deserialize<'de> for Selector {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TextOrMap)
    }
}

struct TextOrMap;

impl<'de> Visitor<'de> for TextOrMap {
    type Value = Selector;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a map of labels, or a selector such as \"team=infra,!urgent\"")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Selector, E> {
        text.parse().map_err(E::custom)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Selector, A::Error> {
        let labels = Labels::deserialize(MapAccessDeserializer::new(map))?;
        if labels.len() > MAX_REQUIREMENTS {
            return Err(A::Error::custom("a selector has too many labels"));
        }
        Ok(labels.into())
    }
}

#[cfg(test)]
mod tests;
