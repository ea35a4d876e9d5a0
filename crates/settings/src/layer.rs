//! One layer of the configuration, split into leaves that know where they were set.

use crate::error::Problem;
use crate::origin::Origin;
use crate::settings::Settings;
use crate::suggest::nearest;
use agentd_protocol::without_types;
use toml::de::{DeTable, DeValue};
use toml::{Table, Value};

/// One key with its value.
#[derive(Debug)]
pub(crate) struct Leaf {
    /// The key's parts.
    pub(crate) path: Vec<String>,
    /// Its value.
    pub(crate) value: Value,
    /// Where it was set.
    pub(crate) origin: Origin,
    /// Where each element was set, for an array.
    pub(crate) elements: Vec<Origin>,
}

/// A path as one TOML key: `models."gpt-4.1".price`.
pub(crate) fn dotted(path: &[String]) -> String {
    let bare = |part: &str| {
        !part.is_empty()
            && part
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
    };
    let quote = |part: &String| {
        if bare(part) {
            part.clone()
        } else {
            Value::String(part.clone()).to_string()
        }
    };
    path.iter().map(quote).collect::<Vec<_>>().join(".")
}

/// Whether a TOML table is a single value for us.
fn is_leaf_table(path: &[String]) -> bool {
    matches!(path, [section, key] if section == "sandbox" && key == "network")
}

/// The leaves of a TOML text. `at` returns the origin of a line.
pub(crate) fn from_text(text: &str, at: &dyn Fn(usize) -> Origin) -> Result<Vec<Leaf>, Problem> {
    let ends: Vec<usize> = text.match_indices('\n').map(|(end, _)| end).collect();
    let line = |offset: usize| 1 + ends.partition_point(|end| *end < offset);
    let spanned = DeTable::parse(text).map_err(|error| Problem {
        origin: Some(at(line(error.span().map_or(0, |span| span.start)))),
        key: String::new(),
        what: format!("invalid TOML: {}", error.message()),
        fix: "fix this line".to_owned(),
    })?;
    if let Err(error) = toml::from_str::<Settings>(text) {
        let offset = error.span().map_or(0, |span| span.start);
        let mut path = Vec::new();
        find(spanned.get_ref(), offset, &mut path);
        return Err(explain(error.message(), &path, Some(at(line(offset)))));
    }
    let table: Table = toml::from_str(text).unwrap_or_default();
    let mut leaves = Vec::new();
    walk(
        &table,
        spanned.get_ref(),
        &mut Vec::new(),
        &|offset| at(line(offset)),
        &mut leaves,
    );
    Ok(leaves)
}

fn walk(
    table: &Table,
    spanned: &DeTable<'_>,
    path: &mut Vec<String>,
    at: &dyn Fn(usize) -> Origin,
    leaves: &mut Vec<Leaf>,
) {
    for (key, node) in spanned {
        let Some(value) = table.get(key.get_ref().as_ref()) else {
            continue;
        };
        path.push(key.get_ref().to_string());
        match (value, node.get_ref()) {
            (Value::Table(inner), DeValue::Table(spans)) if !inner.is_empty() && !is_leaf_table(path) => {
                walk(inner, spans, path, at, leaves);
            }
            (_, other) => {
                let elements = other
                    .as_array()
                    .map(|array| array.iter().map(|item| at(item.span().start)).collect());
                leaves.push(Leaf {
                    path: path.clone(),
                    value: value.clone(),
                    origin: at(key.span().start),
                    elements: elements.unwrap_or_default(),
                });
            }
        }
        path.pop();
    }
}

/// Finds the key whose name or value contains `offset`.
fn find(table: &DeTable<'_>, offset: usize, path: &mut Vec<String>) -> bool {
    for (key, node) in table {
        path.push(key.get_ref().to_string());
        if key.span().contains(&offset) {
            return true;
        }
        match node.get_ref() {
            DeValue::Table(inner) if find(inner, offset, path) => return true,
            _ if node.span().contains(&offset) => return true,
            _ => {}
        }
        path.pop();
    }
    false
}

/// A single value from outside a file: parsed as TOML if that has the right type, else a string.
pub(crate) fn from_value(path: Vec<String>, raw: &str, origin: Origin) -> Result<Leaf, Problem> {
    let parsed = toml::from_str::<Table>(&format!("value = {raw}"))
        .ok()
        .filter(|table| table.len() == 1);
    let candidates = parsed.and_then(|mut table| table.remove("value")).into_iter();
    let mut first = None;
    for value in candidates.chain([Value::String(raw.to_owned())]) {
        match nest(&path, value.clone()).try_into::<Settings>() {
            Ok(_) => {
                let elements = value
                    .as_array()
                    .map(|array| array.iter().map(|_| origin.clone()).collect());
                return Ok(Leaf {
                    path,
                    value,
                    origin,
                    elements: elements.unwrap_or_default(),
                });
            }
            Err(error) => first = first.or(Some(error.message().to_owned())),
        }
    }
    Err(explain(&first.unwrap_or_default(), &path, Some(origin)))
}

fn nest(path: &[String], value: Value) -> Table {
    let nested = path.iter().skip(1).rev().fold(value, |inner, part| {
        Value::Table(Table::from_iter([(part.clone(), inner)]))
    });
    Table::from_iter(path.first().map(|part| (part.clone(), nested)))
}

/// Rewrites serde's message in our terms, with a remedy.
fn explain(message: &str, path: &[String], origin: Option<Origin>) -> Problem {
    let mut quoted = message.split('`').skip(1).step_by(2);
    if message.starts_with("unknown field") {
        let unknown = quoted.next().unwrap_or_default();
        let known: Vec<&str> = quoted.collect();
        let fix = match nearest(unknown, known.iter().copied()) {
            Some(name) => format!("did you mean `{name}`?"),
            None => format!("the known keys are: {}", known.join(", ")),
        };
        return Problem {
            origin,
            key: dotted(path),
            what: format!("unknown key `{unknown}`"),
            fix,
        };
    }
    let default = Table::try_from(Settings::default()).ok().and_then(|table| {
        path.iter()
            .try_fold(Value::Table(table), |value, part| value.get(part).cloned())
    });
    let fix = match default {
        Some(value) if !value.is_table() => format!("the default is `{} = {value}`", dotted(path)),
        _ => "the shipped config/agentd.toml shows every key".to_owned(),
    };
    let what = without_types(message.lines().next().unwrap_or("wrong type"), "a table");
    Problem {
        origin,
        key: dotted(path),
        what,
        fix,
    }
}
